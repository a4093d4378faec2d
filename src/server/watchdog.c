/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The software watchdog. Invariant: while it is on, an alarm is set, which each cron run postpones.
 * The handler runs on the main thread; other threads block its signal. */
#include "server/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include "base/base.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "server/trace.h"

static int period_now_ms;

/* Prints only the name: arguments are user data. */
static void printCommand(void) {
    const ctx *c = engineHot.current;
    if (!c || !c->cmd) return;
    char line[128];
    snprintf(line, sizeof(line), "Running the command '%.*s'\n", (int)c->cmd->name.len,
             c->cmd->name.ptr);
    logRaw(line);
}

/* Also for a signal from outside, at any time: the stacks of a server that does not answer. */
static void onAlarm(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    int saved = errno;
    bool is_timer = info->si_code > 0;
    logFromSignal(is_timer ? "\n--- WATCHDOG TIMER EXPIRED ---" : "\nReceived SIGALRM");
    logRaw("\n------ STACK TRACE ------\n");
    tracePrint(context);
    if (!is_timer) tracePrintOthers(false);
    logRaw("\n------ STACK TRACE DONE ------\n");
    printCommand();
    logFromSignal("--------\n");
    errno = saved;
}

void watchdogKick(void) {
    if (!period_now_ms) return;
    struct itimerval timer = {.it_value = {period_now_ms / 1000, period_now_ms % 1000 * 1000}};
    (void)setitimer(ITIMER_REAL, &timer, NULL); /* the period is valid */
}

void watchdogInit(void) {
    struct sigaction action = {.sa_sigaction = onAlarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

void watchdogSet(int period_ms) {
    bool stops = period_now_ms && !period_ms;
    period_now_ms = period_ms;
    if (stops) {
        struct itimerval none = {{0, 0}, {0, 0}};
        (void)setitimer(ITIMER_REAL, &none, NULL); /* the timer is valid */
    }
    watchdogKick();
}

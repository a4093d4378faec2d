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

static void onAlarm(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    int saved = errno;
    logFromSignal("\n--- WATCHDOG TIMER EXPIRED ---");
    logRaw("\n------ STACK TRACE ------\n");
    tracePrint(context);
    logRaw("\n------ STACK TRACE DONE ------\n");
    printCommand();
    if (info->si_code <= 0)
        logFromSignal("The signal was sent by another process: the watchdog timer did not expire.");
    logFromSignal("--------\n");
    errno = saved;
}

void watchdogKick(void) {
    if (!period_now_ms) return;
    struct itimerval timer = {.it_value = {period_now_ms / 1000, period_now_ms % 1000 * 1000}};
    (void)setitimer(ITIMER_REAL, &timer, NULL); /* the period is valid */
}

void watchdogSet(int period_ms) {
    if (period_ms == 0 && period_now_ms == 0) return;
    period_now_ms = period_ms;
    struct sigaction action = {.sa_sigaction = onAlarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (!period_ms) {
        struct itimerval none = {{0, 0}, {0, 0}};
        (void)setitimer(ITIMER_REAL, &none, NULL); /* the timer is valid */
        action = (struct sigaction){.sa_handler = SIG_IGN};
    }
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    watchdogKick();
}

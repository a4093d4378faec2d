/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals: TERM and INT ask for a shutdown, a second one ends at once; HUP and PIPE are ignored.
 * Handlers only write to the log, set a flag and wake the loop. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "server/roof.h"
#include "server/server_priv.h"

static volatile sig_atomic_t asked; /* signal number of the first request to end */

static void onTerminate(int signal_number) {
    static const char term_text[] = "Received SIGTERM scheduling shutdown...";
    static const char int_text[] = "Received SIGINT scheduling shutdown...";
    static const char again_text[] = "You insist... exiting now.";
    bool again = asked || shutdownLeftMs() >= 0;
    if (again && signal_number == SIGINT) {
        logFromSignal(again_text);
        _exit(1); /* a second request: the operator means it */
    }
    logFromSignal(signal_number == SIGTERM ? term_text : int_text);
    asked = signal_number;
    loopWake(serverRunNow()->loop);
}

void signalsInit(void) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    struct sigaction action = {.sa_handler = onTerminate, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void signalsPoll(void) {
    if (!asked) return;
    int signal_number = asked;
    uint32_t flags = (uint32_t)(signal_number == SIGINT ? serverConf.shutdown_on_sigint
                                                        : serverConf.shutdown_on_sigterm);
    reason why = {""};
    status st = shutdownNow(flags, &why);
    asked = 0;
    if (st == ERR_AGAIN) return; /* waits for a wing; the cron asks again */
    logWarning(
        "Received shutdown signal during loading or errors trying to shut down, check the logs: %s",
        why.text);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals: TERM and INT request a shutdown, a second one exits immediately; HUP and PIPE are
 * ignored. The handlers only write to the log, set a flag and wake the loop. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/tick.h"
#include "persist/persist.h"
#include "server/server.h"
#include "server/server_priv.h"

/* Number of the first signal that requested a shutdown. */
static volatile sig_atomic_t first_signal;

static void onTerminate(int signal_number) {
    static const char term_text[] = "Received SIGTERM scheduling shutdown...";
    static const char int_text[] = "Received SIGINT scheduling shutdown...";
    static const char again_text[] = "You insist... exiting now.";
    bool again = first_signal || shutdownRemainingMs() >= 0;
    if (again && signal_number == SIGINT) {
        logFromSignal(again_text);
        persistRemoveUnfinished();
        _exit(1); /* on a second signal, exit immediately */
    }
    logFromSignal(signal_number == SIGTERM ? term_text : int_text);
    first_signal = signal_number;
    loopWake(serverRunNow()->loop);
}

void signalsInit(void) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at the limit of its size is an error like a full disk */
    struct sigaction action = {.sa_handler = onTerminate, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

bool signalsForget(void) {
    bool pending = first_signal != 0;
    first_signal = 0;
    return pending;
}

void signalsPoll(void) {
    if (!first_signal || ticksArePaused()) return;
    int signal_number = first_signal;
    uint32_t flags = (uint32_t)(signal_number == SIGINT ? serverConf.shutdown_on_sigint
                                                        : serverConf.shutdown_on_sigterm);
    reason why = {""};
    status st = shutdownNow(flags, &why);
    first_signal = 0;
    if (st == ERR_AGAIN) return; /* a feature needs more time; the cron retries */
    logWarning("Received shutdown signal during loading or errors trying to shut down, check the "
               "logs");
}

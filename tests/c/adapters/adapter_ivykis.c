/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for ivykis, whose loop has no single turn: a timer ends it. */
#include <valkey/adapters/ivykis.h>

#include "adapter_test.h"

static void begin(void) { iv_init(); }
static void end(void) { iv_deinit(); }

static void onTurnEnd(void *arg) {
    (void)arg;
    iv_quit();
}

static void turn(void) {
    struct iv_timer timer;
    IV_TIMER_INIT(&timer);
    iv_validate_now();
    /* Timers come before descriptors. */
    timer.expires = iv_now;
    timer.expires.tv_nsec += 1000000;
    timer.expires.tv_sec += timer.expires.tv_nsec / 1000000000;
    timer.expires.tv_nsec %= 1000000000;
    timer.handler = onTurnEnd;
    iv_timer_register(&timer);
    iv_main();
}

static int attach(valkeyAsyncContext *ac) { return valkeyIvykisAttach(ac); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseIvykis(options); }

const adapterLoop adapter_loop = {"ivykis", begin, attach, use, turn, end};

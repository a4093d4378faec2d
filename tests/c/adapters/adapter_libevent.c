/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for libevent. */
#include <valkey/adapters/libevent.h>

#include "adapter_test.h"

static struct event_base *base;

static void begin(void) { base = event_base_new(); }
static void turn(void) { event_base_loop(base, EVLOOP_NONBLOCK); }
static void end(void) { event_base_free(base); }

static int attach(valkeyAsyncContext *ac) { return valkeyLibeventAttach(ac, base); }
static int use(valkeyClusterOptions *options) {
    return valkeyClusterOptionsUseLibevent(options, base);
}

const adapterLoop adapter_loop = {"libevent", begin, attach, use, turn, end};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for libev. */
#include <valkey/adapters/libev.h>

#include "adapter_test.h"

static struct ev_loop *ev;

static void begin(void) { ev = ev_loop_new(EVFLAG_AUTO); }
static void turn(void) { ev_run(ev, EVRUN_NOWAIT); }
static void end(void) { ev_loop_destroy(ev); }

static int attach(valkeyAsyncContext *ac) { return valkeyLibevAttach(ev, ac); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseLibev(options, ev); }

const adapterLoop adapter_loop = {"libev", begin, attach, use, turn, end};

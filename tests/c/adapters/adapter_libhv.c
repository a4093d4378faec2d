/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for libhv, on a stand-in with its interface. */
#include <valkey/adapters/libhv.h>

#include "adapter_test.h"

static hloop_t hv;

static void begin(void) { standinBegin(); }
static void turn(void) { standinTurn(); }
static void end(void) {}

static int attach(valkeyAsyncContext *ac) { return valkeyLibhvAttach(ac, &hv); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseLibhv(options, &hv); }

const adapterLoop adapter_loop = {"libhv", begin, attach, use, turn, end};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for ae, on a stand-in with its interface. */
#include <valkey/adapters/ae.h>

#include "adapter_test.h"

static aeEventLoop ae;

static void begin(void) { standinBegin(); }
static void turn(void) { standinTurn(); }
static void end(void) {}

static int attach(valkeyAsyncContext *ac) { return valkeyAeAttach(&ae, ac); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseAe(options, &ae); }

const adapterLoop adapter_loop = {"ae", begin, attach, use, turn, end};

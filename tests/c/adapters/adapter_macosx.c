/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for macOS, on a stand-in with the interface of CoreFoundation. */
#include <valkey/adapters/macosx.h>

#include "adapter_test.h"

static struct standinRunLoop run_loop;

static void begin(void) { standinBegin(); }
static void turn(void) { standinTurn(); }
static void end(void) {}

static int attach(valkeyAsyncContext *ac) { return valkeyMacOSAttach(ac, &run_loop); }
static int use(valkeyClusterOptions *options) {
    return valkeyClusterOptionsUseMacOS(options, &run_loop);
}

const adapterLoop adapter_loop = {"macosx", begin, attach, use, turn, end};

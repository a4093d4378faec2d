/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for modules, on a stand-in with the interface of a server. */
#include <valkey/adapters/valkeymoduleapi.h>

#include "adapter_test.h"

static ValkeyModuleCtx module;

static void begin(void) { standinBegin(); }
static void turn(void) { standinTurn(); }
static void end(void) {}

static int attach(valkeyAsyncContext *ac) {
    return valkeyModuleCompatibilityCheck() == VALKEY_OK ? valkeyModuleAttach(ac, &module)
                                                         : VALKEY_ERR;
}
static int use(valkeyClusterOptions *options) {
    return valkeyClusterOptionsUseModule(options, &module);
}

const adapterLoop adapter_loop = {"valkeymoduleapi", begin, attach, use, turn, end};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for libuv. */
#include <valkey/adapters/libuv.h>

#include "adapter_test.h"

static uv_loop_t uv;

static void begin(void) { uv_loop_init(&uv); }
static void turn(void) { uv_run(&uv, UV_RUN_NOWAIT); }
static void end(void) { uv_loop_close(&uv); }

static int attach(valkeyAsyncContext *ac) { return valkeyLibuvAttach(ac, &uv); }
static int use(valkeyClusterOptions *options) { return valkeyClusterOptionsUseLibuv(options, &uv); }

const adapterLoop adapter_loop = {"libuv", begin, attach, use, turn, end};

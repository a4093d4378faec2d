/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for GLib. */
#include <valkey/adapters/glib.h>

#include "adapter_test.h"

static GMainContext *main_context;

static void begin(void) { main_context = g_main_context_new(); }
static void turn(void) { g_main_context_iteration(main_context, FALSE); }
static void end(void) { g_main_context_unref(main_context); }

static int attach(valkeyAsyncContext *ac) { return valkeyGlibAttachAdapter(ac, main_context); }
static int use(valkeyClusterOptions *options) {
    return valkeyClusterOptionsUseGlib(options, main_context);
}

const adapterLoop adapter_loop = {"glib", begin, attach, use, turn, end};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The adapter for sd-event. */
#include <valkey/adapters/libsdevent.h>

#include "adapter_test.h"

static struct sd_event *sd;

static void begin(void) { sd_event_new(&sd); }
static void turn(void) { sd_event_run(sd, 0); }
static void end(void) { sd = sd_event_unref(sd); }

static int attach(valkeyAsyncContext *ac) { return valkeyLibsdeventAttach(ac, sd); }
static int use(valkeyClusterOptions *options) {
    return valkeyClusterOptionsUseLibsdevent(options, sd);
}

const adapterLoop adapter_loop = {"libsdevent", begin, attach, use, turn, end};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands users type; the table reaches them, so all there is to name is what they configure. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"

static const gate *const gates[] = {&debugGate, NULL};

/* Always armed: it sees DEBUG alone. */
static status init(reason *why) {
    (void)why; /* cannot fail */
    gateArm(&debugGate, true);
    return OK;
}

const feature cmdFeature = {.name = "cmd", .options = cmdOptions, .gates = gates, .init = init};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of the commands' directives and of the DEBUG gate. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"

static const gate *const gates[] = {&debugGate, NULL};

/* The gate is always armed: it selects DEBUG only, so other commands are not affected. */
static status init(reason *why) {
    (void)why; /* cannot fail */
    gateArm(&debugGate, true);
    return OK;
}

const feature cmdFeature = {.name = "cmd", .options = cmdOptions, .gates = gates, .init = init};

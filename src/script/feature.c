/* SPDX-License-Identifier: BSD-3-Clause
 *
 * EVAL and functions. Today: its directives. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "script/script.h"
#include "script/script_priv.h"

const feature scriptFeature = {.name = "script", .options = scriptOptions};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scripts (EVAL) and functions. So far: directives. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "script/script.h"
#include "script/script_priv.h"

const feature scriptFeature = {.name = "script", .options = scriptOptions};

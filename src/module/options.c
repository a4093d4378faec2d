/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of modules. */
#include "module/checks.h"

const configOption moduleOptions[] = {
    CONFIG_BOOL("module-checks", handlesChecked, false, .flags = CONFIG_IMMUTABLE | CONFIG_HIDDEN),
    CONFIG_END,
};

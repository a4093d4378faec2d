/* SPDX-License-Identifier: BSD-3-Clause
 *
 * EVAL and functions. Today: its directives. Main thread only. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include "engine/hooks.h"

extern const feature scriptFeature;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Timers of modules. Main thread only. */
#ifndef MODULE_TIMERS_H
#define MODULE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "module/registry.h"

/* True if the module has a timer that has not expired. */
bool timersExist(const module *m);
/* True if any timer was due before this time (monotonic), which is past, and has not expired. */
bool timersAreDue(int64_t before_us);
/* The module ends: its timers do not expire any more. */
void timersRemove(module *m);

#endif

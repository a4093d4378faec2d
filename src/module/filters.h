/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Command filters of modules: functions that may rewrite each request. Main thread only. */
#ifndef MODULE_FILTERS_H
#define MODULE_FILTERS_H

#include "module/registry.h"

/* The module ends: its filters are called no more. Allowed from inside of one. */
void filtersRemove(module *m);

#endif

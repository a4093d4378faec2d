/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to engine/. */
#ifndef ENGINE_FILTER_PRIV_H
#define ENGINE_FILTER_PRIV_H

#include "engine/filter.h"

/* Filters c->request. Returns NULL if nothing was changed; else argv, argc, command, key hash and
 * request of `c` are the new ones, which the result owns. */
filteredRequest *requestFilterRun(ctx *c);
/* True if a filter is armed. */
bool requestFiltersArmed(void);
void requestFiltersClear(void);

#endif

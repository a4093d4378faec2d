/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one hot line: what nearly every request reads. The only variable in the house that is extern and
 * not const. Main thread only. */
#ifndef ENGINE_HOT_H
#define ENGINE_HOT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

typedef struct ctx ctx;
typedef struct db db;

typedef struct engineHotLine {
    int64_t now_ms; /* wall clock of this turn; commands see it frozen */
    uint64_t dirty; /* changes since the last save, ever growing; persist remembers its mark */
    uint32_t armed; /* gates that want to be asked */
    uint32_t sinks; /* number of sinks that take propagated commands */
    ctx *current;   /* the command being run, NULL between commands */
    db **dbs;
    uint64_t commands; /* total_commands_processed */
    uint32_t seers;    /* hook 14 users armed (MONITOR, filters) */
    uint8_t observers; /* key observers hung up */
    bool latency_tracking;
    bool loading;
    bool memory_limited; /* maxmemory is set: memoryKeep() before each batch */
    int32_t hotkeys_in;  /* requests until hotkeysLook() looks at one; executeRun() counts down */
} engineHotLine;
_Static_assert(sizeof(engineHotLine) <= CACHE_LINE, "the hot line is one cache line");

extern engineHotLine engineHot ALIGNED(CACHE_LINE);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engineHot: the variables that nearly every request reads, in one cache line. The only non-const
 * extern variable of the program. Main thread only. */
#ifndef ENGINE_HOT_H
#define ENGINE_HOT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

typedef struct ctx ctx;
typedef struct db db;

typedef struct engineHotLine {
    int64_t now_ms; /* wall clock of this turn; constant during a command */
    /* Changes since the start, ever increasing; persist remembers the value at the last save. */
    uint64_t dirty;
    uint64_t armed; /* armed gates */
    ctx *current;   /* the command being run, NULL between commands */
    db **dbs;
    uint64_t commands;  /* total_commands_processed */
    int32_t hotkeys_in; /* requests until the next hotkeysLook(); decremented by executeRun() */
    uint8_t sinks, observers, command_observers; /* numbers of what is armed */
    bool latency_tracking;
    bool loading;
    bool member_ttls;    /* members of sets or sorted sets have, or had, TTLs */
    bool memory_limited; /* maxmemory is set: call memoryKeep() before each batch */
    uint32_t job_from;   /* so many elements to read make a job: job.h */
} engineHotLine;
_Static_assert(sizeof(engineHotLine) <= CACHE_LINE, "the hot line is one cache line");

extern engineHotLine engineHot ALIGNED(CACHE_LINE);

#endif

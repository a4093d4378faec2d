/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks an RDB file, or the RDB part of an AOF file, and prints what it finds in the form of
 * Valkey's tool: on standard output, one fact per line. One thread. */
#ifndef TOOLS_RDB_CHECK_H
#define TOOLS_RDB_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/rdb_stats.h"

typedef struct rdbCheckOptions {
    const char *path;
    bool stats;
    rdbStatsFormat format;
    FILE *stats_to;
} rdbCheckOptions;

/* True if the file is valid; *len, unless NULL, is then the number of bytes read. The store must be
 * initialised. */
bool rdbCheck(const rdbCheckOptions *options, uint64_t *len);

#endif

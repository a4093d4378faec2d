/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of an RDB file per database and type: keys, elements, their sizes, with percentiles.
 * One thread. */
#ifndef TOOLS_RDB_STATS_H
#define TOOLS_RDB_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "format/rdb_file.h"

typedef enum rdbStatsFormat { RDB_STATS_TABLE, RDB_STATS_INFO, RDB_STATS_CSV } rdbStatsFormat;

/* Keys of databases with higher ids are not counted. */
enum { RDB_STATS_DBS_MAX = 16384 };

typedef struct rdbStats rdbStats;
rdbStats *rdbStatsNew(void);
void rdbStatsFree(rdbStats *s);
/* Counts a key of database `db`. An element of a hash is a field with its value, of a sorted set a
 * member with its score, of a stream an entry (sizes are per field and value). A value of a module
 * has no elements. */
void rdbStatsAdd(rdbStats *s, uint64_t db, const rdbKey *key, bool expired);
/* Prints the databases up to the last one that has keys. */
void rdbStatsPrint(const rdbStats *s, rdbStatsFormat format, FILE *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts of the contents of a dataset, which --migrate-check reports: keys by type with the first
 * names. One thread. */
#ifndef TOOLS_CLI_MIGRATE_TYPES_H
#define TOOLS_CLI_MIGRATE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "tools/cli/connection.h"

enum { TYPES_MAX = 32, TYPE_NAME_MAX = 64 };

/* Keys of a type that does not exist here. */
typedef struct typeCount {
    char name[TYPE_NAME_MAX];
    uint64_t keys, bytes; /* bytes: 0 unless counted in a file */
    str first;            /* the first three names */
} typeCount;

typedef struct datasetCounts {
    uint64_t keys, streams_with_ids, hashes_with_times, functions;
    typeCount types[TYPES_MAX]; /* further types are counted in the last one */
    int type_count;
    str modules; /* modules with data outside of keys, each after a blank; only for a file */
    bool failed; /* a part could not be read */
} datasetCounts;

void datasetCountsClear(datasetCounts *counts);
/* Counts a key of a type that does not exist here. */
void datasetCountForeign(datasetCounts *counts, const char *type, slice key, uint64_t bytes);
/* Counts all keys of the databases that are in `keyspace`, a reply of INFO, by their types.
 * `has_ids`: counts streams with ids of producers, too. */
void datasetCountServer(connection *c, const char *keyspace, bool has_ids, datasetCounts *out);
/* Reads an RDB file. False: it is not valid; the reason was printed. */
bool datasetCountFile(const char *path, datasetCounts *out);
/* Appends a text like "3 keys of type array (first: a, b, c; 1203 bytes)". */
void datasetDescribe(const typeCount *type, str *out);

#endif

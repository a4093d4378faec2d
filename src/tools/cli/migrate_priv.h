/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of --migrate-check: migrate_check.c queries the server and reports, migrate_memory.c
 * estimates memory. One thread. */
#ifndef TOOLS_CLI_MIGRATE_PRIV_H
#define TOOLS_CLI_MIGRATE_PRIV_H

#include "tools/cli/connection.h"

/* A directive of this server. */
typedef struct knownDirective {
    const char *name;
    const char *fallback;  /* the default as CONFIG GET shows it; NULL: it depends on the machine */
    const char *no_effect; /* the reason if it is accepted without effect; NULL: it has one */
} knownDirective;

extern const knownDirective knownDirectives[]; /* sorted by name */
extern const int knownDirectiveCount;

typedef struct memoryEstimate {
    uint64_t keys;      /* different keys of the sample; 0: none, or the server refuses */
    double there, here; /* bytes of the sample on either server, hash tables included */
} memoryEstimate;

/* Estimates from up to `count` random keys of the databases in `keyspace`, the reply of INFO. The
 * figures for this server are those measured in docs/benchmarks.md. */
memoryEstimate migrateEstimate(connection *c, const char *keyspace, uint64_t count);

#endif

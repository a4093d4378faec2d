/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iterates over the keys of a command with many keys, in chunks: the hashes of a chunk are computed
 * together and the memory its lookups will read is prefetched, so that the cache misses overlap.
 *
 *     keyWalk w;
 *     keyWalkInit(&w, c, 1, c->argc, 1);
 *     while (keyWalkNext(&w)) dbFind(c->db, w.key, w.hash, c->now_ms);
 *
 * The keyspace may change between two steps: prefetching is only a hint. */
#ifndef CMD_KEY_WALK_H
#define CMD_KEY_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/ctx.h"

enum { KEY_WALK_CHUNK = 32 };

typedef struct keyWalk {
    slice key;     /* the current key */
    int arg_index; /* its index in argv */
    uint64_t hash;
    const ctx *c; /* private from here on */
    int end, step, at, ready;
    uint64_t hashes[KEY_WALK_CHUNK];
} keyWalk;

/* Iterates over every `step`th argument in [first, end). */
void keyWalkInit(keyWalk *w, const ctx *c, int first, int end, int step);
/* Advances to the next key; false at the end. */
bool keyWalkNext(keyWalk *w);

#endif

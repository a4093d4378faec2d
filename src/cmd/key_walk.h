/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walking over the keys of a command that has many, some at a time: a chunk's hashes are computed together
 * and the memory that lookups will want is fetched for the whole chunk, so that the misses overlap.
 *
 *     keyWalk w;
 *     keyWalkInit(&w, c, 1, c->argc, 1);
 *     while (keyWalkNext(&w)) dbFind(c->db, w.key, w.hash, c->now_ms);
 *
 * The keyspace may change between two steps: only hints are kept. */
#ifndef CMD_KEY_WALK_H
#define CMD_KEY_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/ctx.h"

enum { KEY_WALK_CHUNK = 32 };

typedef struct keyWalk {
    slice key; /* the present one */
    int place; /* its place in argv */
    uint64_t hash;
    const ctx *c; /* private from here on */
    int end, step, at, ready;
    uint64_t hashes[KEY_WALK_CHUNK];
} keyWalk;

/* Over every `step`th argument from `first`, those below `end`. */
void keyWalkInit(keyWalk *w, const ctx *c, int first, int end, int step);
/* Steps to the next key; false when there is none. */
bool keyWalkNext(keyWalk *w);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Iterates over the keys of commands with many keys (key_walk.h). No allocation. Main thread
 * only. */
#include "cmd/key_walk.h"

#include "base/base.h"
#include "store/store.h"

void keyWalkInit(keyWalk *w, const ctx *c, int first, int end, int step) {
    check(step > 0);
    w->c = c;
    w->arg_index = first - step;
    w->end = end;
    w->step = step;
    w->at = w->ready = 0;
}

/* A single key: its hash and prefetch were done for the batch (executeResolve(),
 * executePrefetch()). */
static inline bool isPrepared(const keyWalk *w, int arg_index) {
    return arg_index == 1 && w->c->cmd->first_key == 1 && arg_index + w->step >= w->end;
}

/* Hashes the next chunk of keys and prefetches what the lookups will read. */
static void fill(keyWalk *w) {
    hotCheck(w->arg_index + w->step < w->end);
    hotCheck(w->at == w->ready);
    storeWant wants[KEY_WALK_CHUNK];
    int n = 0;
    if (isPrepared(w, w->arg_index + w->step)) {
        w->hashes[0] = w->c->key_hash;
        w->ready = 1;
        w->at = 0;
        return;
    }
    for (int i = w->arg_index + w->step; i < w->end && n < KEY_WALK_CHUNK; i += w->step, n++) {
        w->hashes[n] = storeHash(w->c->argv[i]);
        wants[n] = (storeWant){.db = w->c->db, .hash = w->hashes[n]};
    }
    storePrefetch(wants, n);
    w->ready = n;
    w->at = 0;
}

bool keyWalkNext(keyWalk *w) {
    hotCheck(w->at <= w->ready);
    hotCheck(w->ready <= KEY_WALK_CHUNK);
    if (w->arg_index + w->step >= w->end) return false;
    if (w->at == w->ready) fill(w);
    w->arg_index += w->step;
    w->key = w->c->argv[w->arg_index];
    w->hash = w->hashes[w->at++];
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of commands that have many (key_walk.h). No allocation. Main thread only. */
#include "cmd/key_walk.h"

#include "base/base.h"
#include "store/store.h"

void keyWalkInit(keyWalk *w, const ctx *c, int first, int end, int step) {
    check(step > 0);
    w->c = c;
    w->place = first - step;
    w->end = end;
    w->step = step;
    w->at = w->ready = 0;
}

/* A single key, which the batch has hashed and fetched (executeResolve(), executePrefetch()). */
static inline bool isPrepared(const keyWalk *w, int place) {
    return place == 1 && w->c->cmd->first_key == 1 && place + w->step >= w->end;
}

/* Hashes the next chunk and fetches what its lookups will read. */
static void fill(keyWalk *w) {
    storeWant wants[KEY_WALK_CHUNK];
    int n = 0;
    if (isPrepared(w, w->place + w->step)) {
        w->hashes[0] = w->c->key_hash;
        w->ready = 1;
        w->at = 0;
        return;
    }
    for (int i = w->place + w->step; i < w->end && n < KEY_WALK_CHUNK; i += w->step, n++) {
        w->hashes[n] = storeHash(w->c->argv[i]);
        wants[n] = (storeWant){.db = w->c->db, .hash = w->hashes[n]};
    }
    storePrefetch(wants, n);
    w->ready = n;
    w->at = 0;
}

bool keyWalkNext(keyWalk *w) {
    if (w->place + w->step >= w->end) return false;
    if (w->at == w->ready) fill(w);
    w->place += w->step;
    w->key = w->c->argv[w->place];
    w->hash = w->hashes[w->at++];
    return true;
}

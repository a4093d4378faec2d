/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of commands that have many (key_walk.h). No allocation. Main thread only. */
#include "cmd/key_walk.h"

#include "base/base.h"
#include "base/hash.h"
#include "store/store.h"

void keyWalkInit(keyWalk *w, const ctx *c, int first, int end, int step) {
    check(step > 0);
    w->c = c;
    w->place = first - step;
    w->end = end;
    w->step = step;
    w->at = w->ready = 0;
}

/* Hashes the next chunk and fetches in two steps what its lookups will read. */
static void fill(keyWalk *w) {
    int n = 0;
    for (int i = w->place + w->step; i < w->end && n < KEY_WALK_CHUNK; i += w->step, n++) {
        slice key = w->c->argv[i];
        w->hashes[n] = hashBytes(key.ptr, key.len);
        storePrefetchTable(w->c->db, key, w->hashes[n]);
    }
    for (int k = 0, i = w->place + w->step; k < n; k++, i += w->step)
        storePrefetchObject(w->c->db, w->c->argv[i], w->hashes[k]);
    w->ready = n;
    w->at = 0;
}

bool keyWalkNext(keyWalk *w) {
    if (w->at == w->ready) {
        fill(w);
        if (!w->ready) return false;
    }
    w->place += w->step;
    w->key = w->c->argv[w->place];
    w->hash = w->hashes[w->at++];
    return true;
}

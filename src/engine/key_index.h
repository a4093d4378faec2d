/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys that somebody watches (WATCH) or waits for, one index for all databases. Private to engine/. While it is
 * not empty, each changed key costs one lookup here. Main thread only. */
#ifndef ENGINE_KEY_INDEX_H
#define ENGINE_KEY_INDEX_H

#include "base/slice.h"
#include "ds/list.h"
#include "engine/hooks.h"

typedef struct indexedKey {
    list watchers;   /* watch.c's */
    list waits;      /* block.c's: the longest first */
    listNode waited; /* place among all keys that are waited for */
    listNode ready;  /* place among those of them that changed */
    int when_gone;   /* waits that want to hear that the key is gone */
    bool held;       /* being looked at: stays even when nobody cares for it any more */
    int db_id;
    size_t len;
    char bytes[];
} indexedKey;

static inline slice indexedKeyText(const indexedKey *k) { return sliceMake(k->bytes, k->len); }

/* NULL when nobody cares for the key. */
indexedKey *keyIndexFind(int db_id, slice key);
/* The same; made when it is missing. */
indexedKey *keyIndexGet(int db_id, slice key);
/* To be called when a list has lost a member: forgets a key that nobody cares for. */
void keyIndexDrop(indexedKey *k);

extern const keyObserver keyIndexObserver;

/* What the observer tells. */
void watchKeyChanged(db *d, indexedKey *k);
void blockKeyChanged(indexedKey *k);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Index of the keys that are watched (WATCH) or on which sessions are blocked, for all databases.
 * Private to engine/. While it is not empty, each changed key costs one lookup. Main thread
 * only. */
#ifndef ENGINE_KEY_INDEX_H
#define ENGINE_KEY_INDEX_H

#include "base/slice.h"
#include "ds/list.h"
#include "engine/hooks.h"

typedef struct indexedKey {
    list watchers;   /* used by watch.c */
    list waits;      /* used by block.c: longest waiting first */
    listNode waited; /* node in the list of all keys with blocked sessions */
    listNode ready;  /* node in the list of changed keys */
    int when_gone;   /* number of waits with `when_gone` */
    int held;        /* being processed: not freed even if its lists become empty */
    int db_id;
    size_t len;
    char bytes[];
} indexedKey;

static inline slice indexedKeyText(const indexedKey *k) { return sliceMake(k->bytes, k->len); }

/* NULL if the key is not in the index. */
indexedKey *keyIndexFind(int db_id, slice key);
/* Like keyIndexFind(), adding the key if necessary. */
indexedKey *keyIndexGet(int db_id, slice key);
/* Called after a member was removed from a list: frees the key if it is unused. */
void keyIndexDrop(indexedKey *k);

extern const keyObserver keyIndexObserver;

/* Called by the key observer. */
void watchKeyChanged(db *d, indexedKey *k);
void blockKeyChanged(indexedKey *k);

#endif

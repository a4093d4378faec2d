/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of the replication stream as requests: copied from the backlog and parsed, for readers of
 * changes. One thread at a time. */
#ifndef PSYNC_CHANGE_WINDOW_H
#define PSYNC_CHANGE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "psync/backlog.h"

typedef struct changeItem {
    int first, argc; /* of the words */
    int64_t last;    /* number of its last byte in the stream */
} changeItem;

typedef struct changeWindow {
    char *bytes; /* what the words point into */
    slice *words;
    changeItem *items;
    int word_count, word_cap, item_count, item_cap;
    bool bad;   /* the bytes after the items are no request */
    bool whole; /* the items are all there are */
} changeWindow;

/* Reads requests from byte `from` on, which the backlog has: about 256 KB of them, or what the
 * first unit needs. */
void changeWindowRead(changeWindow *w, replBacklog *b, int64_t from);
void changeWindowClear(changeWindow *w);
static inline const slice *changeWords(const changeWindow *w, const changeItem *item) {
    return w->words + item->first;
}
/* The index of the item after the unit that begins with item `i`: a request, or MULTI, its requests
 * and EXEC. 0: the unit is not complete. */
int changeUnitEnd(const changeWindow *w, int i);

#endif

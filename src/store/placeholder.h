/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Placeholders: keys of another server whose values this server has no type for, and which were
 * skipped. They are objects of TYPE_MODULE without content, so that whatever works on keys of any
 * type (RENAME, COPY, SWAPDB, expiry, ...) treats their names as the other server does. They are in
 * no file and no digest. Main thread, unless said otherwise. */
#ifndef STORE_PLACEHOLDER_H
#define STORE_PLACEHOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "store/object.h"

/* Each one takes as much memory as its name and about 100 bytes. */
enum { PLACEHOLDERS_MAX = 1000 * 1000 };

/* Whether commands that cannot store a value may store a placeholder: foreign-values skip. */
void placeholdersAllow(bool on);
bool placeholdersAreAllowed(void);
/* Called for each one that is made. */
void placeholdersSetProc(void (*made)(void));
/* A new object for the key; `type` is what TYPE tells. NULL: there are PLACEHOLDERS_MAX of them. */
robj *placeholderNew(slice key, const char *type);
/* ANY_THREAD. */
bool objectIsPlaceholder(const robj *o);
/* The type that TYPE tells of placeholders, ignoring case; NULL: no placeholder had it. */
const struct moduleType *placeholderTypeFind(slice name);
/* How many there are. */
uint64_t placeholderCount(void);

#endif

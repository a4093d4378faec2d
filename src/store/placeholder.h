/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Placeholders: keys of another server whose values were skipped because this server does not have
 * their type. They are objects of TYPE_MODULE without content, so that operations on keys of any
 * type (RENAME, COPY, SWAPDB, expiry, ...) treat their names as the other server does. Files and
 * digests do not include them. Main thread, unless said otherwise. */
#ifndef STORE_PLACEHOLDER_H
#define STORE_PLACEHOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "store/object.h"

/* A placeholder takes the memory of its name and about 100 bytes. */
enum { PLACEHOLDERS_MAX = 1000 * 1000 };

/* Allows commands that cannot store a value to store a placeholder: foreign-values skip. */
void placeholdersAllow(bool on);
bool placeholdersAreAllowed(void);
/* Sets the function that is called before a placeholder is created. */
void placeholdersSetProc(void (*made)(void));
/* Creates a placeholder for the key; `type` is the reply of TYPE for it. NULL: there are
 * PLACEHOLDERS_MAX placeholders. */
robj *placeholderNew(slice key, const char *type);
/* ANY_THREAD. */
bool objectIsPlaceholder(const robj *o);
/* Finds the type of placeholders for which TYPE replies `name`, ignoring case. NULL: there was no
 * placeholder of this type. */
const struct moduleType *placeholderTypeFind(slice name);
/* Number of placeholders. */
uint64_t placeholderCount(void);

#endif

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

/* A placeholder takes the memory of its name and about 100 bytes, and 8 bytes for each element that
 * it knows. */
enum {
    PLACEHOLDERS_MAX = 1000 * 1000,
    PLACEHOLDER_ITEMS_MAX = 16 * 1024,        /* known elements of one placeholder */
    PLACEHOLDER_ITEMS_TOTAL_MAX = 1000 * 1000 /* of all of them */
};

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
/* True if it could have been created with this type. */
bool placeholderHasType(const robj *o, const char *type);
/* Finds the type of placeholders for which TYPE replies `name`, ignoring case. NULL: there was no
 * placeholder of this type. */
const struct moduleType *placeholderTypeFind(slice name);
/* The elements of a skipped value are known only if commands of a stream have added all of them;
 * each is one number: an index, or the hash of a name. A new placeholder has unknown elements, and
 * they become unknown again beyond the limits above. Then the other functions do nothing. */
void placeholderItemsBegin(robj *o);
void placeholderItemsForget(robj *o);
void placeholderItemAdd(robj *o, int64_t item);
/* Removes the elements between two numbers, both included. */
void placeholderItemsRemove(robj *o, int64_t from, int64_t to);
/* True if the elements are known, and there is none. */
bool placeholderIsEmpty(const robj *o);
/* Number of placeholders. */
uint64_t placeholderCount(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Validation of packed values that come from outside, and conversion of the older packed forms
 * (ziplist, zipmap) to listpacks. All bytes are untrusted. Main thread. */
#ifndef FORMAT_PACKED_H
#define FORMAT_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Properties of a listpack found by packedCheck(). */
typedef struct packedFacts {
    size_t entries;
    size_t longest;    /* length of the longest entry as text */
    bool is_canonical; /* no string entry has the text of an integer */
} packedFacts;

/* False if the bytes are not a valid listpack of complete groups of `width` entries. O(bytes). */
bool packedCheck(slice bytes, unsigned width, packedFacts *out);
/* True if the first entries of the groups of a valid listpack, so many of `width`, differ. */
bool packedIsUnique(const uint8_t *lp, unsigned width, size_t groups);
/* Returns a listpack with the same entries, and integers encoded as integers, in a block of
 * memAlloc() that the caller frees. */
uint8_t *packedCanonical(const uint8_t *lp);

/* Converts a ziplist to a listpack in a block of memAlloc() that the caller frees; NULL if the
 * bytes are not a valid ziplist. */
uint8_t *packedFromZiplist(slice bytes);
/* The same for a zipmap: names and values alternate. */
uint8_t *packedFromZipmap(slice bytes);

#endif

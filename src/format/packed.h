/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Validation of packed values that come from outside, and conversion of the older packed forms (ziplist, zipmap)
 * to listpacks. All bytes are untrusted. Main thread. */
#ifndef FORMAT_PACKED_H
#define FORMAT_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* What is known of a listpack after packedCheck(). */
typedef struct packedFacts {
    size_t entries;
    size_t longest;    /* bytes of the longest entry as text */
    bool is_canonical; /* no entry is the text of an integer */
    bool is_unique;    /* the first entries of groups differ */
} packedFacts;

/* False when the bytes are no listpack of whole groups of `width` entries. O(bytes). */
bool packedCheck(slice bytes, unsigned width, packedFacts *out);
/* A listpack with the same entries, integers as integers; in a block of memAlloc() that the caller frees. */
uint8_t *packedCanonical(const uint8_t *lp);

/* The entries of a ziplist as a listpack in a block of memAlloc() that the caller frees; NULL when the bytes are no
 * ziplist. */
uint8_t *packedFromZiplist(slice bytes);
/* The same for a zipmap: names and values in turn. */
uint8_t *packedFromZipmap(slice bytes);

#endif

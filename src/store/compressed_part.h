/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts that are compressed one by one within a large collection: values of a hash's fields
 * (hash_element.h).
 *
 * They have the dictionary of their key's class, are users of it from compressedPartUse() to
 * compressedPartForget(), and count as compressed values in reports. Main thread only, except where
 * said otherwise. */
#ifndef STORE_COMPRESSED_PART_H
#define STORE_COMPRESSED_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "store/compressed.h"
#include "store/dictionary.h"

typedef struct compressedPart {
    uint32_t dictionary;
    size_t len;   /* of the text */
    slice packed; /* borrowed from the element */
} compressedPart;

/* Compresses a text of at most COMPRESSED_TEXT_MAX bytes to at most `most`; *out is valid until the
 * next call, and no user yet. False: it has more. */
bool compressedPartMake(const valueDictionary *d, slice text, size_t most,
                        compressedPart *out) MUST_USE;
/* The result of a compressedPartMake() is stored (true), or gains nothing. */
void compressedPartMade(bool stored);
void compressedPartUse(const compressedPart *part);
/* `drops` NULL: at once, by the main thread; else it is noted there. ANY_THREAD that owns it. */
void compressedPartForget(const compressedPart *part, compressedDrops *drops);
/* Writes the text, of `len` bytes, to `out`. Main thread or a forked child. */
void compressedPartExpand(const compressedPart *part, char *out);
/* The text, valid as long as that of compressedText(). */
slice compressedPartText(const compressedPart *part);
/* One more is stored plain again. */
void compressedPartRestored(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * digest: a 160-bit checksum of contents, to compare servers. Independent of the hash seed; not cryptographically
 * secure. ANY_THREAD. */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include <stdint.h>

#include "base/slice.h"

enum { DIGEST_HEX = 40 };

/* All zero if nothing was added. */
typedef struct digest {
    uint64_t word[3]; /* the upper half of the last one stays 0 */
} digest;

/* Adds bytes; depends on the order of calls. */
void digestMix(digest *d, slice bytes);
/* Adds another digest, independent of order; adding it twice removes it. */
void digestXor(digest *d, const digest *other);
/* Writes 40 hex digits, no NUL. */
void digestPrint(const digest *d, char out[DIGEST_HEX]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * digest: a 160-bit checksum of contents, to compare servers: the same contents have the same
 * digest on every server of this family (DEBUG DIGEST). Built from SHA-1 by two steps: add, which
 * does not depend on the order, and mix, which does. Main thread only. */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include <stdint.h>

#include "base/slice.h"

enum { DIGEST_BYTES = 20, DIGEST_HEX = 2 * DIGEST_BYTES };

/* All zero if nothing was added. */
typedef struct digest {
    uint8_t byte[DIGEST_BYTES];
} digest;

/* Adds the hash of the bytes, independent of the order of calls; adding the same twice removes
 * it. */
void digestAdd(digest *d, slice bytes);
/* The same with another digest as the bytes. */
void digestAddDigest(digest *d, const digest *other);
/* Adds bytes, then replaces the digest by its hash: depends on the order of calls. */
void digestMix(digest *d, slice bytes);
/* Mixes a number as 4 bytes in network order. */
void digestMixNumber(digest *d, uint32_t number);
/* Writes 40 hex digits, no NUL. */
void digestPrint(const digest *d, char out[DIGEST_HEX]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * digest: 160 bits that stand for content, so that two servers can be compared. The same on every server,
 * whatever its hash seed; no protection against an attacker. ANY_THREAD. */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include <stdint.h>

#include "base/slice.h"

enum { DIGEST_HEX = 40 };

/* All zero: nothing was added. */
typedef struct digest {
    uint64_t word[3]; /* the upper half of the last one stays 0 */
} digest;

/* Adds bytes, in order: a then b differs from b then a. */
void digestMix(digest *d, slice bytes);
/* Adds another digest, in any order; adding it twice takes it away again. */
void digestXor(digest *d, const digest *other);
/* Writes 40 hex digits, no NUL. */
void digestPrint(const digest *d, char out[DIGEST_HEX]);

#endif

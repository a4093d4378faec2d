/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests computed with SipHash and three fixed keys. */
#include "store/digest.h"

#include "base/base.h"
#include "base/hash.h"

/* Three hashes of 64 bits make 192; 160 are kept. */
static digest digestOf(const void *bytes, size_t len) {
    digest d;
    for (uint8_t i = 0; i < 3; i++) {
        uint8_t key[16] = {i, 'd', 'i', 'g', 'e', 's', 't'};
        d.word[i] = hashSip13(bytes, len, key);
    }
    d.word[2] &= UINT32_MAX;
    return d;
}

void digestXor(digest *d, const digest *other) {
    for (int i = 0; i < 3; i++) d->word[i] ^= other->word[i];
}

void digestMix(digest *d, slice bytes) {
    digest more = digestOf(bytes.ptr, bytes.len);
    digestXor(d, &more);
    /* Hashing again makes the result depend on the order. */
    *d = digestOf(d->word, sizeof(d->word));
}

void digestPrint(const digest *d, char out[DIGEST_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < DIGEST_HEX; i++) {
        out[i] = digits[d->word[i / 16] >> (4 * (i % 16)) & 15];
    }
}

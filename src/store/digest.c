/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests (digest.h). */
#include "store/digest.h"

#include <openssl/evp.h>

#include "base/base.h"

/* Looked up once: that takes longer than to hash a key. */
static struct {
    EVP_MD *sha1;
    EVP_MD_CTX *ctx;
} hash;

static digest hashOf(slice bytes) {
    if (!hash.ctx) {
        hash.sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
        hash.ctx = EVP_MD_CTX_new();
        check(hash.sha1 != NULL);
        check(hash.ctx != NULL);
    }
    digest d;
    unsigned len;
    bool done = EVP_DigestInit_ex2(hash.ctx, hash.sha1, NULL) &&
                EVP_DigestUpdate(hash.ctx, bytes.ptr, bytes.len) &&
                EVP_DigestFinal_ex(hash.ctx, d.byte, &len);
    check(done);
    check(len == DIGEST_BYTES);
    return d;
}

static slice bytesOf(const digest *d) { return sliceMake((const char *)d->byte, DIGEST_BYTES); }

void digestAdd(digest *d, slice bytes) {
    digest more = hashOf(bytes);
    for (int i = 0; i < DIGEST_BYTES; i++) d->byte[i] ^= more.byte[i];
}

void digestAddDigest(digest *d, const digest *other) { digestAdd(d, bytesOf(other)); }

void digestMix(digest *d, slice bytes) {
    digestAdd(d, bytes);
    *d = hashOf(bytesOf(d));
}

void digestMixNumber(digest *d, uint32_t number) {
    char bytes[4] = {(char)(number >> 24), (char)(number >> 16), (char)(number >> 8), (char)number};
    digestMix(d, sliceMake(bytes, sizeof(bytes)));
}

void digestPrint(const digest *d, char out[DIGEST_HEX]) {
    hotCheck(threadIsMain());
    hexPrint(out, d->byte, DIGEST_BYTES);
}

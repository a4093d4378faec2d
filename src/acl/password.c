/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes of passwords. ANY_THREAD. */
#include "acl/password.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "acl/rules.h"
#include "base/base.h"

_Static_assert(ACL_HASH_SIZE == SHA256_DIGEST_LENGTH, "a hash is a SHA-256");

void passwordHash(slice password, uint8_t *hash) {
    const unsigned char *done = SHA256((const unsigned char *)password.ptr, password.len, hash);
    check(done == hash);
}

bool passwordHashParse(slice text, uint8_t *hash) {
    if (text.len != 2 * ACL_HASH_SIZE) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool digit = c >= '0' && c <= '9';
        if (!digit && !(c >= 'a' && c <= 'f')) return false;
        uint8_t value = (uint8_t)(digit ? c - '0' : c - 'a' + 10);
        hash[i / 2] = (uint8_t)(i % 2 ? hash[i / 2] | value : value << 4);
    }
    return true;
}

bool passwordHashesEqual(const uint8_t *a, const uint8_t *b) {
    return CRYPTO_memcmp(a, b, ACL_HASH_SIZE) == 0;
}

void passwordWipe(slice argument) {
    /* The bytes belong to the request, which nothing reads after its command. */
    OPENSSL_cleanse((void *)(uintptr_t)argument.ptr, argument.len);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random bytes of the kernel for secrets; xoshiro256** (Blackman and Vigna 2018) with one state per
 * thread for everything else. Invariant: a seeded state is never all zero. ANY_THREAD. */
#include "base/random.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"

static void (*secret_source)(void *dst, size_t len); /* NULL: the kernel */
static __thread uint64_t state[4];
static __thread bool seeded;

void randomSetSecretSource(void (*source)(void *dst, size_t len)) { secret_source = source; }

void randomSecret(void *dst, size_t len) {
    if (secret_source) {
        secret_source(dst, len);
        return;
    }
    char *p = dst;
    while (len) {
        size_t part = sizeMin(len, 256); /* maximum of one getentropy() call */
        if (getentropy(p, part) != 0) panic("The kernel has no random bytes");
        p += part;
        len -= part;
    }
}

void randomHex(char *dst, size_t len) {
    static const char hex[] = "0123456789abcdef";
    uint8_t bytes[64];
    for (size_t i = 0; i < len; i++) {
        if (i % sizeof(bytes) == 0) randomSecret(bytes, sizeMin(len - i, sizeof(bytes)));
        dst[i] = hex[bytes[i % sizeof(bytes)] & 15];
    }
}

static uint64_t rotate(uint64_t x, int k) { return x << k | x >> (64 - k); }

/* SplitMix64 expands the seed to the whole state, which is never all zero. */
void randomSeed(uint64_t seed) {
    for (size_t i = 0; i < COUNT_OF(state); i++) {
        seed += 0x9e3779b97f4a7c15ull;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        state[i] = z ^ z >> 31;
    }
    seeded = true;
}

uint64_t randomNext(void) {
    if (unlikely(!seeded)) {
        uint64_t seed;
        randomSecret(&seed, sizeof(seed));
        randomSeed(seed);
    }
    uint64_t result = rotate(state[1] * 5, 7) * 9;
    uint64_t t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate(state[3], 45);
    return result;
}

/* Lemire's multiply-and-shift with rejection of the few products that would bias the result. */
uint64_t randomUniform(uint64_t bound) {
    check(bound > 0);
    __uint128_t product = (__uint128_t)randomNext() * bound;
    if ((uint64_t)product < bound) {
        uint64_t rejected_below = -bound % bound; /* 2^64 mod bound */
        while ((uint64_t)product < rejected_below) product = (__uint128_t)randomNext() * bound;
    }
    return (uint64_t)(product >> 64);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bit strings (bits.h). Counting uses the population count of vectors where the processor has it,
 * else it processes 512 bytes per step with AVX2, else single words. The bitwise operations use the
 * compiler's vectors. */
#include "base/bits.h"

#include "base/base.h"
#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { WORDS_BYTES = 32 };
/* One register with AVX2, else several. */
typedef uint64_t words __attribute__((vector_size(WORDS_BYTES), aligned(1), may_alias));

/* ------------------------------------------------------------------ counting */

static uint64_t countWords(const char *bytes, size_t len) {
    uint64_t sum[4] = {0};
    size_t i = 0;
    for (; i + 32 <= len; i += 32) {
        for (size_t k = 0; k < 4; k++)
            sum[k] += (uint64_t)__builtin_popcountll(loadU64(bytes + i + k * 8));
    }
    for (; i + 8 <= len; i += 8) sum[0] += (uint64_t)__builtin_popcountll(loadU64(bytes + i));
    for (; i < len; i++) sum[0] += (uint64_t)__builtin_popcount((unsigned char)bytes[i]);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

#if defined(__x86_64__)
enum { VECTOR = 32, BLOCK = 16 * VECTOR };

/* Population count of each 64-bit lane, using a lookup table for half bytes. */
__attribute__((target("avx2"))) static inline __m256i countVector(__m256i v) {
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                           2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    __m256i halves = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
    __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(v, low)),
                                    _mm256_shuffle_epi8(table, halves));
    return _mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

/* Full adder: adds the vectors `a` and `b` to *ones bit by bit and returns the carry. */
__attribute__((target("avx2"))) static inline __m256i addBits(__m256i *ones, __m256i a, __m256i b) {
    __m256i either = _mm256_xor_si256(*ones, a);
    __m256i carried = _mm256_or_si256(_mm256_and_si256(*ones, a), _mm256_and_si256(either, b));
    *ones = _mm256_xor_si256(either, b);
    return carried;
}

/* Bit-sliced counters: for each bit position, the number of ones seen so far as a binary number.
 * Each vector holds one binary digit of all of them. */
typedef struct bitSums {
    __m256i ones, twos, fours, eights;
} bitSums;

__attribute__((target("avx2"))) static inline __m256i addPair(bitSums *s, const char *at) {
    const __m256i *from = (const __m256i *)(const void *)at;
    return addBits(&s->ones, _mm256_loadu_si256(from), _mm256_loadu_si256(from + 1));
}

/* Adds eight vectors; returns the carry into the next digit. */
__attribute__((target("avx2"))) static inline __m256i addEight(bitSums *s, const char *at) {
    __m256i a = addPair(s, at), b = addPair(s, at + 2 * VECTOR);
    __m256i first = addBits(&s->twos, a, b);
    a = addPair(s, at + 4 * VECTOR);
    b = addPair(s, at + 6 * VECTOR);
    return addBits(&s->fours, first, addBits(&s->twos, a, b));
}

/* Four counters, because an addition has to wait for the previous one. `len` is a multiple of
 * BLOCK. */
__attribute__((target("avx512f,avx512vpopcntdq"))) static uint64_t countWide(const char *bytes,
                                                                             size_t len) {
    enum { COUNTERS = 4, WIDE = 64 };
    __m512i sums[COUNTERS];
    for (size_t k = 0; k < COUNTERS; k++) sums[k] = _mm512_setzero_si512();
    for (size_t i = 0; i < len; i += COUNTERS * WIDE) {
        for (size_t k = 0; k < COUNTERS; k++) {
            __m512i v = _mm512_loadu_si512(bytes + i + k * WIDE);
            sums[k] = _mm512_add_epi64(sums[k], _mm512_popcnt_epi64(v));
        }
    }
    __m512i low = _mm512_add_epi64(sums[0], sums[1]), high = _mm512_add_epi64(sums[2], sums[3]);
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
}

/* Harley-Seal popcount: a full population count is needed for only one vector in 16. `len` is a
 * multiple of BLOCK. */
__attribute__((target("avx2"))) static uint64_t countBlocks(const char *bytes, size_t len) {
    __m256i zero = _mm256_setzero_si256(), sum = zero;
    bitSums s = {zero, zero, zero, zero};
    for (size_t i = 0; i < len; i += BLOCK) {
        __m256i first = addEight(&s, bytes + i), second = addEight(&s, bytes + i + BLOCK / 2);
        sum = _mm256_add_epi64(sum, countVector(addBits(&s.eights, first, second)));
    }
    sum = _mm256_add_epi64(_mm256_slli_epi64(sum, 1), countVector(s.eights));
    sum = _mm256_add_epi64(_mm256_slli_epi64(sum, 1), countVector(s.fours));
    sum = _mm256_add_epi64(_mm256_slli_epi64(sum, 1), countVector(s.twos));
    sum = _mm256_add_epi64(_mm256_slli_epi64(sum, 1), countVector(s.ones));
    uint64_t parts[4];
    _mm256_storeu_si256((__m256i *)(void *)parts, sum);
    return parts[0] + parts[1] + parts[2] + parts[3];
}
#endif

uint64_t bitsCount(const char *bytes, size_t len) {
#if defined(__x86_64__)
    size_t whole = len / BLOCK * BLOCK;
    uint64_t (*count)(const char *, size_t) = NULL;
    if (whole && __builtin_cpu_supports("avx512vpopcntdq")) {
        count = countWide;
    } else if (whole && __builtin_cpu_supports("avx2")) {
        count = countBlocks;
    }
    if (count) return count(bytes, whole) + countWords(bytes + whole, len - whole);
#endif
    return countWords(bytes, len);
}

/* Masks within one byte: the bits from bit `from` on, and the bits before bit `end`. */
static unsigned tailMask(uint64_t from) { return 0xffu >> from % 8; }
static unsigned headMask(uint64_t end) { return ~tailMask(end) & 0xffu; }

uint64_t bitsCountRange(const char *bytes, uint64_t from, uint64_t end) {
    if (from >= end) return 0;
    size_t first = from / 8, last = end / 8; /* whole bytes are [first, last) */
    const unsigned char *u = (const unsigned char *)bytes;
    if (first == last)
        return (uint64_t)__builtin_popcount(u[first] & tailMask(from) & headMask(end));
    uint64_t sum = 0;
    if (from % 8) sum += (uint64_t)__builtin_popcount(u[first++] & tailMask(from));
    if (end % 8) sum += (uint64_t)__builtin_popcount(u[last] & headMask(end));
    return sum + bitsCount(bytes + first, last - first);
}

/* ------------------------------------------------------------------ finding */

/* Length of the whole steps at the start of `bytes` in which all 64-bit words equal `word`. */
ALWAYS_INLINE size_t skipAll(const char *bytes, size_t len, uint64_t word) {
    enum { STEP = 4 * WORDS_BYTES };
    const words expected = {word, word, word, word};
    size_t i = 0;
    for (; i + STEP <= len; i += STEP) {
        words differs = {0};
        for (size_t k = 0; k < STEP; k += WORDS_BYTES)
            differs |= *(const words *)(const void *)(bytes + i + k) ^ expected;
        if (differs[0] | differs[1] | differs[2] | differs[3]) break;
    }
    return i;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static size_t skipAvx2(const char *bytes, size_t len,
                                                       uint64_t word) {
    return skipAll(bytes, len, word);
}
#endif

static size_t skipEqual(const char *bytes, size_t len, uint64_t word) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return skipAvx2(bytes, len, word);
#endif
    return skipAll(bytes, len, word);
}

uint64_t bitsFind(const char *bytes, uint64_t from, uint64_t end, bool bit) {
    if (from >= end) return BITS_NONE;
    const unsigned char *u = (const unsigned char *)bytes;
    unsigned flip = bit ? 0 : 0xff;
    size_t at = from / 8, bytes_end = (end + 7) / 8;
    unsigned byte = (u[at] ^ flip) & tailMask(from);
    if (!byte) {
        uint64_t skipped = bit ? 0 : UINT64_MAX;
        at++;
        at += skipEqual(bytes + at, bytes_end - at, skipped);
        while (at + 8 <= bytes_end && loadU64(bytes + at) == skipped) at += 8;
        while (at < bytes_end && !(u[at] ^ flip)) at++;
        if (at == bytes_end) return BITS_NONE;
        byte = u[at] ^ flip;
    }
    uint64_t found = (uint64_t)at * 8 + (uint64_t)__builtin_clz(byte) - 24;
    return found < end ? found : BITS_NONE;
}

/* ------------------------------------------------------------------ combining */

typedef enum bitsHow { HOW_AND, HOW_OR, HOW_XOR } bitsHow;

ALWAYS_INLINE void combineAll(bitsHow how, char *to, const char *a, const char *b, size_t len) {
    size_t i = 0;
    for (; i + WORDS_BYTES <= len; i += WORDS_BYTES) {
        const words *left = (const words *)(const void *)(a + i);
        const words *right = (const words *)(const void *)(b + i);
        words *result = (words *)(void *)(to + i);
        *result = how == HOW_AND ? *left & *right : how == HOW_OR ? *left | *right : *left ^ *right;
    }
    for (; i < len; i++) {
        int left = a[i], right = b[i];
        int result = how == HOW_AND ? left & right : how == HOW_OR ? left | right : left ^ right;
        to[i] = (char)result;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void combineAvx2(bitsHow how, char *to, const char *a,
                                                        const char *b, size_t len) {
    switch (how) {
    case HOW_AND: combineAll(HOW_AND, to, a, b, len); break;
    case HOW_OR: combineAll(HOW_OR, to, a, b, len); break;
    case HOW_XOR: combineAll(HOW_XOR, to, a, b, len); break;
    }
}
#endif

ALWAYS_INLINE void combineBits(bitsHow how, char *to, const char *a, const char *b, size_t len) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        combineAvx2(how, to, a, b, len);
        return;
    }
#endif
    combineAll(how, to, a, b, len);
}

void bitsAnd(char *to, const char *a, const char *b, size_t len) {
    combineBits(HOW_AND, to, a, b, len);
}

void bitsOr(char *to, const char *a, const char *b, size_t len) {
    combineBits(HOW_OR, to, a, b, len);
}

void bitsXor(char *to, const char *a, const char *b, size_t len) {
    combineBits(HOW_XOR, to, a, b, len);
}

void bitsNot(char *restrict to, const char *restrict from, size_t len) {
    for (size_t i = 0; i < len; i++) to[i] = (char)~from[i];
}

/* ------------------------------------------------------------------ numbers */

uint64_t bitsRead(const char *bytes, size_t len, uint64_t from, unsigned count) {
    hotCheck(count >= 1);
    hotCheck(count <= 64);
    uint64_t first = from / 8, last = (from + count - 1) / 8;
    unsigned __int128 window = 0; /* up to nine bytes */
    for (uint64_t at = first; at <= last; at++)
        window = window << 8 | (at < len ? (unsigned char)bytes[at] : 0);
    uint64_t value = (uint64_t)(window >> (7 - (from + count - 1) % 8));
    return count == 64 ? value : value & ((UINT64_C(1) << count) - 1);
}

void bitsWrite(char *bytes, uint64_t from, unsigned count, uint64_t value) {
    hotCheck(count >= 1);
    hotCheck(count <= 64);
    uint64_t first = from / 8, last = (from + count - 1) / 8;
    unsigned shift = 7 - (unsigned)((from + count - 1) % 8);
    unsigned __int128 mask = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    unsigned __int128 window = ((unsigned __int128)value & mask) << shift;
    mask <<= shift;
    for (uint64_t at = last + 1; at-- > first; window >>= 8, mask >>= 8)
        bytes[at] =
            (char)(((unsigned char)bytes[at] & ~(unsigned)mask) | (unsigned)(window & 0xff));
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs of bits (bits.h). Counting takes 32 bytes at a time where the processor has AVX2, else words; combining
 * is left to the compiler's vectors. */
#include "base/bits.h"

#include "base/base.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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
enum {
    VECTOR = 32,
    ROUNDS_MAX = 31, /* a byte holds the sum of so many counts of up to 8 */
};

/* The bits of each byte, by a table of those of half a byte. */
__attribute__((target("avx2"))) static inline __m256i countBytes(__m256i v) {
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                           2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    __m256i halves = _mm256_and_si256(_mm256_srli_epi16(v, 4), low);
    return _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(v, low)),
                           _mm256_shuffle_epi8(table, halves));
}

/* `len` is a multiple of VECTOR. */
__attribute__((target("avx2"))) static uint64_t countVectors(const char *bytes, size_t len) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < len;) {
        __m256i round = _mm256_setzero_si256();
        size_t end = sizeMin(len, i + (size_t)ROUNDS_MAX * VECTOR);
        for (; i < end; i += VECTOR)
            round = _mm256_add_epi8(
                round, countBytes(_mm256_loadu_si256((const __m256i *)(const void *)(bytes + i))));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(round, _mm256_setzero_si256()));
    }
    uint64_t parts[4];
    _mm256_storeu_si256((__m256i *)(void *)parts, sum);
    return parts[0] + parts[1] + parts[2] + parts[3];
}
#endif

uint64_t bitsCount(const char *bytes, size_t len) {
#if defined(__x86_64__)
    if (len >= 256 && __builtin_cpu_supports("avx2")) {
        size_t whole = len / VECTOR * VECTOR;
        return countVectors(bytes, whole) + countWords(bytes + whole, len - whole);
    }
#endif
    return countWords(bytes, len);
}

/* The bits of a byte from place `from` on; of the ones before place `end`. */
static unsigned tailMask(uint64_t from) { return 0xffu >> from % 8; }
static unsigned headMask(uint64_t end) { return ~tailMask(end) & 0xffu; }

uint64_t bitsCountRange(const char *bytes, uint64_t from, uint64_t end) {
    if (from >= end) return 0;
    size_t first = from / 8, last = end / 8; /* whole bytes: first to before last */
    const unsigned char *u = (const unsigned char *)bytes;
    if (first == last)
        return (uint64_t)__builtin_popcount(u[first] & tailMask(from) & headMask(end));
    uint64_t sum = 0;
    if (from % 8) sum += (uint64_t)__builtin_popcount(u[first++] & tailMask(from));
    if (end % 8) sum += (uint64_t)__builtin_popcount(u[last] & headMask(end));
    return sum + bitsCount(bytes + first, last - first);
}

/* ------------------------------------------------------------------ finding */

uint64_t bitsFind(const char *bytes, uint64_t from, uint64_t end, bool bit) {
    if (from >= end) return BITS_NONE;
    const unsigned char *u = (const unsigned char *)bytes;
    unsigned flip = bit ? 0 : 0xff;
    size_t at = from / 8, bytes_end = (end + 7) / 8;
    unsigned byte = (u[at] ^ flip) & tailMask(from);
    if (!byte) {
        uint64_t boring = bit ? 0 : UINT64_MAX;
        at++;
        while (at + 8 <= bytes_end && loadU64(bytes + at) == boring) at += 8;
        while (at < bytes_end && !(u[at] ^ flip)) at++;
        if (at == bytes_end) return BITS_NONE;
        byte = u[at] ^ flip;
    }
    uint64_t found = (uint64_t)at * 8 + (uint64_t)__builtin_clz(byte) - 24;
    return found < end ? found : BITS_NONE;
}

/* ------------------------------------------------------------------ combining */

void bitsAnd(char *restrict to, const char *restrict from, size_t len) {
    for (size_t i = 0; i < len; i++) to[i] &= from[i];
}

void bitsOr(char *restrict to, const char *restrict from, size_t len) {
    for (size_t i = 0; i < len; i++) to[i] |= from[i];
}

void bitsXor(char *restrict to, const char *restrict from, size_t len) {
    for (size_t i = 0; i < len; i++) to[i] ^= from[i];
}

void bitsNot(char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) bytes[i] = (char)~bytes[i];
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

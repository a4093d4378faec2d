/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unaligned loads and stores in little-endian byte order, prefetch, small arithmetic. Header
 * only. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CACHE_LINE 64
#define ALIGNED(n) __attribute__((aligned(n)))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NO_INLINE __attribute__((noinline))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(ptr, type, field) ((type *)((char *)(ptr)-offsetof(type, field)))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "this server runs on little-endian machines only"
#endif

static inline uint16_t loadU16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline uint32_t loadU32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline uint64_t loadU64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline void storeU16(void *p, uint16_t v) { memcpy(p, &v, sizeof(v)); }
static inline void storeU32(void *p, uint32_t v) { memcpy(p, &v, sizeof(v)); }
static inline void storeU64(void *p, uint64_t v) { memcpy(p, &v, sizeof(v)); }

/* Prefetches the cache line at `p`. Inline assembly where possible: gcc treats a function that
 * contains only __builtin_prefetch() as free of side effects and removes calls to it. */
static inline void prefetchRead(const void *p) {
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)p));
#else
    __builtin_prefetch(p, 0, 3);
#endif
}
static inline void prefetchWrite(const void *p) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
    __builtin_prefetch(p, 1, 3);
#endif
}

static inline size_t sizeMin(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t sizeMax(size_t a, size_t b) { return a > b ? a : b; }
/* `n` rounded up to a multiple of `step`, a power of two. */
static inline size_t sizeRoundUp(size_t n, size_t step) { return (n + step - 1) & ~(step - 1); }
/* The least power of two that is at least `n`; 1 for 0. */
static inline size_t sizePowerOfTwo(size_t n) {
    return n <= 1 ? 1 : (size_t)1 << (64 - __builtin_clzll((unsigned long long)(n - 1)));
}

/* True for the lengths of bytesEqualWords(). */
ALWAYS_INLINE bool bytesAreWords(size_t len) { return len - 4 <= 28; }
/* memcmp() == 0, for 4 to 32 bytes. */
ALWAYS_INLINE bool bytesEqualWords(const void *a, const void *b, size_t len) {
    const char *p = a, *q = b;
    if (len > 8) {
        if (loadU64(p) != loadU64(q)) return false;
        for (size_t i = 8; i + 8 < len; i += 8)
            if (loadU64(p + i) != loadU64(q + i)) return false;
    } else if (len < 8) {
        return loadU32(p) == loadU32(q) && loadU32(p + len - 4) == loadU32(q + len - 4);
    }
    return loadU64(p + len - 8) == loadU64(q + len - 8);
}
/* memcmp() == 0, without a call for 4 to 32 bytes. */
ALWAYS_INLINE bool bytesEqual(const void *a, const void *b, size_t len) {
    return bytesAreWords(len) ? bytesEqualWords(a, b, len) : memcmp(a, b, len) == 0;
}

/* Copies up to 64 bytes without a function call, as two moves that may overlap. */
ALWAYS_INLINE void bytesCopyShort(char *to, const char *from, size_t len) {
    if (len >= 32) {
        memcpy(to, from, 32);
        memcpy(to + len - 32, from + len - 32, 32);
    } else if (len >= 16) {
        memcpy(to, from, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else if (len >= 8) {
        storeU64(to, loadU64(from));
        storeU64(to + len - 8, loadU64(from + len - 8));
    } else if (len >= 4) {
        storeU32(to, loadU32(from));
        storeU32(to + len - 4, loadU32(from + len - 4));
    } else if (len > 0) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}
/* memcpy() for what is mostly short. */
ALWAYS_INLINE void bytesCopy(char *to, const char *from, size_t len) {
    if (len <= 64) {
        bytesCopyShort(to, from, len);
    } else {
        memcpy(to, from, len);
    }
}

/* isspace() in the locale "C". */
static inline bool byteIsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The byte as unsigned, with A-Z mapped to a-z. Independent of the locale. */
static inline uint8_t byteFold(char c) {
    return (uint8_t)((unsigned)((uint8_t)c - 'A') < 26u ? c | 0x20 : c);
}
/* The byte with a-z mapped to A-Z. Independent of the locale. */
static inline char byteUpper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }
/* The value of a hexadecimal digit in either case, -1 for other characters. */
static inline int hexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)byteFold(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
/* Writes two lower-case hexadecimal digits for each byte, no NUL. */
static inline void hexPrint(char *dst, const void *bytes, size_t len) {
    const uint8_t *from = bytes;
    for (size_t i = 0; i < len; i++) {
        dst[2 * i] = "0123456789abcdef"[from[i] >> 4];
        dst[2 * i + 1] = "0123456789abcdef"[from[i] & 15];
    }
}

/* byteFold() of eight bytes at once. */
static inline uint64_t bytesFold8(uint64_t x) {
    const uint64_t ones = 0x0101010101010101ull;
    uint64_t low = x & ones * 0x7f;
    /* Bit 7 of each byte: set from 'A' on, cleared again after 'Z' and for bytes above 127. */
    uint64_t upper = (low + ones * (0x80 - 'A')) & ~(low + ones * (0x7f - 'Z')) & ~x & ones * 0x80;
    return x | upper >> 2;
}

#endif

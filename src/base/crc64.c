/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-64/Jones: eight bytes per step with tables, or 64 bytes per step by carry-less multiplication
 * where the processor has it (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009).
 *
 * Invariant: tables[k][b] is the checksum of byte b followed by k zero bytes, so the checksum of
 * eight bytes is the XOR of eight independent table lookups. ANY_THREAD. */
#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

#include "base/bytes.h"
#include "base/crc_table.h"
#include "base/base.h"
#include "base/hash.h"

static const uint64_t tables[8][256] = {
    CRC_TABLE(0x7ad870c830358979ull, 0xf5b0e190606b12f2ull, 0xc038e5739841b68full,
              0xab28ecb46814fe75ull, 0x7d08ff3b88be6f81ull, 0xfa11fe77117cdf02ull,
              0xdf7adabd7a6e2d6full, 0x95ac9329ac4bc9b5ull),
    CRC_TABLE(0x89e99ffd73bddf69ull, 0x388a19a9bfec2db9ull, 0x711433537fd85b72ull,
              0xe22866a6ffb0b6e4ull, 0xef09eb1ea7f6fea3ull, 0xf54af06e177a6e2dull,
              0xc1ccc68f76634f31ull, 0xa8c0ab4db4510d09ull),
    CRC_TABLE(0xf4125129ce4038beull, 0xc37d8400c417e217ull, 0xada22e52d0b85745ull,
              0x701d7af6f9e73de1ull, 0xe03af5edf3ce7bc2ull, 0xeb2ccd88bf0b64efull,
              0xfd00bd4226815ab5ull, 0xd1585cd715952601ull),
    CRC_TABLE(0x8ce168638c796306ull, 0x329bf69440655567ull, 0x6537ed2880caaaceull,
              0xca6fda510195559cull, 0xbf8692f15bbd3853ull, 0x545403b1efede3cdull,
              0xa8a80763dfdbc79aull, 0x7a092894e7201c5full),
    CRC_TABLE(0x3504e58b9ba6dd1eull, 0x6a09cb17374dba3cull, 0xd413962e6e9b7478ull,
              0x837e0a0f85a17b9bull, 0x2da5324c53d5645dull, 0x5b4a6498a7aac8baull,
              0xb694c9314f559174ull, 0x4670b431c63cb183ull),
    CRC_TABLE(0xe39d1389931b9354ull, 0xec6301407ea0b5c3ull, 0xf39f24d3a5d6f8edull,
              0xcc676ff4133a62b1ull, 0xb397f9bb7ee35609ull, 0x4c76d525a5513f79ull,
              0x98edaa4b4aa27ef2ull, 0x1a8272c5cdd36e8full),
    CRC_TABLE(0x62a95de6e302eff2ull, 0xc552bbcdc605dfe4ull, 0xa1fc51c8d49c2ca3ull,
              0x68a185c2f1afca2dull, 0xd1430b85e35f945aull, 0x89df31589e28bbdfull,
              0x38e744e264c6e4d5ull, 0x71ce89c4c98dc9aaull),
    CRC_TABLE(0x381d0015c96f4444ull, 0x703a002b92de8888ull, 0xe074005725bd1110ull,
              0xebb126fd13edb14bull, 0xfc3b6ba97f4cf1fdull, 0xd32ff101a60e7091ull,
              0x8d06c450148b7249ull, 0x3154aef3718177f9ull),
};

static uint64_t crcByTables(uint64_t crc, const uint8_t *p, size_t len) {
    for (; len >= 8; len -= 8, p += 8) {
        crc ^= loadU64(p);
        crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^
              tables[4][crc >> 24 & 255] ^ tables[3][crc >> 32 & 255] ^ tables[2][crc >> 40 & 255] ^
              tables[1][crc >> 48 & 255] ^ tables[0][crc >> 56];
    }
    for (; len; len--, p++) crc = tables[0][(crc ^ *p) & 255] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)

enum { FOLD_BYTES = 64, LANE_BYTES = 16, FOLD_MIN = 4 * FOLD_BYTES };

/* Moves a lane `d` bits towards the end of the message, where `keys` are the reflected x^(d+63)
 * (for the lane's first half) and x^(d-1) modulo the polynomial, and adds what is there. */
#define FOLD(lane, keys, there) \
    _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128((lane), (keys), 0x00), \
                                _mm_clmulepi64_si128((lane), (keys), 0x11)), \
                  (there))

static inline __m128i lane(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }

__attribute__((target("pclmul,sse2"))) static uint64_t crcByFolding(uint64_t crc, const uint8_t *p,
                                                                    size_t len) {
    const __m128i by_512 =
        _mm_set_epi64x((long long)0xf49784a634f014e4ull, (long long)0xaf86efb16d9ab4fbull);
    const __m128i by_128 =
        _mm_set_epi64x((long long)0x381d0015c96f4444ull, (long long)0xd9d7be7d505da32cull);
    __m128i a = _mm_xor_si128(lane(p), _mm_set_epi64x(0, (long long)crc));
    __m128i b = lane(p + LANE_BYTES), c = lane(p + 2 * LANE_BYTES), d = lane(p + 3 * LANE_BYTES);
    for (p += FOLD_BYTES, len -= FOLD_BYTES; len >= FOLD_BYTES;
         p += FOLD_BYTES, len -= FOLD_BYTES) {
        a = FOLD(a, by_512, lane(p));
        b = FOLD(b, by_512, lane(p + LANE_BYTES));
        c = FOLD(c, by_512, lane(p + 2 * LANE_BYTES));
        d = FOLD(d, by_512, lane(p + 3 * LANE_BYTES));
    }
    b = FOLD(a, by_128, b);
    c = FOLD(b, by_128, c);
    d = FOLD(c, by_128, d);
    uint8_t last[LANE_BYTES];
    _mm_storeu_si128((__m128i *)last, d);
    return crcByTables(crcByTables(0, last, sizeof(last)), p, len);
}

static bool canFold(void) { return __builtin_cpu_supports("pclmul"); }

#else

enum { FOLD_MIN = 0 };
static uint64_t crcByFolding(uint64_t crc, const uint8_t *p, size_t len) {
    return crcByTables(crc, p, len);
}
static bool canFold(void) { return false; }

#endif

uint64_t crc64(uint64_t crc, const void *bytes, size_t len) {
    return len >= FOLD_MIN && canFold() ? crcByFolding(crc, bytes, len)
                                        : crcByTables(crc, bytes, len);
}

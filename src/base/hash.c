/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyed hash functions for tables, and the checksum that maps a key to its slot.
 *
 * Invariant: with the same seed, equal bytes have equal hashes, and hashBytesFold() of a text
 * equals hashBytes() of its lower-case form. About 10 ns for a 16-byte key. ANY_THREAD once the
 * seed is set. */
#include "base/hash.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc_table.h"

typedef struct sipState {
    uint64_t v0, v1, v2, v3;
} sipState;

static sipState seeded; /* the state before the first word, with the key of the process */

ALWAYS_INLINE uint64_t rotate(uint64_t x, int k) { return x << k | x >> (64 - k); }

ALWAYS_INLINE void sipRound(sipState *s) {
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

ALWAYS_INLINE void sipWord(sipState *s, uint64_t word) {
    s->v3 ^= word;
    sipRound(s);
    s->v0 ^= word;
}

/* The last len % 8 bytes of a text that ends at p + rest, as the low bytes of a word. Never reads
 * outside the text: with 8 bytes or more it loads the last eight and shifts, with fewer it combines
 * two overlapping halves. */
ALWAYS_INLINE uint64_t tailWord(const uint8_t *p, size_t rest, size_t len) {
    hotCheck(rest < 8);
    hotCheck(rest <= len);
    if (rest == 0) return 0;
    if (len >= 8) return loadU64(p + rest - 8) >> (64 - 8 * rest);
    if (rest >= 4) return loadU32(p) | (uint64_t)loadU32(p + rest - 4) << (8 * (rest - 4));
    return p[0] | (uint64_t)p[rest / 2] << (8 * (rest / 2)) |
           (uint64_t)p[rest - 1] << (8 * (rest - 1));
}

/* Every caller passes a constant `fold`, so the compiler emits two specialised functions. */
ALWAYS_INLINE uint64_t sip13(const void *bytes, size_t len, sipState s, bool fold) {
    const uint8_t *p = bytes;
    const uint8_t *end = p + (len & ~(size_t)7);
    for (; p != end; p += 8) sipWord(&s, fold ? bytesFold8(loadU64(p)) : loadU64(p));
    uint64_t tail = tailWord(p, len & 7, len);
    if (fold) tail = bytesFold8(tail);
    sipWord(&s, tail | (uint64_t)len << 56);
    s.v2 ^= 0xff;
    sipRound(&s);
    sipRound(&s);
    sipRound(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static sipState stateOf(const uint8_t key[16]) {
    uint64_t k0 = loadU64(key), k1 = loadU64(key + 8);
    return (sipState){k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
                      k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull};
}

void hashSetSeed(const uint8_t seed[16]) { seeded = stateOf(seed); }

uint64_t hashBytes(const void *bytes, size_t len) { return sip13(bytes, len, seeded, false); }

uint64_t hashBytesFold(const void *bytes, size_t len) { return sip13(bytes, len, seeded, true); }

uint64_t hashSip13(const void *bytes, size_t len, const uint8_t key[16]) {
    return sip13(bytes, len, stateOf(key), false);
}

/* crc16_tables[k][b] is the checksum of byte b followed by k zero bytes. */
static const uint16_t crc16_tables[8][256] = {
    CRC_TABLE(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188),
    CRC_TABLE(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98),
    CRC_TABLE(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a),
    CRC_TABLE(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38),
    CRC_TABLE(0xaa51, 0x4483, 0x8906, 0x022d, 0x045a, 0x08b4, 0x1168, 0x22d0),
    CRC_TABLE(0x45a0, 0x8b40, 0x06a1, 0x0d42, 0x1a84, 0x3508, 0x6a10, 0xd420),
    CRC_TABLE(0xb861, 0x60e3, 0xc1c6, 0x93ad, 0x377b, 0x6ef6, 0xddec, 0xabf9),
    CRC_TABLE(0x47d3, 0x8fa6, 0x0f6d, 0x1eda, 0x3db4, 0x7b68, 0xf6d0, 0xfd81),
};

uint16_t crc16(const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    uint16_t crc = 0;
    for (; len >= 8; len -= 8, p += 8) {
        crc = crc16_tables[7][p[0] ^ crc >> 8] ^ crc16_tables[6][p[1] ^ (crc & 255)] ^
              crc16_tables[5][p[2]] ^ crc16_tables[4][p[3]] ^ crc16_tables[3][p[4]] ^
              crc16_tables[2][p[5]] ^ crc16_tables[1][p[6]] ^ crc16_tables[0][p[7]];
    }
    for (; len; len--, p++) crc = (uint16_t)(crc << 8 ^ crc16_tables[0][crc >> 8 ^ *p]);
    return crc;
}

int hashSlot(slice key) {
    const char *open = key.len ? memchr(key.ptr, '{', key.len) : NULL;
    if (open) {
        const char *tag = open + 1;
        const char *close = memchr(tag, '}', (size_t)(key.ptr + key.len - tag));
        if (close && close != tag) key = sliceMake(tag, (size_t)(close - tag));
    }
    return crc16(key.ptr, key.len) & (SLOT_COUNT - 1);
}

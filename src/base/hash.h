/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hash functions: keyed SipHash-1-3 for tables, CRC-16 for cluster slots, CRC-64 for files.
 * ANY_THREAD. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"

#define SLOT_COUNT 16384

/* Sets the 16-byte hash key of the process, once at startup. It is random unless `hash-seed` is
 * configured. */
void hashSetSeed(const uint8_t seed[16]);
/* SipHash-1-3 (Aumasson and Bernstein 2012, reduced rounds) with the key of the process. */
uint64_t hashBytes(const void *bytes, size_t len);
/* Like hashBytes(), over the bytes converted to lower-case ASCII. */
uint64_t hashBytesFold(const void *bytes, size_t len);
/* SipHash-1-3 with an explicit key, for tests against published vectors. */
uint64_t hashSip13(const void *bytes, size_t len, const uint8_t key[16]);
/* CRC-16/XMODEM (polynomial 0x1021). */
uint16_t crc16(const void *bytes, size_t len);
/* The cluster slot of a key (0..16383): CRC-16 of its hash tag, the text between the first '{' and
 * the next '}', if that is not empty; else of the whole key. */
int hashSlot(slice key);
/* CRC-64/Jones (polynomial 0xad93d23594c935a9, reflected), continuing from `crc`. */
uint64_t crc64(uint64_t crc, const void *bytes, size_t len);

/* 16 bits without a key, of length, first, middle and last bytes: for tables of a few names, which
 * need not withstand chosen ones. */
ALWAYS_INLINE unsigned hashUnkeyed(const char *bytes, size_t len) {
    uint64_t x = len;
    if (len >= 8) {
        x += loadU64(bytes) * 3 + loadU64(bytes + len / 2 - 4) * 5 + loadU64(bytes + len - 8);
    } else if (len >= 4) {
        x += loadU32(bytes) + ((uint64_t)loadU32(bytes + len - 4) << 32);
    } else if (len > 0) {
        x += (uint64_t)((unsigned)(uint8_t)bytes[0] | (unsigned)(uint8_t)bytes[len / 2] << 8 |
                        (unsigned)(uint8_t)bytes[len - 1] << 16)
             << 8;
    }
    return (unsigned)((x ^ x >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 48);
}

/* The hash of an address, for tables of pointers. */
static inline uint64_t hashAddress(const void *address) {
    uint64_t x = (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

#endif

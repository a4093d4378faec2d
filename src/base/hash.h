/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hash functions: keyed SipHash-1-3 for tables, CRC-16 for slots, CRC-64 for files. ANY_THREAD. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define SLOT_COUNT 16384

/* The process's secret; set once at start (16 bytes), random unless `hash-seed` names it. */
void hashSetSeed(const uint8_t seed[16]);
/* SipHash-1-3 (Aumasson and Bernstein 2012, reduced rounds) under the process's seed. */
uint64_t hashBytes(const void *bytes, size_t len);
/* The same over bytes folded to lower-case ASCII. */
uint64_t hashBytesFold(const void *bytes, size_t len);
/* SipHash-1-3 under an explicit key, for tests against vectors. */
uint64_t hashSip13(const void *bytes, size_t len, const uint8_t key[16]);
/* CRC-16/XMODEM (polynomial 0x1021). */
uint16_t crc16(const void *bytes, size_t len);
/* The cluster slot of a key, 0..16383: CRC-16 of the first non-empty {tag}, or of all. */
int hashSlot(slice key);
/* CRC-64/Jones (polynomial 0xad93d23594c935a9, reflected), continuing from `crc`. */
uint64_t crc64(uint64_t crc, const void *bytes, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bit strings in memory. Bit 0 is the most significant bit of the first byte. ANY_THREAD. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITS_NONE UINT64_MAX

/* Number of bits set in `len` bytes. */
uint64_t bitsCount(const char *bytes, size_t len);
/* Number of bits set in the bit range [from, end). */
uint64_t bitsCountRange(const char *bytes, uint64_t from, uint64_t end);
/* Index of the first bit in [from, end) equal to `bit`; BITS_NONE if there is none. */
uint64_t bitsFind(const char *bytes, uint64_t from, uint64_t end, bool bit);

/* Store the result of the operation in `to`, which may be `a` or `b`; otherwise the buffers must
 * not overlap. */
void bitsAnd(char *to, const char *a, const char *b, size_t len);
void bitsOr(char *to, const char *a, const char *b, size_t len);
void bitsXor(char *to, const char *a, const char *b, size_t len);
/* The buffers must not overlap. */
void bitsNot(char *to, const char *from, size_t len);

/* Reads `count` bits (1 to 64) starting at bit `from` as an unsigned big-endian number. Bytes at or
 * beyond `len` read as zero and are not accessed. */
uint64_t bitsRead(const char *bytes, size_t len, uint64_t from, unsigned count);
/* Writes the lowest `count` bits of `value` where bitsRead() reads them. All affected bytes must
 * exist. */
void bitsWrite(char *bytes, uint64_t from, unsigned count, uint64_t value);

#endif

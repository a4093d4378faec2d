/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs of bits in memory. Bit 0 is the highest of the first byte. ANY_THREAD. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITS_NONE UINT64_MAX

/* How many bits of `len` bytes are set. */
uint64_t bitsCount(const char *bytes, size_t len);
/* The same for the bits from `from` to before `end`. */
uint64_t bitsCountRange(const char *bytes, uint64_t from, uint64_t end);
/* The first bit from `from` to before `end` that is `bit`; BITS_NONE when there is none. */
uint64_t bitsFind(const char *bytes, uint64_t from, uint64_t end, bool bit);

/* `to` takes the result of `to` and `from` byte by byte; they may not overlap. */
void bitsAnd(char *to, const char *from, size_t len);
void bitsOr(char *to, const char *from, size_t len);
void bitsXor(char *to, const char *from, size_t len);
void bitsNot(char *bytes, size_t len);

/* `count` bits, 1 to 64, from bit `from` on, as an unsigned number, the first being its highest. Bytes from `len`
 * on read as zeros and are not touched. */
uint64_t bitsRead(const char *bytes, size_t len, uint64_t from, unsigned count);
/* The lowest `count` bits of `value` go to where bitsRead() reads them; the bytes must be there. */
void bitsWrite(char *bytes, uint64_t from, unsigned count, uint64_t value);

#endif

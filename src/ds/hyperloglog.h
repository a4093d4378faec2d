/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HyperLogLog: estimates the number of distinct elements from 16,384 registers of 6 bits, in
 * Valkey's format:
 *
 *   ["HYLL"] [1: 0 dense, 1 sparse] [3 unused] [8: cached estimate; highest bit set: invalid]
 *   [registers]
 *
 * Dense registers are contiguous, lowest bit first. Sparse ones are runs: 00xxxxxx: 1 to 64 zeros;
 * 01xxxxxx and a byte: 1 to 16,384 zeros; 1vvvvvxx: 1 to 4 registers of value 1 to 32. The bytes
 * may come from users: every function that reads runs reports corrupt ones. ANY_THREAD. */
#ifndef DS_HYPERLOGLOG_H
#define DS_HYPERLOGLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"

enum {
    HLL_REGISTERS = 16384,
    HLL_HEAD_BYTES = 16,
    HLL_NEW_BYTES = HLL_HEAD_BYTES + 2, /* an empty sparse value */
    HLL_DENSE_BYTES = HLL_HEAD_BYTES + HLL_REGISTERS * 6 / 8,
    HLL_GROWTH_MAX = 3, /* maximum growth of a sparse value by one element */
};

/* True if a text has a valid header and, if dense, the right size. */
bool hllIsValid(slice bytes);
static inline bool hllIsSparse(const char *bytes) { return bytes[4] == 1; }
/* Writes an empty value of HLL_NEW_BYTES. */
void hllInit(char *bytes);

/* The cached estimate; false if it is invalid. */
bool hllCachedCount(const char *bytes, uint64_t *out);
void hllSetCachedCount(char *bytes, uint64_t count);
/* Invalidates the cached estimate. */
void hllInvalidateCount(char *bytes);

/* Effect of an element: its register is raised to `rank` if that is greater. */
typedef struct hllUpdate {
    unsigned index, rank;
} hllUpdate;
hllUpdate hllUpdateOf(slice element);

/* False if the register was not lower. */
bool hllRaiseDense(char *bytes, hllUpdate place);

typedef enum hllOutcome {
    HLL_SAME,    /* the register already has that rank */
    HLL_CHANGED, /* the register was raised */
    /* Not changed: the sparse representation would exceed `bytes_max` or the largest value. */
    HLL_FULL,
    HLL_CORRUPT, /* not changed: the runs do not cover the register */
} hllOutcome;
/* HLL_CHANGED here means that hllRaiseSparse() has something to do. */
hllOutcome hllTrySparse(slice bytes, hllUpdate place);
/* Requires space for HLL_GROWTH_MAX bytes after `*len`, which is updated. `bytes_max` is the limit
 * for the whole value. */
hllOutcome hllRaiseSparse(char *bytes, size_t *len, size_t bytes_max, hllUpdate place);

/* Raises each of the HLL_REGISTERS registers to that of `bytes`. False if these are corrupt; some
 * registers have changed then. */
bool hllMergeInto(uint8_t *registers, slice bytes) MUST_USE;
/* Sets to 0 the registers that are not above those of `bytes`, which is sparse. Corrupt runs and
 * those after them are left out. */
void hllKeepRaised(uint8_t *registers, slice bytes);
/* The first register from `from` on that is not 0; HLL_REGISTERS if there is none. */
unsigned hllNextRegister(const uint8_t *registers, unsigned from);
/* Writes the registers after the header, which becomes that of a dense value; there must be
 * HLL_DENSE_BYTES. */
void hllWriteDense(char *bytes, const uint8_t *registers);
uint64_t hllEstimate(const uint8_t *registers);

/* The implementations of the three functions above, each for processors with more instructions. */
typedef enum hllKernel { HLL_PLAIN, HLL_AVX2, HLL_AVX512 } hllKernel;
/* The one in use: the last one that the processor supports, up to the limit. */
hllKernel hllKernelNow(void);
/* For tests: uses none after `limit`. */
void hllLimitKernel(hllKernel limit);

/* A run of a sparse value. */
typedef struct hllRun {
    unsigned count, value; /* registers; value 0: zeros */
    bool is_wide;          /* a two-byte run of zeros */
} hllRun;
/* Reads the run at *at and advances *at (initially HLL_HEAD_BYTES); false at the end, or if the
 * last run is truncated. */
bool hllNextRun(slice bytes, size_t *at, hllRun *out);

#endif

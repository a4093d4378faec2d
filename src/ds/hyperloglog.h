/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HyperLogLog: how many different elements were seen, from 16,384 registers of 6 bits. The bytes are those every
 * server of the family reads and writes:
 *
 *   ["HYLL"] [1: 0 dense, 1 sparse] [3 unused] [8: the last estimate; the highest bit set: out of date] [registers]
 *
 * Dense registers follow each other, lowest bit first. Sparse ones are runs: 00xxxxxx: 1 to 64 zeros; 01xxxxxx and
 * a byte: 1 to 16,384 zeros; 1vvvvvxx: 1 to 4 registers of value 1 to 32. Bytes come from users: every function
 * that reads runs says so where they are broken. ANY_THREAD. */
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
    HLL_NEW_BYTES = HLL_HEAD_BYTES + 2, /* an empty sparse one */
    HLL_DENSE_BYTES = HLL_HEAD_BYTES + HLL_REGISTERS * 6 / 8,
    HLL_GROWTH_MAX = 3, /* bytes a sparse one may grow by with one element */
};

/* Whether a text has the head, and a dense one the size, of a HyperLogLog. */
bool hllIsValid(slice bytes);
static inline bool hllIsSparse(const char *bytes) { return bytes[4] == 1; }
/* Writes an empty one of HLL_NEW_BYTES. */
void hllInit(char *bytes);

/* The last estimate; false when it is out of date. */
bool hllKnownCount(const char *bytes, uint64_t *out);
void hllSetKnownCount(char *bytes, uint64_t count);
/* The estimate is out of date. */
void hllForgetCount(char *bytes);

/* What an element does: its register becomes `rank` if that is more. */
typedef struct hllPlace {
    unsigned index, rank;
} hllPlace;
hllPlace hllPlaceOf(slice element);

/* False: it had that rank already. */
bool hllRaiseDense(char *bytes, hllPlace place);

typedef enum hllOutcome {
    HLL_SAME,    /* the register has that rank already */
    HLL_CHANGED, /* it has it now */
    HLL_FULL,    /* nothing was done: the sparse form cannot say it within `bytes_max` */
    HLL_BROKEN,  /* nothing was done: the runs do not cover the register */
} hllOutcome;
/* HLL_CHANGED here: hllRaiseSparse() has something to do. */
hllOutcome hllTrySparse(slice bytes, hllPlace place);
/* There must be room for HLL_GROWTH_MAX bytes behind `*len`, which changes. `bytes_max`: of the whole. */
hllOutcome hllRaiseSparse(char *bytes, size_t *len, size_t bytes_max, hllPlace place);

/* Each of the HLL_REGISTERS registers becomes the larger of itself and that of `bytes`. False: these are broken;
 * registers have changed all the same. */
bool hllMergeInto(uint8_t *registers, slice bytes) MUST_USE;
/* Writes the registers behind a head, which becomes that of a dense one; room for HLL_DENSE_BYTES. */
void hllWriteDense(char *bytes, const uint8_t *registers);
uint64_t hllEstimate(const uint8_t *registers);

/* A run of a sparse one. */
typedef struct hllRun {
    unsigned count, value; /* registers; 0: zeros */
    bool is_wide;          /* zeros in two bytes */
} hllRun;
/* Reads the run at *at, which moves behind it (HLL_HEAD_BYTES to begin with); false at the end, or where the last
 * run is cut off. */
bool hllNextRun(slice bytes, size_t *at, hllRun *out);

#endif

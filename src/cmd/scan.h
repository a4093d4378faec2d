/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options shared by SCAN, SSCAN, HSCAN and ZSCAN. Main thread only. */
#ifndef CMD_SCAN_H
#define CMD_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/type.h"

typedef enum scanKind { SCAN_KEYS, SCAN_SET, SCAN_HASH, SCAN_ZSET } scanKind;

typedef struct scanOptions {
    int64_t count;   /* number of elements to visit per call; default 10 */
    slice pattern;   /* ptr NULL: all names match */
    size_t literal;  /* bytes at its start that match only themselves */
    bool names_only; /* NOVALUES, NOSCORES */
    bool has_type;   /* SCAN_KEYS only */
    typeFilter type;
} scanOptions;

/* Parses argument `arg_index` as a cursor. False: the error was replied. */
bool scanParseCursor(ctx *c, int arg_index, uint64_t *out);
/* Parses the options from argument `arg_index` on. False: the error was replied. */
bool scanParseOptions(ctx *c, int arg_index, scanKind kind, scanOptions *out);
/* True if a name matches the pattern. */
bool scanMatches(const scanOptions *o, slice name);

#endif

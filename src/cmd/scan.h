/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options SCAN, SSCAN, HSCAN and ZSCAN share. Main thread only. */
#ifndef CMD_SCAN_H
#define CMD_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/object.h"

typedef enum scanKind { SCAN_KEYS, SCAN_SET, SCAN_HASH, SCAN_ZSET } scanKind;

typedef struct scanOptions {
    int64_t count;   /* elements a call should return; 10 when not said */
    slice pattern;   /* ptr NULL: every name matches */
    bool names_only; /* NOVALUES, NOSCORES */
    bool has_type;   /* SCAN_KEYS only */
    valueType type;
} scanOptions;

/* Argument `place` as a cursor. False: the error was replied. */
bool scanParseCursor(ctx *c, int place, uint64_t *out);
/* The words from `place` on. False: the error was replied. */
bool scanParseOptions(ctx *c, int place, scanKind kind, scanOptions *out);
/* Whether a name is asked for. */
bool scanMatches(const scanOptions *o, slice name);

#endif

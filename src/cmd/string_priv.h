/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of string commands share: replies with a value, and the options behind SET, GETEX and MSETEX. */
#ifndef CMD_STRING_PRIV_H
#define CMD_STRING_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/object.h"

/* A string value as a bulk reply: by reference when it lies in a counted block. */
void stringReply(ctx *c, const robj *o);
/* A key that need not exist (NULL is fine) but must be a string: else WRONGTYPE is replied. */
bool stringIsType(ctx *c, const robj *o);
/* Replies that there is no memory for so large a value. */
void stringReplyNoMemory(ctx *c);

/* An option each; also which of them a command knows. */
enum stringOption {
    OPTION_NX = 1 << 0,
    OPTION_XX = 1 << 1,
    OPTION_IFEQ = 1 << 2,
    OPTION_GET = 1 << 3,
    OPTION_EX = 1 << 4,
    OPTION_PX = 1 << 5,
    OPTION_EXAT = 1 << 6,
    OPTION_PXAT = 1 << 7,
    OPTION_KEEPTTL = 1 << 8,
    OPTION_PERSIST = 1 << 9,
    OPTION_TIMES = OPTION_EX | OPTION_PX | OPTION_EXAT | OPTION_PXAT,
};

typedef struct stringOptions {
    uint32_t given;
    int compare;       /* place in argv of the value behind IFEQ */
    int time;          /* place of the number behind EX, PX, EXAT or PXAT */
    int64_t expire_ms; /* Unix time, OBJECT_NO_EXPIRE when none is given */
} stringOptions;

/* Parses argv from place `first` on; options not in `known` are a syntax error. False: the error was replied. */
bool stringOptionsParse(ctx *c, int first, uint32_t known, stringOptions *out);
/* The number of an option EX, PX, EXAT or PXAT as Unix time in ms. False: the error was replied. */
bool stringParseTime(ctx *c, slice number, enum stringOption unit, int64_t *out);

/* The block that argument `i` was read into, for dbSetString() to keep; NULL when there is none, or when the
 * value is small enough to stand in its object. */
static inline blob *stringTakeArg(ctx *c, int i) {
    return unlikely(c->argv[i].len > OBJECT_EMBED_MAX) ? ctxTakeArg(c, i) : NULL;
}

/* A key was set, with its time: both events. */
static inline void stringTellSet(ctx *c, slice key, int64_t expire_ms) {
    ctxKeyChanged(c, key, "set");
    if (expire_ms != OBJECT_NO_EXPIRE && engineHot.observers) ctxTellObservers(c, key, "expire");
}

#endif

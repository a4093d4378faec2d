/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of string commands: replies with a value, and the options of
 * SET, GETEX and MSETEX. */
#ifndef CMD_STRING_PRIV_H
#define CMD_STRING_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "engine/job.h"
#include "store/compressed.h"
#include "store/object.h"

/* jobStart() for a command that reads `len` bytes of a text, so many in the time of an element.
 * Texts that may be of compressed values are read in one piece: they are valid until the end of the
 * next command. */
enum { STRING_ELEMENT_BYTES = 512 };
static inline bool stringJobStart(ctx *c, size_t len) {
    return unlikely(len > COMPRESSED_TEXT_MAX) && jobStart(c, len / STRING_ELEMENT_BYTES);
}

/* Replies a string value as a bulk: by reference if it is stored in a blob. */
void stringReply(ctx *c, const robj *o);
/* True if the value (NULL: missing) is a string. Else replies WRONGTYPE. */
bool stringIsType(ctx *c, const robj *o);
/* Replies that memory is exhausted for a value of this size. */
void stringReplyNoMemory(ctx *c);

/* Deletes the first key, which exists; propagates and notifies it. */
void stringDeleteKey(ctx *c);

/* The options; also used as a mask of those a command supports. */
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
    OPTION_IFNE = 1 << 10,
    OPTION_IFDEQ = 1 << 11,
    OPTION_IFDNE = 1 << 12,
    OPTION_TIMES = OPTION_EX | OPTION_PX | OPTION_EXAT | OPTION_PXAT,
    OPTION_DIGESTS = OPTION_IFDEQ | OPTION_IFDNE, /* Valkey does not have them */
    /* Options that Valkey 9.1 does not have; they are not propagated. */
    OPTION_EXTENDED = OPTION_IFNE | OPTION_DIGESTS,
    /* Conditions on the value. */
    OPTION_COMPARES = OPTION_IFEQ | OPTION_EXTENDED,
};

typedef struct stringOptions {
    uint32_t given;
    int compare;       /* index in argv of the value or digest after IFEQ etc. */
    int time;          /* index of the number after EX, PX, EXAT or PXAT */
    int64_t expire_ms; /* Unix time in ms, OBJECT_NO_EXPIRE if not given */
} stringOptions;

/* Parses the options from argument `first` on; options not in `known` are a syntax error. False:
 * the error was replied. */
bool stringOptionsParse(ctx *c, int first, uint32_t known, stringOptions *out);
/* Converts the number of EX, PX, EXAT or PXAT to Unix time in ms. False: the error was replied. */
bool stringParseTime(ctx *c, slice number, enum stringOption unit, int64_t *out);

/* The option of OPTION_COMPARES with this name; 0: none. */
uint32_t stringConditionNamed(slice word);
/* Sets *out to whether a condition of OPTION_COMPARES holds for a string. `o` is NULL if the key is
 * missing, which differs from every value and digest. False: a digest is malformed, and the error
 * was replied. */
bool stringMeets(ctx *c, uint32_t condition, const robj *o, slice operand, bool *out);

/* The blob that argument `i` was read into, for dbSetString() to adopt; NULL if there is none, or
 * if the value is small enough to be embedded in its object. */
static inline blob *stringTakeArg(ctx *c, int i) {
    return unlikely(c->argv[i].len > OBJECT_EMBED_MAX) ? ctxTakeArg(c, i) : NULL;
}

/* Notifies the events of setting a key with this TTL. */
static inline void stringNotifySet(ctx *c, slice key, int64_t expire_ms) {
    ctxKeyChanged(c, key, &eventSet);
    if (expire_ms != OBJECT_NO_EXPIRE && engineHot.observers)
        ctxTellObservers(c, key, &eventExpire);
}

#endif

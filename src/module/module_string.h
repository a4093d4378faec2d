/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strings of modules: counted, always followed by a NUL as far as a module sees their bytes. The
 * arguments of a call are strings of one array, which borrow the bytes of the request: they are
 * copied when the module reads them as text, or keeps the string beyond the call.
 *
 * References are counted without atomic operations: a string is used by one thread at a time. */
#ifndef MODULE_MODULE_STRING_H
#define MODULE_MODULE_STRING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "module/generated/interface.h"

typedef struct argArray argArray;

struct ValkeyModuleString {
    str bytes;     /* borrowed: cap is 0, and the bytes are not its own */
    uint32_t refs; /* 0: free (of an array) */
    bool borrowed;
    argArray *array; /* that it is a part of; NULL: a block of its own */
};

/* The strings of a call. */
struct argArray {
    int live;  /* strings with references, and one while the call runs */
    int extra; /* references beyond the first of each string, and strings that own their bytes */
    int count;
    ValkeyModuleString **argv; /* count of them, the array that modules get */
    ValkeyModuleString items[];
};

/* Before the first one is made. */
void moduleStringsStart(void);
/* A copy of the bytes, with one reference. ANY_THREAD. */
ValkeyModuleString *moduleStringNew(slice bytes);
/* Takes over the contents of `bytes`. ANY_THREAD. */
ValkeyModuleString *moduleStringNewTake(str *bytes);
/* The bytes, not followed by a NUL; valid until the string changes. */
static inline slice moduleStringSlice(const ValkeyModuleString *s) {
    return sliceMake(s->bytes.ptr ? s->bytes.ptr : "", s->bytes.len);
}
/* The bytes followed by a NUL. */
const char *moduleStringText(ValkeyModuleString *s);
/* Makes the bytes its own: they remain when those of the request are gone. */
void moduleStringOwn(ValkeyModuleString *s);
/* Adds a reference for one who has it no longer than the call. */
static inline void moduleStringRef(ValkeyModuleString *s) {
    s->refs++;
    if (s->array) s->array->extra++;
}
/* Adds a reference for one who may keep it beyond the call. */
void moduleStringKeep(ValkeyModuleString *s);
void moduleStringRelease(ValkeyModuleString *s);

/* Before the first one is made. */
void argArraysStart(void);
/* The strings of a call with these arguments, which are borrowed. Main thread. */
argArray *argArrayNew(const slice *argv, int argc);
/* The call ends: strings that nobody keeps are freed. */
void argArrayEnd(argArray *a);
/* The slices of `count` strings, in `few` if there are at most `max`, else in memory that the
 * caller frees. */
slice *moduleStringSlices(ValkeyModuleString **strings, int count, slice *few, int max);

#endif

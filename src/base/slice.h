/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A slice is a borrowed byte range: pointer and length, no ownership, no terminator. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct slice {
    const char *ptr;
    size_t len;
} slice;

/* A slice of a string literal. */
#define SLICE(literal) ((slice){(literal), sizeof(literal) - 1})

static inline slice sliceMake(const void *ptr, size_t len) {
    return (slice){(const char *)ptr, len};
}

/* A slice over a C string, without its terminator. */
static inline slice sliceOf(const char *text) { return (slice){text, strlen(text)}; }

static inline bool sliceEqual(slice a, slice b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* True if the text begins with the prefix, or is equal to it. */
static inline bool sliceHasPrefix(slice text, slice prefix) {
    return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

/* Order of the bytes as unsigned numbers: negative, 0 or positive. A prefix comes before what it is
 * a prefix of. ANY_THREAD. */
static inline int sliceCompare(slice a, slice b) {
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* True if both are equal ignoring ASCII case. ANY_THREAD. */
bool sliceEqualFold(slice a, slice b);

/* sliceEqualFold() against a C string. ANY_THREAD. */
bool sliceIs(slice a, const char *word);
/* True if it consists of `len` lower-case hex digits, as ids do. */
bool sliceIsHex(slice a, size_t len);

/* Without blanks, tabs and CRs at both ends. */
static inline slice sliceTrim(slice s) {
    while (s.len && memchr(" \t\r", s.ptr[0], 3)) s.ptr++, s.len--;
    while (s.len && memchr(" \t\r", s.ptr[s.len - 1], 3)) s.len--;
    return s;
}

#endif

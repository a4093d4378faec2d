/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a list should hold: a plain array of texts. For one test file at a time. */
#ifndef TESTS_TEXT_MODEL_H
#define TESTS_TEXT_MODEL_H

#include <string.h>

#include "base/alloc.h"
#include "base/slice.h"

enum { TEXT_MODEL_MAX = 1000 };

static struct {
    char *bytes;
    size_t len;
} want[TEXT_MODEL_MAX];
static size_t want_count;

static inline slice wanted(size_t i) { return sliceMake(want[i].bytes, want[i].len); }

static inline void modelInsert(size_t at, slice s) {
    memmove(want + at + 1, want + at, (want_count - at) * sizeof(*want));
    want[at].bytes = memDup(s.ptr, s.len);
    want[at].len = s.len;
    want_count++;
}

static inline void modelDelete(size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) memFree(want[i].bytes);
    memmove(want + at, want + at + count, (want_count - at - count) * sizeof(*want));
    want_count -= count;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The prefix of a key's name, by which reports and dictionaries group keys. */
#ifndef STORE_KEY_PREFIX_H
#define STORE_KEY_PREFIX_H

#include <string.h>

#include "base/slice.h"

/* Longest prefix, with its separator. */
enum { KEY_PREFIX_MAX = 40 };

/* The text up to and including the first common separator; empty if there is none, or if it would
 * be longer than KEY_PREFIX_MAX. ANY_THREAD. */
static inline slice keyPrefix(slice key) {
    size_t most = key.len < KEY_PREFIX_MAX ? key.len : KEY_PREFIX_MAX;
    for (size_t i = 0; i < most; i++) {
        if (key.ptr[i] && strchr(":./|-_", key.ptr[i])) return sliceMake(key.ptr, i + 1);
    }
    return SLICE("");
}

#endif

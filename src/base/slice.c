/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing slices ignoring ASCII case, eight bytes per step. Bytes above 127 are compared
 * unchanged, independent of the locale. ANY_THREAD. */
#include "base/slice.h"

#include "base/bytes.h"

bool sliceEqualFold(slice a, slice b) {
    if (a.len != b.len) return false;
    const char *p = a.ptr, *q = b.ptr;
    size_t left = a.len;
    for (; left >= 8; left -= 8, p += 8, q += 8) {
        if (bytesFold8(loadU64(p)) != bytesFold8(loadU64(q))) return false;
    }
    for (; left; left--, p++, q++) {
        if (byteFold(*p) != byteFold(*q)) return false;
    }
    return true;
}

bool sliceIsHex(slice a, size_t len) {
    if (a.len != len) return false;
    for (size_t i = 0; i < len; i++) {
        if (!memchr("0123456789abcdef", a.ptr[i], 16)) return false;
    }
    return true;
}

bool sliceIs(slice a, const char *word) { return sliceEqualFold(a, sliceOf(word)); }

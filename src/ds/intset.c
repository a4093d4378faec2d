/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorted packed integers (format: intset.h).
 *
 * Invariant: integers are strictly ascending; the width suffices for all, and never decreases.
 * ANY_THREAD that owns the bytes. */
#include "ds/intset.h"

#include "base/assert.h"

static size_t widthOf(int64_t value) {
    if (value >= INT16_MIN && value <= INT16_MAX) return 2;
    return value >= INT32_MIN && value <= INT32_MAX ? 4 : 8;
}

static void setHeader(uint8_t *set, size_t width, size_t count) {
    hotCheck(width == 2 || width == 4 || width == 8);
    hotCheck(count <= UINT32_MAX);
    storeU32(set, (uint32_t)width);
    storeU32(set + 4, (uint32_t)count);
}

void intsetInit(uint8_t *at) { setHeader(at, 2, 0); }

static inline int64_t loadAt(const uint8_t *set, size_t width, size_t index) {
    const uint8_t *at = set + INTSET_HEADER + index * width;
    if (width == 2) return (int16_t)loadU16(at);
    if (width == 4) return (int32_t)loadU32(at);
    return (int64_t)loadU64(at);
}

static void storeAt(uint8_t *set, size_t width, size_t index, int64_t value) {
    hotCheck(widthOf(value) <= width);
    uint64_t bits = (uint64_t)value;
    memcpy(set + INTSET_HEADER + index * width, &bits, width);
}

int64_t intsetGet(const uint8_t *set, size_t index) {
    hotCheck(index < intsetCount(set));
    return loadAt(set, intsetWidth(set), index);
}

/* The first index whose integer is >= `value`. */
static inline size_t lowerBound(const uint8_t *set, size_t width, size_t count, int64_t value) {
    hotCheck(width == 2 || width == 4 || width == 8);
    size_t from = 0;
    while (count > 0) {
        size_t half = count / 2;
        bool below = loadAt(set, width, from + half) < value;
        from += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return from;
}

bool intsetFind(const uint8_t *set, int64_t value, size_t *index) {
    size_t width = intsetWidth(set), count = intsetCount(set), at;
    if (widthOf(value) > width) {
        at = value < 0 ? 0 : count;
    } else {
        at = lowerBound(set, width, count, value);
    }
    if (index) *index = at;
    return at < count && widthOf(value) <= width && loadAt(set, width, at) == value;
}

/* Whether the integer at `index` is between its neighbours. */
static inline bool isBetween(const uint8_t *set, size_t index) {
    size_t width = intsetWidth(set), count = intsetCount(set);
    int64_t value = loadAt(set, width, index);
    return (index == 0 || loadAt(set, width, index - 1) < value) &&
           (index + 1 == count || value < loadAt(set, width, index + 1));
}

/* A value that needs a greater width than all others is stored at one of the ends. */
static void addWidening(packBuffer *buffer, int64_t value) {
    hotCheck(widthOf(value) > intsetWidth(buffer->bytes));
    size_t old_width = intsetWidth(buffer->bytes), count = intsetCount(buffer->bytes);
    size_t width = widthOf(value), shift = value < 0;
    uint8_t *set = buffer->resize(buffer, INTSET_HEADER + width * (count + 1));
    /* From the end, so that nothing is overwritten before it is read. */
    for (size_t i = count; i-- > 0;) storeAt(set, width, i + shift, loadAt(set, old_width, i));
    storeAt(set, width, value < 0 ? 0 : count, value);
    setHeader(set, width, count + 1);
    hotCheck(isBetween(set, value < 0 ? 0 : count));
}

bool intsetAdd(packBuffer *buffer, int64_t value) {
    size_t width = intsetWidth(buffer->bytes), count = intsetCount(buffer->bytes), at;
    if (widthOf(value) > width) {
        addWidening(buffer, value);
        return true;
    }
    if (intsetFind(buffer->bytes, value, &at)) return false;
    uint8_t *set = buffer->resize(buffer, INTSET_HEADER + width * (count + 1));
    uint8_t *to = set + INTSET_HEADER + at * width;
    memmove(to + width, to, (count - at) * width);
    storeAt(set, width, at, value);
    setHeader(set, width, count + 1);
    hotCheck(isBetween(set, at));
    return true;
}

void intsetRemoveAt(packBuffer *buffer, size_t index) {
    uint8_t *set = buffer->bytes;
    size_t width = intsetWidth(set), count = intsetCount(set);
    check(index < count);
    uint8_t *to = set + INTSET_HEADER + index * width;
    memmove(to, to + width, (count - index - 1) * width);
    setHeader(set, width, count - 1);
    hotCheck(index == count - 1 || isBetween(set, index));
    (void)buffer->resize(buffer,
                         INTSET_HEADER + width * (count - 1)); /* the address is in `bytes` */
}

bool intsetRemove(packBuffer *buffer, int64_t value) {
    size_t at;
    if (!intsetFind(buffer->bytes, value, &at)) return false;
    intsetRemoveAt(buffer, at);
    return true;
}

bool intsetIsValid(const void *bytes, size_t size, bool deep) {
    const uint8_t *set = bytes;
    if (size < INTSET_HEADER) return false;
    size_t width = intsetWidth(set), count = intsetCount(set);
    if (width != 2 && width != 4 && width != 8) return false;
    if (size != INTSET_HEADER + width * count || count == 0) return false;
    for (size_t i = 1; deep && i < count; i++) {
        if (loadAt(set, width, i - 1) >= loadAt(set, width, i)) return false;
    }
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses ranges of slots from words of a command, prints them, and compares them.
 *
 * Invariant: ranges that slotRangesParse() accepts name no slot twice, and at that moment all of
 * their slots have the same owner. */
#include "bus/slot_ranges.h"

#include "base/base.h"
#include "base/number.h"

void slotRangesClear(slotRanges *r) {
    memFree(r->items);
    *r = (slotRanges){.items = NULL};
}

bool slotWordIs(slice argument, const char *word) {
    const char *end = argument.len ? memchr(argument.ptr, '\0', argument.len) : NULL;
    if (end) argument.len = (size_t)(end - argument.ptr);
    return sliceIs(argument, word);
}

static void add(slotRanges *r, slotRange range) {
    hotCheck(range.first <= range.last);
    hotCheck(range.last < SLOT_COUNT);
    r->items = memRealloc(r->items, (r->count + 1) * sizeof(*r->items));
    r->items[r->count++] = range;
}

slotRanges slotRangesCopy(const slotRange *items, size_t count) {
    slotRanges r = {.items = memNewArray(slotRange, count), .count = count};
    check(count > 0);
    memcpy(r.items, items, count * sizeof(*items));
    return r;
}

static status takeSlot(slice word, int *out, reason *why) {
    int64_t slot;
    if (!numberParseInt(word, &slot) || slot < 0 || slot >= SLOT_COUNT)
        return reasonSet(why, ERR_RANGE, "Invalid or out of range slot");
    *out = (int)slot;
    return OK;
}

/* All slots of the range have the owner *owner, or the first range defines it. */
static status takeOwner(slotRange range, const clusterMap *m, clusterNode **owner, reason *why) {
    for (int slot = range.first; slot <= range.last; slot++) {
        clusterNode *n = clusterMapOwner(m, slot);
        if (!n) return reasonSet(why, ERR_NOT_FOUND, "Slot %d has no node served.", slot);
        if (*owner && *owner != n)
            return reasonSet(why, ERR_DENIED, "Requested slots span multiple shards");
        *owner = n;
    }
    check(*owner);
    return OK;
}

static status testOverlap(const slotRanges *r, slotRange range, reason *why) {
    for (size_t i = 0; i < r->count; i++) {
        slotRange other = r->items[i];
        if (range.first > other.last || other.first > range.last) continue;
        return reasonSet(why, ERR_EXISTS, "Slot range %d-%d overlaps with previous range %d-%d.",
                         range.first, range.last, other.first, other.last);
    }
    return OK;
}

status slotRangesParse(slotRanges *out, const clusterMap *m, int argc, const slice *argv, int *used,
                       clusterNode **owner, reason *why) {
    int at = 0;
    int64_t number;
    *out = (slotRanges){.items = NULL};
    *owner = NULL;
    while (at < argc && numberParseInt(argv[at], &number)) {
        slotRange range = {0};
        status st = takeSlot(argv[at], &range.first, why);
        if (st != OK) return st;
        if (at + 1 == argc) return reasonSet(why, ERR_SYNTAX, "No end slot for final slot range");
        st = takeSlot(argv[at + 1], &range.last, why);
        if (st != OK) return st;
        if (range.first > range.last)
            return reasonSet(why, ERR_RANGE,
                             "Start slot number %d is greater than end slot number %d.",
                             range.first, range.last);
        st = takeOwner(range, m, owner, why);
        if (st == OK) st = testOverlap(out, range, why);
        if (st != OK) return st;
        add(out, range);
        at += 2;
    }
    *used = at;
    if (!out->count) return reasonSet(why, ERR_SYNTAX, "No slot ranges specified");
    check(at % 2 == 0);
    return OK;
}

void slotRangesPrint(const slotRanges *r, str *out) {
    check(r->count > 0);
    for (size_t i = 0; i < r->count; i++)
        strAppendFormat(out, "%s%d-%d", i ? " " : "", r->items[i].first, r->items[i].last);
}

bool slotRangesHave(const slotRanges *r, int slot) {
    hotCheck(slot < SLOT_COUNT);
    for (size_t i = 0; i < r->count; i++) {
        if (slot >= r->items[i].first && slot <= r->items[i].last) return true;
    }
    return false;
}

bool slotRangesOverlap(const slotRanges *a, const slotRanges *b) {
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < b->count; k++) {
            if (a->items[i].first <= b->items[k].last && b->items[k].first <= a->items[i].last)
                return true;
        }
    }
    return false;
}

void slotRangesAddTo(const slotRanges *r, slotMask *mask) {
    for (size_t i = 0; i < r->count; i++) {
        for (int slot = r->items[i].first; slot <= r->items[i].last; slot++)
            slotMaskAdd(mask, slot);
    }
}

bool slotRangesAreOf(const slotRanges *r, const clusterMap *m, const clusterNode *owner) {
    check(r->count > 0);
    for (size_t i = 0; i < r->count; i++) {
        for (int slot = r->items[i].first; slot <= r->items[i].last; slot++) {
            if (clusterMapOwner(m, slot) != owner) return false;
        }
    }
    return true;
}

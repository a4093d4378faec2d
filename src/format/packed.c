/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Validation of listpacks (packed.h). Duplicate names are detected with a hash table of at most two
 * words per group of entries. */
#include "format/packed.h"

#include "base/base.h"
#include "base/hash.h"
#include "ds/listpack.h"

/* Up to so many names the hash has no key: at worst each is compared with all others. */
enum { UNKEYED_NAMES = 128 };

/* Positions of the names seen so far, found by hash; open addressing, 0 is free. */
typedef struct nameTable {
    const uint8_t *lp;
    uint32_t *slots; /* offset of an entry in the listpack */
    size_t mask;
    bool keyed;
    uint32_t inline_slots[512];
} nameTable;

static void nameTableInit(nameTable *t, const uint8_t *lp, size_t names) {
    size_t slots = sizePowerOfTwo(sizeMax(names * 2, 16));
    t->lp = lp;
    t->mask = slots - 1;
    t->keyed = names > UNKEYED_NAMES;
    t->slots =
        slots <= COUNT_OF(t->inline_slots) ? t->inline_slots : memAlloc(slots * sizeof(uint32_t));
    memset(t->slots, 0, slots * sizeof(uint32_t));
}

static void nameTableClear(nameTable *t) {
    if (t->slots != t->inline_slots) memFree(t->slots);
}

/* False if there already is an entry with the same text. */
static bool nameTableAdd(nameTable *t, const uint8_t *at) {
    hotCheck(t->mask > 0);
    char digits[NUMBER_TEXT_MAX], other_digits[NUMBER_TEXT_MAX];
    slice name = listpackGetText(at, digits);
    uint64_t hash = t->keyed ? hashBytes(name.ptr, name.len) : hashUnkeyed(name.ptr, name.len);
    for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        if (t->slots[i] == 0) {
            t->slots[i] = (uint32_t)(at - t->lp);
            return true;
        }
        if (sliceEqual(listpackGetText(t->lp + t->slots[i], other_digits), name)) return false;
    }
}

bool packedCheck(slice bytes, unsigned width, packedFacts *out) {
    hotCheck(width > 0);
    hotCheck(width <= 3);
    *out = (packedFacts){.is_canonical = true};
    if (bytes.len > LISTPACK_SIZE_MAX || !listpackIsValid(bytes.ptr, bytes.len, true, NULL, NULL))
        return false;
    const uint8_t *lp = (const uint8_t *)bytes.ptr, *at = listpackFirst(lp);
    listpackItem item;
    for (; at; out->entries++) {
        at = listpackRead(at, &item);
        char digits[NUMBER_TEXT_MAX];
        slice text = listpackText(&item, digits);
        int64_t number;
        out->longest = sizeMax(out->longest, text.len);
        if (item.ptr && numberMayBeInt(text) && numberParseInt(text, &number))
            out->is_canonical = false;
    }
    return out->entries % width == 0;
}

bool packedIsUnique(const uint8_t *lp, unsigned width, size_t groups) {
    hotCheck(listpackCount(lp) == groups * width);
    nameTable names;
    nameTableInit(&names, lp, groups);
    bool unique = true;
    for (const uint8_t *at = listpackFirst(lp); at && unique; at = listpackNext(lp, at)) {
        unique = nameTableAdd(&names, at);
        for (unsigned i = 1; i < width; i++) at = listpackNext(lp, at);
    }
    nameTableClear(&names);
    return unique;
}

uint8_t *packedCanonical(const uint8_t *lp) {
    packBuffer buffer = packBufferHeap(listpackNew());
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        char digits[NUMBER_TEXT_MAX];
        listpackItem item = listpackItemOf(listpackGetText(at, digits));
        listpackAppend(&buffer, &item, 1);
    }
    return buffer.bytes;
}

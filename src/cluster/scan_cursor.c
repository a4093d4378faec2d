/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses and prints cursors of CLUSTERSCAN, and finds a short hash tag for each slot.
 *
 * Invariant: the tag of a slot hashes to that slot. The tags are computed at first use. */
#include "cluster/scan_cursor.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"

enum {
    TAG_CHARS = 62,
    PRINT_BITS = 6, /* of a character */
    SLOT_BITS = 14, /* of the number */
};
_Static_assert(SLOT_COUNT == 1 << SLOT_BITS, "the low bits of a number are the slot");

/* The character after the fingerprint, by stage. */
static const char stage_marks[] = {[SCAN_OWNED] = '\0', [SCAN_IMPORTING] = 'i', [SCAN_DONE] = 'd'};

/* ------------------------------------------------------------------ tags */

static char tags[SLOT_COUNT][SCAN_TAG_MAX];

static void addTag(const char *text, int len) {
    int slot = crc16(text, (size_t)len) % SLOT_COUNT;
    if (!tags[slot][0]) memcpy(tags[slot], text, (size_t)len);
}

/* Short ones first; three characters are enough for all slots. */
static void findTags(void) {
    static const char chars[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int len = 1; len < SCAN_TAG_MAX; len++) {
        int count = len == 1
                        ? TAG_CHARS
                        : (len == 2 ? TAG_CHARS * TAG_CHARS : TAG_CHARS * TAG_CHARS * TAG_CHARS);
        for (int i = 0; i < count; i++) {
            char text[SCAN_TAG_MAX] = "";
            for (int k = len - 1, rest = i; k >= 0; k--, rest /= TAG_CHARS)
                text[k] = chars[rest % TAG_CHARS];
            addTag(text, len);
        }
    }
}

slice scanTag(int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    if (!tags[0][0]) findTags();
    check(tags[slot][0]);
    return sliceOf(tags[slot]);
}

/* ------------------------------------------------------------------ cursors */

scanPrint scanPrintOf(slice shard_id) {
    scanPrint print;
    uint64_t hash = hashBytes(shard_id.ptr, shard_id.len);
    for (int i = 0; i < SCAN_PRINT_LEN; i++, hash >>= PRINT_BITS)
        print.text[i] = (char)('0' + (hash & ((1 << PRINT_BITS) - 1)));
    return print;
}

static void readPrint(slice text, const scanPrint *own, scanCursor *out) {
    bool has_mark = text.len == SCAN_PRINT_LEN + 1;
    out->stage = SCAN_BEGIN;
    if (has_mark && text.ptr[SCAN_PRINT_LEN] == stage_marks[SCAN_IMPORTING]) {
        out->stage = SCAN_IMPORTING;
    } else if (has_mark && text.ptr[SCAN_PRINT_LEN] == stage_marks[SCAN_DONE]) {
        out->stage = SCAN_DONE;
    } else if (text.len == SCAN_PRINT_LEN) {
        out->stage = SCAN_OWNED;
    }
    out->is_own = out->stage != SCAN_BEGIN && memcmp(text.ptr, own->text, SCAN_PRINT_LEN) == 0;
}

bool scanCursorParse(slice text, const scanPrint *own, scanCursor *out) {
    const char *end = text.ptr + text.len, *first = memchr(text.ptr, '-', text.len);
    const char *last = first ? memchr(first + 1, '-', (size_t)(end - first - 1)) : NULL;
    if (!last || !numberParseCursor(sliceMake(last + 1, (size_t)(end - last - 1)), &out->position))
        return false;
    out->slot = hashSlot(sliceMake(first + 1, (size_t)(last - first - 1)));
    check(out->slot < SLOT_COUNT);
    readPrint(sliceMake(text.ptr, (size_t)(first - text.ptr)), own, out);
    if (!out->is_own || (int)(out->position % SLOT_COUNT) != out->slot) {
        out->is_own = false;
        out->position = (uint64_t)out->slot;
    }
    return true;
}

void scanCursorPrint(const scanCursor *c, const scanPrint *own, str *out) {
    slice tag = scanTag(c->slot);
    bool begins = !c->is_own || c->stage == SCAN_BEGIN;
    if (begins) {
        strAppendByte(out, '0');
    } else {
        check(c->position % SLOT_COUNT == (uint64_t)c->slot);
        strAppend(out, own->text, SCAN_PRINT_LEN);
        if (stage_marks[c->stage]) strAppendByte(out, stage_marks[c->stage]);
    }
    strAppendFormat(out, "-{%.*s}-%llu", (int)tag.len, tag.ptr,
                    begins ? 0ull : (unsigned long long)c->position);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cursors of SCAN at the gateway (scan.h). Texts come from other nodes, numbers from clients: both
 * are checked. */
#include "gateway/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/number.h"
#include "gateway/merge.h"

enum { SLOT_BITS = 14, STAGE_BITS = 2, HASH_BITS = 8, BUCKET_BITS = 39, SLOTS = 1 << SLOT_BITS };
_Static_assert((int)SLOTS == (int)SCAN_SLOTS, "a slot has its bits");
_Static_assert(SLOT_BITS + STAGE_BITS + HASH_BITS + BUCKET_BITS == 63, "positive for all clients");
enum { STAGE_BEGIN, STAGE_OWNED, STAGE_IMPORTING, STAGE_DONE };

static const char marks[] = {[STAGE_OWNED] = 0, [STAGE_IMPORTING] = 'i', [STAGE_DONE] = 'd'};

/* The hash of a print in cursors; never that of the beginning. */
static uint32_t hashOf(const char *print) {
    uint32_t hash = (uint32_t)hashBytes(print, SCAN_PRINT_BYTES) & ((1u << HASH_BITS) - 1);
    return hash < 2 ? 2 : hash;
}

bool scanCursorRead(const scanPrints *p, slice number, int *slot, str *before, str *after) {
    uint64_t cursor;
    if (!numberParseCursor(number, &cursor)) return false;
    *slot = (int)(cursor & (SLOTS - 1));
    unsigned stage = (unsigned)(cursor >> SLOT_BITS) & ((1u << STAGE_BITS) - 1);
    uint32_t hash = (uint32_t)(cursor >> (SLOT_BITS + STAGE_BITS)) & ((1u << HASH_BITS) - 1);
    uint64_t bucket = cursor >> (SLOT_BITS + STAGE_BITS + HASH_BITS);
    const char *print = p->texts[stage == STAGE_IMPORTING][*slot];
    if (stage == STAGE_BEGIN || !print[0] || hashOf(print) != hash) {
        strAppendText(before, "0-");
        strAppendText(after, "-0");
        return true;
    }
    strAppend(before, print, SCAN_PRINT_BYTES);
    if (marks[stage]) strAppendByte(before, marks[stage]);
    strAppendByte(before, '-');
    strAppendFormat(after, "-%llu", (unsigned long long)(bucket << SLOT_BITS | (uint64_t)*slot));
    return true;
}

/* "print-{tag}-number" as a number; false: it has another form. */
static bool cursorOf(scanPrints *p, slice text, int (*slotOf)(slice key), uint64_t *out) {
    const char *end = text.ptr + text.len, *first = memchr(text.ptr, '-', text.len);
    const char *last = first ? memchr(first + 1, '-', (size_t)(end - first - 1)) : NULL;
    uint64_t number, stage = STAGE_BEGIN, hash = 1;
    if (!last || !numberParseUint(sliceMake(last + 1, (size_t)(end - last - 1)), &number))
        return false;
    uint64_t slot = (uint64_t)slotOf(sliceMake(first + 1, (size_t)(last - first) - 1));
    size_t len = (size_t)(first - text.ptr);
    check(slot < SLOTS);
    if (len == 1 && text.ptr[0] == '0') {
        number = slot;
    } else if (len == SCAN_PRINT_BYTES || len == SCAN_PRINT_BYTES + 1) {
        char mark = len > SCAN_PRINT_BYTES ? text.ptr[SCAN_PRINT_BYTES] : '\0';
        for (stage = STAGE_OWNED; stage < STAGE_DONE && marks[stage] != mark;) stage++;
        if (marks[stage] != mark || number % SLOTS != slot) return false;
        memcpy(p->texts[stage == STAGE_IMPORTING][slot], text.ptr, SCAN_PRINT_BYTES);
        hash = hashOf(text.ptr);
    } else {
        return false;
    }
    uint64_t bucket = number >> SLOT_BITS;
    if (bucket >> BUCKET_BITS) return false;
    *out = ((bucket << HASH_BITS | hash) << STAGE_BITS | stage) << SLOT_BITS | slot;
    return true;
}

void scanReplyTranslate(scanPrints *p, slice reply, int (*slotOf)(slice key), str *out) {
    slice items[2];
    uint64_t cursor = 0;
    if (reply.len && reply.ptr[0] == '-') {
        strAppendSlice(out, reply);
        return;
    }
    bool fits = mergeItems(reply, items, 2) == 2 && items[0].ptr[0] == '$';
    const char *line = fits ? memchr(items[0].ptr, '\n', items[0].len) : NULL;
    size_t head = line ? (size_t)(line - items[0].ptr) + 1 : 0;
    fits = line && items[0].len >= head + 2;
    slice text = fits ? sliceMake(line + 1, items[0].len - head - 2) : SLICE("");
    bool ends = sliceEqual(text, SLICE("0"));
    if (!fits || (!ends && !cursorOf(p, text, slotOf, &cursor))) {
        strAppendText(out, "-ERR The node of the cluster has replied with an unknown cursor\r\n");
        return;
    }
    char digits[NUMBER_TEXT_MAX];
    size_t len = numberPrintUint(digits, cursor);
    strAppendFormat(out, "*2\r\n$%zu\r\n%.*s\r\n", len, (int)len, digits);
    strAppendSlice(out, items[1]);
}

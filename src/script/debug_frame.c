/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing of commands for the debugger (debug_frame.h). An incomplete command is parsed again from
 * its begin; it has at most a megabyte, sent by somebody who types. */
#include "script/debug_frame.h"

#include "base/base.h"
#include "base/number.h"

/* Takes "<mark><number>\r\n" at *at; the number must be in 1..max. */
static debugFrameState takeHead(slice all, size_t *at, char mark, int max, int *number) {
    hotCheck(*at <= all.len);
    hotCheck(max > 0);
    enum { HEAD_BYTES_MAX = 8 };
    if (*at == all.len) return DEBUG_FRAME_INCOMPLETE;
    if (all.ptr[*at] != mark) return DEBUG_FRAME_BAD;
    const char *from = all.ptr + *at + 1;
    size_t rest = all.len - *at - 1;
    const char *end = memchr(from, '\r', rest);
    if (!end) return rest > HEAD_BYTES_MAX ? DEBUG_FRAME_BAD : DEBUG_FRAME_INCOMPLETE;
    int64_t value;
    if (!numberParseInt(sliceMake(from, (size_t)(end - from)), &value)) return DEBUG_FRAME_BAD;
    if (value < 1 || value > max) return DEBUG_FRAME_BAD;
    size_t after = (size_t)(end - all.ptr) + 1;
    if (after == all.len) return DEBUG_FRAME_INCOMPLETE;
    if (all.ptr[after] != '\n') return DEBUG_FRAME_BAD;
    *at = after + 1;
    *number = (int)value;
    return DEBUG_FRAME_READY;
}

static debugFrameState takeWord(slice all, size_t *at, slice *word) {
    hotCheck(*at <= all.len);
    int len;
    debugFrameState state = takeHead(all, at, '$', DEBUG_WORD_BYTES_MAX, &len);
    if (state != DEBUG_FRAME_READY) return state;
    if (all.len - *at < (size_t)len + 2) return DEBUG_FRAME_INCOMPLETE;
    *word = sliceMake(all.ptr + *at, (size_t)len);
    *at += (size_t)len + 2;
    bool ends = all.ptr[*at - 2] == '\r' && all.ptr[*at - 1] == '\n';
    return ends ? DEBUG_FRAME_READY : DEBUG_FRAME_BAD;
}

debugFrameState debugFrameNext(debugFrames *f) {
    hotCheck(f->taken <= f->bytes.len);
    if (f->taken) {
        memmove(f->bytes.ptr, f->bytes.ptr + f->taken, f->bytes.len - f->taken);
        strCut(&f->bytes, f->bytes.len - f->taken);
        f->taken = 0;
    }
    slice all = strSlice(&f->bytes);
    size_t at = 0;
    debugFrameState state = takeHead(all, &at, '*', DEBUG_WORDS_MAX, &f->count);
    for (int i = 0; i < f->count && state == DEBUG_FRAME_READY; i++)
        state = takeWord(all, &at, &f->words[i]);
    if (state == DEBUG_FRAME_READY) f->taken = at;
    return state;
}

void debugFramesClear(debugFrames *f) { strFree(&f->bytes); }

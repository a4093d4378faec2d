/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lines of Sentinel in a configuration file: each is refused with a reason or taken, and the
 * state that they make is written to lines which, read into an empty state, make the same one.
 *
 * Input: lines, without the word "sentinel". */
#include <string.h>

#include "../c/sentinel/quiet_env.h"
#include "sentinel/lines.h"

enum { LINES_MAX = 4096 };

typedef struct lineList {
    str lines[LINES_MAX];
    int count;
} lineList;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sentinelEnv env;

static void keep(void *arg, slice line, bool is_default) {
    if (is_default) return;
    lineList *l = arg;
    check(l->count < LINES_MAX);
    l->lines[l->count++] = strNew(line);
}

static void forget(lineList *l) {
    for (int i = 0; i < l->count; i++) strFree(&l->lines[i]);
    l->count = 0;
}

/* Takes all lines in the order of their ranks. `must`: none may be refused. */
static void take(sentinelView *v, const lineList *l, bool must) {
    for (int rank = 0; rank < SENTINEL_LINE_RANKS; rank++) {
        for (int i = 0; i < l->count; i++) {
            str *words;
            slice slices[64];
            int count;
            reason why = {0};
            if (!strSplitWords(strSlice(&l->lines[i]), &words, &count)) {
                check(!must);
                continue;
            }
            bool fits = count > 0 && count <= (int)COUNT_OF(slices);
            for (int at = 0; fits && at < count; at++) slices[at] = strSlice(&words[at]);
            if (fits && sentinelLineRank(slices, count) == rank) {
                status st = sentinelLineTake(v, slices, count, &why);
                if (must) check(st == OK);
                if (st != OK) check(why.text[0] != 0);
            }
            strFreeWords(words, count);
        }
    }
}

static void split(slice text, lineList *l) {
    while (text.len && l->count < LINES_MAX / 8) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        keep(l, sliceMake(text.ptr, len), false);
        text = sliceMake(text.ptr + len + (end != NULL), text.len - len - (end != NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static lineList given, first, second;
    static const char id[] = "1111111111111111111111111111111111111111";
    sentinelView v;
    logSetLevel(LOG_NOTHING);
    split(sliceMake(data, size), &given);
    env = quietEnv();
    sentinelViewInit(&v, &env, NULL);
    v.now_ms = 1000000;
    take(&v, &given, false);
    if (!v.id[0]) memcpy(v.id, id, sizeof(id));
    sentinelLinesWrite(&v, keep, &first);
    sentinelViewClear(&v);
    sentinelViewInit(&v, &env, NULL);
    take(&v, &first, true);
    sentinelLinesWrite(&v, keep, &second);
    sentinelViewClear(&v);
    check(first.count == second.count);
    for (int i = 0; i < first.count; i++)
        check(sliceEqual(strSlice(&first.lines[i]), strSlice(&second.lines[i])));
    forget(&given);
    forget(&first);
    forget(&second);
    return 0;
}

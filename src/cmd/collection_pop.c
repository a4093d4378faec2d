/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by LMPOP, ZMPOP and their blocking variants (collection.h). */
#include "base/base.h"
#include "cmd/collection.h"
#include "engine/block.h"

bool collectionParsePop(ctx *c, int arg_index, const char *first_word, const char *last_word,
                        collectionPop *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int64_t keys;
    *out = (collectionPop){.first = arg_index + 1, .count = 1};
    if (!ctxArgIntIn(c, arg_index, 1, INT64_MAX, &keys, "ERR numkeys should be greater than 0"))
        return false;
    out->end = keys < c->argc - out->first ? out->first + (int)keys : 0;
    out->last = out->end > 0 && ctxArgIs(c, out->end, last_word);
    bool good = out->last || (out->end > 0 && ctxArgIs(c, out->end, first_word)), counted = false;
    for (int i = out->end + 1; good && i < c->argc; i += 2) {
        good = !counted && i + 1 < c->argc && ctxArgIs(c, i, "count");
        counted = true;
        if (good &&
            !ctxArgIntIn(c, i + 1, 1, INT64_MAX, &out->count, "ERR count should be greater than 0"))
            return false;
    }
    if (!good) replyError(c, ERR_SYNTAX_TEXT);
    return good;
}

void collectionPropagatePop(ctx *c, int arg_index, slice name, uint64_t count) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    char digits[NUMBER_TEXT_MAX];
    slice words[3] = {name, c->argv[arg_index]};
    if (count) words[2] = sliceMake(digits, numberPrintUint(digits, count));
    ctxPropagateAs(c, count ? 3 : 2, words);
}

static void replyTimedOut(ctx *c) { replyNullArray(c); }

void collectionBlock(ctx *c, int first, int end, valueType type, int64_t deadline_ms) {
    hotCheck(first > 0);
    hotCheck(first < end);
    hotCheck(end <= c->argc);
    if (blockIsDenied(c)) {
        replyNullArray(c);
        return;
    }
    blockParams wish = {.keys = c->argv + first,
                        .key_count = end - first,
                        .type = type,
                        .deadline_ms = deadline_ms,
                        .timed_out = replyTimedOut};
    blockStart(c, &wish);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies of two servers: comparing them, and what is said about them. */
#include <string.h>

#include "tools/cli/diff_priv.h"

void diffShow(str *out, slice value) {
    bool cut = value.len > DIFF_SHOWN_MAX;
    strAppendQuoted(out, sliceMake(value.ptr, cut ? DIFF_SHOWN_MAX : value.len));
    if (cut) strAppendText(out, "...");
}

slice diffTextOf(const valkeyReply *reply) {
    return reply->str ? sliceMake(reply->str, reply->len) : sliceOf("");
}

void diffShowReply(str *out, const valkeyReply *reply) {
    switch (reply->type) {
    case VALKEY_REPLY_NIL: strAppendText(out, "none"); break;
    case VALKEY_REPLY_INTEGER: strAppendInt(out, reply->integer); break;
    case VALKEY_REPLY_ARRAY: strAppendFormat(out, "%zu items", reply->elements); break;
    default: diffShow(out, diffTextOf(reply));
    }
}

void diffInValue(diffKey *key, const valkeyReply *first, const valkeyReply *second) {
    key->verdict = DIFF_VALUE;
    if (key->why.len) strAppendText(&key->why, ": ");
    diffShowReply(&key->why, first);
    strAppendText(&key->why, ", ");
    diffShowReply(&key->why, second);
}

bool diffIsText(const valkeyReply *reply) {
    return reply->type == VALKEY_REPLY_STRING || reply->type == VALKEY_REPLY_STATUS;
}

bool diffSameReply(const valkeyReply *a, const valkeyReply *b) {
    if (diffIsText(a) && diffIsText(b)) return sliceEqual(diffTextOf(a), diffTextOf(b));
    if (a->type != b->type || a->elements != b->elements) return false;
    if (a->type == VALKEY_REPLY_INTEGER) return a->integer == b->integer;
    for (size_t i = 0; i < a->elements; i++) {
        if (!diffSameReply(a->element[i], b->element[i])) return false;
    }
    return a->type == VALKEY_REPLY_ARRAY || a->type == VALKEY_REPLY_NIL;
}

void diffFlush(diffSide sides[DIFF_SIDES]) {
    for (int s = 0; s < DIFF_SIDES; s++) {
        int done = 0;
        while (!done && valkeyBufferWrite(sides[s].link.context, &done) == VALKEY_OK) continue;
    }
}

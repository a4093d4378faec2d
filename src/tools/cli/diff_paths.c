/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparison of path hashes of two servers (diff_priv.h). Both have as many paths, so it is enough
 * to find those of the first in the second. */
#include "tools/cli/diff_priv.h"

/* Compares a page of the first server, of paths with their fields, with what the second has. */
static void comparePage(diffSide *second, diffKey *key, const valkeyReply *page,
                        diffFieldsProc *compareFields) {
    for (size_t i = 0; i < page->elements; i++) {
        slice path = diffTextOf(page->element[i]->element[0]);
        connectionQueue(&second->link, "PHGETALL %b %b", key->name.ptr, key->name.len, path.ptr,
                        path.len);
    }
    for (size_t i = 0; i < page->elements; i++) {
        const valkeyReply *path = page->element[i]->element[0];
        valkeyReply *fields = connectionNext(&second->link);
        if (diffIsOpen(key)) {
            const valkeyReply *wanted = page->element[i]->element[1];
            strAppendText(&key->why, "path ");
            diffShowReply(&key->why, path);
            if (fields->elements == wanted->elements) strAppendText(&key->why, ", ");
            compareFields(key, wanted, fields);
            if (diffIsOpen(key)) strClear(&key->why);
        }
        freeReplyObject(fields);
    }
}

static bool isPage(const valkeyReply *reply) {
    if (reply->type != VALKEY_REPLY_ARRAY || reply->elements != 2) return false;
    const valkeyReply *entries = reply->element[1];
    for (size_t i = 0; i < entries->elements; i++) {
        const valkeyReply *entry = entries->element[i];
        if (entry->type != VALKEY_REPLY_ARRAY || entry->elements != 2) return false;
    }
    return diffIsText(reply->element[0]);
}

void diffComparePaths(diffSide sides[DIFF_SIDES], diffKey *key, diffFieldsProc *compareFields) {
    str cursor = STR_EMPTY;
    strAppendText(&cursor, "0");
    do {
        valkeyReply *reply =
            connectionCommand(&sides[0].link, "PHSCAN %b %b COUNT %d WITHVALUES", key->name.ptr,
                              key->name.len, cursor.ptr, cursor.len, DIFF_PART);
        strClear(&cursor);
        if (isPage(reply)) {
            strAppendSlice(&cursor, diffTextOf(reply->element[0]));
            comparePage(&sides[1], key, reply->element[1], compareFields);
        } else {
            diffInValue(key, reply, reply); /* it has become another type */
        }
        freeReplyObject(reply);
    } while (diffIsOpen(key) && !sliceIs(strSlice(&cursor), "0"));
    strFree(&cursor);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparison of streams of two servers (diff_priv.h): entries, the counters that both versions
 * have, groups and their pending entries without idle times. */
#include "tools/cli/diff_priv.h"
#include "tools/cli/reply_map.h"

static void askBoth(diffSide sides[DIFF_SIDES], const diffKey *key, const char *command,
                    valkeyReply *out[DIFF_SIDES]) {
    for (int s = 0; s < DIFF_SIDES; s++)
        connectionQueue(&sides[s].link, command, key->name.ptr, key->name.len);
    diffFlush(sides);
    for (int s = 0; s < DIFF_SIDES; s++) out[s] = connectionNext(&sides[s].link);
}

/* Compares fields that both have: older versions lack some. */
static void compareFields(diffKey *key, const valkeyReply *a, const valkeyReply *b,
                          const char *const *names, const char *prefix) {
    for (; diffIsOpen(key) && *names; names++) {
        const valkeyReply *x = replyMapField(a, *names), *y = replyMapField(b, *names);
        if (!x || !y || diffSameReply(x, y)) continue;
        strAppendFormat(&key->why, "%s%s", prefix, *names);
        diffInValue(key, x, y);
    }
}

static void comparePending(diffSide sides[DIFF_SIDES], diffKey *key, const valkeyReply *group) {
    str from = STR_EMPTY;
    strAppendText(&from, "-");
    size_t count;
    do {
        valkeyReply *reply[DIFF_SIDES];
        for (int s = 0; s < DIFF_SIDES; s++)
            reply[s] =
                connectionCommand(&sides[s].link, "XPENDING %b %b %s + %d", key->name.ptr,
                                  key->name.len, group->str, group->len, strText(&from), DIFF_PART);
        count = reply[0]->elements;
        if (count != reply[1]->elements) diffInValue(key, reply[0], reply[1]);
        for (size_t i = 0; diffIsOpen(key) && i < count; i++) {
            valkeyReply **a = reply[0]->element[i]->element, **b = reply[1]->element[i]->element;
            /* id, consumer, idle time, deliveries */
            if (diffSameReply(a[0], b[0]) && diffSameReply(a[1], b[1]) && diffSameReply(a[3], b[3]))
                continue;
            strAppendFormat(&key->why, "pending entry of group %s", group->str);
            diffInValue(key, a[0], b[0]);
        }
        strClear(&from);
        if (count) strAppendFormat(&from, "(%s", reply[0]->element[count - 1]->element[0]->str);
        for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(reply[s]);
    } while (diffIsOpen(key) && count == DIFF_PART);
    strFree(&from);
}

static void compareGroups(diffSide sides[DIFF_SIDES], diffKey *key) {
    static const char *const fields[] = {"name", "pending", "last-delivered-id", "entries-read",
                                         NULL};
    if (!diffIsOpen(key)) return;
    valkeyReply *groups[DIFF_SIDES];
    askBoth(sides, key, "XINFO GROUPS %b", groups);
    if (groups[0]->elements != groups[1]->elements) {
        strAppendText(&key->why, "groups");
        diffInValue(key, groups[0], groups[1]);
    }
    for (size_t i = 0; diffIsOpen(key) && i < groups[0]->elements; i++) {
        const valkeyReply *a = groups[0]->element[i], *b = groups[1]->element[i];
        compareFields(key, a, b, fields, "group: ");
        const valkeyReply *name = replyMapField(a, "name");
        if (diffIsOpen(key) && name) comparePending(sides, key, name);
    }
    for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(groups[s]);
}

/* Compares the entries from `*from` on; sets it to what follows, "" at the end. */
static void compareEntries(diffSide sides[DIFF_SIDES], diffKey *key, str *from) {
    valkeyReply *page[DIFF_SIDES];
    for (int s = 0; s < DIFF_SIDES; s++)
        connectionQueue(&sides[s].link, "XRANGE %b %s + COUNT %d", key->name.ptr, key->name.len,
                        strText(from), DIFF_PART);
    diffFlush(sides);
    for (int s = 0; s < DIFF_SIDES; s++) page[s] = connectionNext(&sides[s].link);
    if (!diffSameReply(page[0], page[1])) {
        strAppendText(&key->why, "entries from ");
        strAppendSlice(&key->why, strSlice(from));
        diffInValue(key, page[0], page[1]);
    }
    strClear(from);
    size_t count = page[0]->elements;
    if (count == DIFF_PART)
        strAppendFormat(from, "(%s", page[0]->element[count - 1]->element[0]->str);
    for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(page[s]);
}

void diffCompareStream(diffSide sides[DIFF_SIDES], diffKey *key) {
    static const char *const fields[] = {"last-generated-id", "max-deleted-entry-id",
                                         "entries-added", NULL};
    valkeyReply *info[DIFF_SIDES];
    askBoth(sides, key, "XINFO STREAM %b", info);
    compareFields(key, info[0], info[1], fields, "");
    for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(info[s]);
    str from = STR_EMPTY;
    strAppendText(&from, "-");
    while (diffIsOpen(key) && from.len) compareEntries(sides, key, &from);
    strFree(&from);
    compareGroups(sides, key);
}

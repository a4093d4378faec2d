/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys for --top (top_keys.h). */
#include "tools/cli/top_keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/reply_map.h"

/* OBJECT FREQ: pages of SCAN in a refresh, keys of a page, keys that are remembered. */
enum { PAGES = 4, PAGE_KEYS = 100, KEPT_KEYS = 32 };

static void clearKey(topKey *key) {
    strFree(&key->name);
    strFree(&key->bytes);
    *key = (topKey){0};
}

static void clearList(topKeys *t) {
    for (int i = 0; i < t->count; i++) clearKey(&t->list[i]);
    t->count = 0;
}

void topKeysClear(topKeys *t) {
    clearList(t);
    strFree(&t->why);
}

/* ------------------------------------------------------------------ HOTKEYS */

static int64_t numberOf(const valkeyReply *map, const char *name) {
    const valkeyReply *value = replyMapField(map, name);
    return value && value->type == VALKEY_REPLY_INTEGER ? value->integer : 0;
}

static double doubleOf(const valkeyReply *map, const char *name) {
    return strtod(replyMapText(map, name), NULL);
}

bool topKeysTake(topKeys *t, const valkeyReply *reply) {
    const valkeyReply *keys = replyMapField(reply, "keys");
    if (!keys || keys->type != VALKEY_REPLY_ARRAY || !replyMapField(reply, "half-life-seconds"))
        return false;
    clearList(t);
    for (size_t i = 0; i < keys->elements && t->count < TOP_KEYS_MAX; i++) {
        const valkeyReply *name = replyMapField(keys->element[i], "key");
        if (!name || name->type != VALKEY_REPLY_STRING) continue;
        topKey *key = &t->list[t->count++];
        *key = (topKey){.db = (int)numberOf(keys->element[i], "db"),
                        .rate = doubleOf(keys->element[i], "requests-per-second"),
                        .percent = doubleOf(keys->element[i], "percentage")};
        strAppendQuoted(&key->name, sliceMake(name->str, name->len));
    }
    return true;
}

static bool refreshHotkeys(topKeys *t, connection *c) {
    if (t->no_hotkeys) return false;
    valkeyReply *reply = connectionCommand(c, "HOTKEYS GET COUNT %d", TOP_KEYS_MAX);
    bool taken = topKeysTake(t, reply);
    if (!taken) t->no_hotkeys = true;
    freeReplyObject(reply);
    return taken;
}

/* ------------------------------------------------------------------ OBJECT FREQ */

static void removeAt(topKeys *t, int at) {
    clearKey(&t->list[at]);
    t->count--;
    memmove(&t->list[at], &t->list[at + 1], sizeof(*t->list) * (size_t)(t->count - at));
}

void topKeysNote(topKeys *t, slice name, int db, int64_t count) {
    topKey key = {.db = db, .count = count};
    for (int i = 0; i < t->count; i++) {
        if (t->list[i].db != db || !sliceEqual(strSlice(&t->list[i].bytes), name)) continue;
        removeAt(t, i);
        break;
    }
    int at = 0;
    while (at < t->count && t->list[at].count >= count) at++;
    if (at == KEPT_KEYS) return;
    if (t->count == KEPT_KEYS) removeAt(t, KEPT_KEYS - 1);
    memmove(&t->list[at + 1], &t->list[at], sizeof(*t->list) * (size_t)(t->count - at));
    strAppendQuoted(&key.name, name);
    strAppendSlice(&key.bytes, name);
    t->list[at] = key;
    t->count++;
}

static void noteReply(topKeys *t, connection *c, slice name) {
    valkeyReply *reply = connectionNext(c);
    if (reply->type == VALKEY_REPLY_INTEGER) topKeysNote(t, name, c->server_db, reply->integer);
    freeReplyObject(reply);
}

/* Counters decay and keys disappear: the remembered ones are examined again. */
static void refreshKept(topKeys *t, connection *c) {
    topKey old[TOP_KEYS_MAX];
    int count = t->count;
    memcpy(old, t->list, sizeof(old));
    t->count = 0;
    for (int i = 0; i < count; i++)
        connectionQueue(c, "OBJECT FREQ %b", old[i].bytes.ptr, old[i].bytes.len);
    for (int i = 0; i < count; i++) {
        noteReply(t, c, strSlice(&old[i].bytes));
        clearKey(&old[i]);
    }
}

static void refreshFreq(topKeys *t, connection *c) {
    refreshKept(t, c);
    for (int page = 0; page < PAGES; page++) {
        valkeyReply *reply =
            connectionCommand(c, "SCAN %" PRIu64 " COUNT %d", t->cursor, PAGE_KEYS);
        if (reply->type != VALKEY_REPLY_ARRAY || reply->elements != 2 ||
            reply->element[1]->type != VALKEY_REPLY_ARRAY) {
            freeReplyObject(reply);
            return;
        }
        const valkeyReply *keys = reply->element[1];
        t->cursor = strtoull(reply->element[0]->str, NULL, 10);
        for (size_t i = 0; i < keys->elements; i++)
            connectionQueue(c, "OBJECT FREQ %b", keys->element[i]->str, keys->element[i]->len);
        for (size_t i = 0; i < keys->elements; i++)
            noteReply(t, c, sliceMake(keys->element[i]->str, keys->element[i]->len));
        t->examined += keys->elements;
        freeReplyObject(reply);
        if (t->cursor == 0) return; /* the next refresh begins again */
    }
}

void topKeysRefresh(topKeys *t, connection *c, bool lfu) {
    topKeysSource before = t->source;
    if (before != TOP_KEYS_FREQ && refreshHotkeys(t, c)) {
        t->source = TOP_KEYS_HOTKEYS;
        return;
    }
    t->source = lfu ? TOP_KEYS_FREQ : TOP_KEYS_NONE;
    if (t->source != before) {
        clearList(t);
        t->cursor = t->examined = 0;
    }
    if (lfu) {
        refreshFreq(t, c);
    } else {
        strClear(&t->why);
        strAppendText(&t->why, "not known: the server has no HOTKEYS, and OBJECT FREQ needs a "
                               "maxmemory-policy with lfu");
    }
}

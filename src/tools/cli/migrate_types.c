/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts the contents of a dataset (migrate_types.h); for a running server, by SCAN and TYPE of all
 * keys.
 *
 * Invariant: one page of keys is in memory at a time. */
#include "tools/cli/migrate_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "tools/cli/info.h"
#include "tools/cli/reply_map.h"

enum { NAMES_SHOWN = 3, NAME_BYTES_SHOWN = 64 };

void datasetCountsClear(datasetCounts *counts) {
    for (int i = 0; i < counts->type_count; i++) strFree(&counts->types[i].first);
    strFree(&counts->modules);
    *counts = (datasetCounts){0};
}

void datasetCountForeign(datasetCounts *counts, const char *type, slice key, uint64_t bytes) {
    check(*type);
    int i = 0;
    while (i < counts->type_count && strcmp(counts->types[i].name, type) != 0) i++;
    if (i == TYPES_MAX) i--;
    typeCount *t = &counts->types[i];
    if (i == counts->type_count) {
        snprintf(t->name, sizeof(t->name), "%s", type);
        counts->type_count++;
    }
    t->bytes += bytes;
    if (t->keys++ >= NAMES_SHOWN) return;
    str quoted = STR_EMPTY;
    strAppendQuoted(&quoted, sliceMake(key.ptr, sizeMin(key.len, NAME_BYTES_SHOWN)));
    if (t->first.len) strAppendText(&t->first, ", ");
    strAppend(&t->first, quoted.ptr + 1, quoted.len - 2); /* without the quotes */
    strFree(&quoted);
}

void datasetDescribe(const typeCount *type, str *out) {
    check(type->keys > 0);
    strAppendFormat(out, "%" PRIu64 " key%s of type %s (first: %s", type->keys,
                    type->keys == 1 ? "" : "s", type->name, strText(&type->first));
    if (type->bytes) strAppendFormat(out, "; %" PRIu64 " bytes", type->bytes);
    strAppendByte(out, ')');
}

/* ------------------------------------------------------------------ a running server */

static bool existsHere(const char *type) {
    static const char *const types[] = {"string", "list",   "set",      "zset",
                                        "hash",   "stream", "pathhash", "none"};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (!strcmp(types[i], type)) return true;
    }
    return false;
}

static void countStream(connection *c, const valkeyReply *key, datasetCounts *out) {
    connectionQueue(c, "XINFO STREAM %b", key->str, key->len);
    valkeyReply *info = connectionNext(c);
    const valkeyReply *ids = replyMapField(info, "iids-tracked");
    out->streams_with_ids += ids && ids->integer > 0;
    freeReplyObject(info);
}

static void countPage(connection *c, const valkeyReply *keys, bool has_ids, datasetCounts *out) {
    bool *streams = memCalloc(keys->elements + 1, sizeof(*streams));
    for (size_t i = 0; i < keys->elements; i++)
        connectionQueue(c, "TYPE %b", keys->element[i]->str, keys->element[i]->len);
    for (size_t i = 0; i < keys->elements; i++) {
        const valkeyReply *key = keys->element[i];
        valkeyReply *type = connectionNext(c);
        bool known = type->type == VALKEY_REPLY_STATUS;
        out->failed |= !known;
        out->keys++;
        streams[i] = known && has_ids && !strcmp(type->str, "stream");
        if (known && !existsHere(type->str))
            datasetCountForeign(out, type->str, sliceMake(key->str, key->len), 0);
        freeReplyObject(type);
    }
    for (size_t i = 0; i < keys->elements; i++) {
        if (streams[i]) countStream(c, keys->element[i], out);
    }
    memFree(streams);
}

void datasetCountServer(connection *c, const char *keyspace, bool has_ids, datasetCounts *out) {
    for (infoDatabase d; infoNextDatabase(&keyspace, &d);) {
        char cursor[NUMBER_TEXT_MAX] = "0";
        freeReplyObject(connectionCommand(c, "SELECT %d", d.id));
        out->hashes_with_times += (uint64_t)d.volatile_items;
        do {
            valkeyReply *page = connectionCommand(c, "SCAN %s COUNT 1000", cursor);
            bool good = page->type == VALKEY_REPLY_ARRAY && page->elements == 2 &&
                        page->element[0]->type == VALKEY_REPLY_STRING &&
                        page->element[1]->type == VALKEY_REPLY_ARRAY;
            snprintf(cursor, sizeof(cursor), "%s", good ? page->element[0]->str : "0");
            if (good) countPage(c, page->element[1], has_ids, out);
            out->failed |= !good;
            freeReplyObject(page);
        } while (strcmp(cursor, "0") != 0);
    }
    freeReplyObject(connectionCommand(c, "SELECT 0"));
}

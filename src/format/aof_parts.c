/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large values as commands in parts (aof_parts.h). Invariant: `items` has `words` encoded words of
 * a command whose beginning is not written yet. */
#include "format/aof_parts.h"

#include <lzf.h>
#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "ds/listpack.h"
#include "format/aof_value.h"
#include "store/type.h"

enum { ITEMS_PER_COMMAND = 64, BYTES_PER_COMMAND = 32 * 1024 };

bool aofPartsCan(const robj *o) {
    valueType type = objectType(o);
    return typeOf(o)->elements != NULL || type == TYPE_LIST || type == TYPE_STREAM ||
           type == TYPE_PATHHASH;
}

void aofPartsBegin(aofParts *p, const savedValue *value) {
    check(p->words == 0);
    strClear(&p->key);
    strAppendSlice(&p->key, objectKey(value->head));
    p->type = (int)objectType(value->head);
    p->db_id = value->db_id;
    p->rest = (aofStreamRest){.from = NULL};
    p->expire_ms = objectHasExpire(value->head) ? objectExpire(value->head) : OBJECT_NO_EXPIRE;
}

static slice nameOf(const aofParts *p) {
    switch (p->type) {
    case TYPE_HASH: return SLICE("HMSET");
    case TYPE_SET: return SLICE("SADD");
    case TYPE_ZSET: return SLICE("ZADD");
    default: return SLICE("RPUSH");
    }
}

/* Writes the command of the words that were collected. */
static void flush(aofParts *p, rdbWriter *w) {
    if (!p->words) return;
    slice name = nameOf(p);
    char head[3 * NUMBER_TEXT_MAX + 64];
    int len = snprintf(head, sizeof(head), "*%d\r\n$%zu\r\n%s\r\n$%zu\r\n", p->words + 2, name.len,
                       name.ptr, p->key.len);
    rdbWriteBytes(w, head, (size_t)len);
    rdbWriteBytes(w, p->key.ptr, p->key.len);
    rdbWriteBytes(w, "\r\n", 2);
    rdbWriteBytes(w, p->items.ptr, p->items.len);
    strClear(&p->items);
    p->words = 0;
}

static void word(aofParts *p, slice text) {
    strAppendFormat(&p->items, "$%zu\r\n", text.len);
    strAppendSlice(&p->items, text);
    strAppend(&p->items, "\r\n", 2);
    p->words++;
}

static void flushIfLong(aofParts *p, rdbWriter *w, int words_per_item) {
    hotCheck(words_per_item > 0);
    if (p->words >= ITEMS_PER_COMMAND * words_per_item || p->items.len >= BYTES_PER_COMMAND)
        flush(p, w);
}

static void writeTimed(const aofParts *p, rdbWriter *w, const valueElement *e) {
    char digits[NUMBER_TEXT_MAX];
    slice time = sliceMake(digits, numberPrintInt(digits, e->time_ms));
    const slice words[] = {SLICE("HSETEX"), strSlice(&p->key), SLICE("PXAT"), time,
                           SLICE("FIELDS"), SLICE("1"),        e->name,       e->value};
    aofWriteCommand(w, (int)COUNT_OF(words), words);
}

void aofPartsElement(aofParts *p, rdbWriter *w, const valueElement *element) {
    hotCheck(p->type != TYPE_LIST);
    char digits[NUMBER_TEXT_MAX];
    if (p->type == TYPE_PATHHASH) {
        aofWritePath(w, strSlice(&p->key), element->name, element->fields);
        return;
    }
    if (p->type == TYPE_HASH && element->time_ms >= 0) {
        writeTimed(p, w, element);
        return;
    }
    if (p->type == TYPE_ZSET) word(p, sliceMake(digits, numberPrintDouble(digits, element->score)));
    word(p, element->name);
    if (p->type == TYPE_HASH) word(p, element->value);
    if (p->type != TYPE_HASH && element->time_ms >= 0) {
        flush(p, w);
        aofWriteMemberTime(w, p->type, strSlice(&p->key), element->name, element->time_ms);
        return;
    }
    flushIfLong(p, w, p->type == TYPE_SET ? 1 : 2);
}

void aofPartsNode(aofParts *p, rdbWriter *w, const quicklistNodeView *node) {
    hotCheck(p->type == TYPE_LIST);
    slice content = node->content;
    if (node->compressed) {
        strClear(&p->text);
        char *to = strReserve(&p->text, node->bytes);
        size_t len = lzf_decompress(content.ptr, (unsigned)content.len, to, (unsigned)node->bytes);
        check(len == node->bytes);
        strGrow(&p->text, len);
        content = strSlice(&p->text);
    }
    if (node->plain) {
        word(p, content);
        flushIfLong(p, w, 1);
        return;
    }
    const uint8_t *list = (const uint8_t *)content.ptr;
    char digits[NUMBER_TEXT_MAX];
    for (const uint8_t *at = listpackFirst(list); at; at = listpackNext(list, at)) {
        word(p, listpackGetText(at, digits));
        flushIfLong(p, w, 1);
    }
}

void aofPartsStreamNode(aofParts *p, rdbWriter *w, streamId first, const streamNode *node) {
    hotCheck(p->type == TYPE_STREAM);
    hotCheck(!p->rest.from);
    aofWriteStreamNode(w, strSlice(&p->key), first, node);
}

bool aofPartsStreamRest(aofParts *p, rdbWriter *w, const stream *rest, uint64_t count) {
    hotCheck(p->type == TYPE_STREAM);
    p->rest.from = rest;
    return aofWriteStreamRest(w, strSlice(&p->key), &p->rest, count);
}

void aofPartsEnd(aofParts *p, rdbWriter *w) {
    flush(p, w);
    if (p->expire_ms == OBJECT_NO_EXPIRE) return;
    char digits[NUMBER_TEXT_MAX];
    slice time = sliceMake(digits, numberPrintInt(digits, p->expire_ms));
    const slice words[] = {SLICE("PEXPIREAT"), strSlice(&p->key), time};
    aofWriteCommand(w, (int)COUNT_OF(words), words);
}

void aofPartsClear(aofParts *p) {
    strFree(&p->key);
    strFree(&p->items);
    strFree(&p->text);
    p->words = 0;
}

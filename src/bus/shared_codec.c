/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Encodes shared users and functions as bytes, for messages and the file (shared_state.h). Numbers
 * are big-endian.
 *
 *   entry     kind 1, length of the name 2, name, number of versions 1, versions
 *   version   form 1, writer 20, number 8, writers seen 1, each: id 20, number 8, taken 8;
 *             length of the body 4, body
 *   state     8 bytes that name the format, entries, CRC-64 of all that
 *
 * Everything is validated when it is read, before anything of it is used. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "bus/message_layout.h"
#include "bus/shared_state.h"

enum { SEEN_BYTES = SHARED_ID_BYTES + 16, CRC_BYTES = 8, MAGIC_BYTES = 8 };
static const char magic[MAGIC_BYTES + 1] = "FWSHARE1";

/* ------------------------------------------------------------------ writing */

static void append16(str *out, size_t n) {
    char bytes[2];
    check(n <= UINT16_MAX);
    storeBig16(bytes, (uint16_t)n);
    strAppend(out, bytes, sizeof(bytes));
}

static void append32(str *out, size_t n) {
    char bytes[4];
    check(n <= UINT32_MAX);
    storeBig32(bytes, (uint32_t)n);
    strAppend(out, bytes, sizeof(bytes));
}

static void append64(str *out, uint64_t n) {
    char bytes[8];
    storeBig64(bytes, n);
    strAppend(out, bytes, sizeof(bytes));
}

static void appendVersion(const sharedVersion *v, str *out) {
    check(v->seen_count <= SHARED_WRITERS_MAX);
    strAppendByte(out, (char)v->form);
    strAppend(out, v->by, SHARED_ID_BYTES);
    append64(out, v->number);
    strAppendByte(out, (char)v->seen_count);
    for (int i = 0; i < v->seen_count; i++) {
        strAppend(out, v->seen[i].id, SHARED_ID_BYTES);
        append64(out, v->seen[i].number);
        append64(out, v->seen[i].taken);
    }
    append32(out, v->body.len);
    strAppendSlice(out, strSlice(&v->body));
}

void sharedEntryAppend(const sharedEntry *e, str *out) {
    check(e->count > 0);
    strAppendByte(out, (char)e->kind);
    append16(out, e->name.len);
    strAppendSlice(out, strSlice(&e->name));
    strAppendByte(out, (char)e->count);
    for (int i = 0; i < e->count; i++) appendVersion(&e->versions[i], out);
}

void sharedStatePrint(const sharedState *s, str *out) {
    size_t start = out->len;
    strAppend(out, magic, MAGIC_BYTES);
    for (int i = 0; i < s->count; i++) sharedEntryAppend(s->list[i], out);
    append64(out, crc64(0, out->ptr + start, out->len - start));
}

/* ------------------------------------------------------------------ reading */

/* Takes bytes from the start; NULL: there are fewer. */
static const char *takeBytes(slice *from, size_t count) {
    const char *at = from->ptr;
    if (from->len < count) return NULL;
    *from = sliceMake(from->ptr + count, from->len - count);
    return at;
}

static bool takeByte(slice *from, int *out) {
    const char *at = takeBytes(from, 1);
    if (at) *out = (uint8_t)*at;
    return at != NULL;
}

/* Sorted by id, with valid numbers, and the version itself. */
static bool seenIsValid(const sharedVersion *v) {
    bool has_own = false;
    for (int i = 0; i < v->seen_count; i++) {
        const sharedSeen *seen = &v->seen[i];
        if (!seen->number || seen->number > SHARED_NUMBER_MAX || seen->taken > seen->number)
            return false;
        if (i && memcmp(v->seen[i - 1].id, seen->id, SHARED_ID_BYTES) >= 0) return false;
        if (memcmp(seen->id, v->by, SHARED_ID_BYTES) == 0) has_own = seen->number == v->number;
    }
    return has_own;
}

static bool takeSeen(slice *from, sharedVersion *v) {
    int count;
    if (!takeByte(from, &count) || !count || count > SHARED_WRITERS_MAX) return false;
    const char *at = takeBytes(from, (size_t)count * SEEN_BYTES);
    if (!at) return false;
    v->seen = memNewArray(sharedSeen, (size_t)count);
    v->seen_count = count;
    for (int i = 0; i < count; i++, at += SEEN_BYTES) {
        memcpy(v->seen[i].id, at, SHARED_ID_BYTES);
        v->seen[i].number = loadBig64(at + SHARED_ID_BYTES);
        v->seen[i].taken = loadBig64(at + SHARED_ID_BYTES + 8);
    }
    return seenIsValid(v);
}

/* False: it is invalid; what was allocated is in the version. */
static bool takeVersion(slice *from, sharedVersion *v) {
    int form;
    if (!takeByte(from, &form) || form >= SHARED_FORMS) return false;
    v->form = (sharedForm)form;
    const char *at = takeBytes(from, SHARED_ID_BYTES + 8);
    if (!at) return false;
    memcpy(v->by, at, SHARED_ID_BYTES);
    v->number = loadBig64(at + SHARED_ID_BYTES);
    if (!takeSeen(from, v)) return false;
    at = takeBytes(from, 4);
    if (!at) return false;
    size_t len = loadBig32(at);
    if (len > SHARED_BODY_MAX || (form == SHARED_DELETED && len)) return false;
    at = takeBytes(from, len);
    if (at) strAppend(&v->body, at, len);
    return at != NULL;
}

/* Names of libraries and roles, and of users but one, are not empty; that is checked where they are
 * applied. */
static bool takeKey(slice *from, sharedEntry *e) {
    int kind;
    if (!takeByte(from, &kind) || kind >= SHARED_KINDS) return false;
    e->kind = (sharedKind)kind;
    const char *at = takeBytes(from, 2);
    if (!at) return false;
    size_t len = loadBig16(at);
    at = takeBytes(from, len);
    if (at) e->name = strNew(sliceMake(at, len));
    return at != NULL;
}

status sharedEntryTake(slice *bytes, sharedEntry *out) {
    slice rest = *bytes;
    int count = 0;
    *out = (sharedEntry){.count = 0};
    bool ok =
        takeKey(&rest, out) && takeByte(&rest, &count) && count > 0 && count <= SHARED_VERSIONS_MAX;
    if (ok) out->versions = memNewArray(sharedVersion, (size_t)count);
    for (int i = 0; i < count && ok; i++) {
        out->versions[i] = (sharedVersion){.number = 0};
        out->count++;
        ok = takeVersion(&rest, &out->versions[i]);
    }
    if (!ok) {
        sharedEntryClear(out);
        return ERR_SYNTAX;
    }
    *bytes = rest;
    return OK;
}

status sharedStateParse(sharedState *s, slice text) {
    check(s->count == 0);
    if (text.len < MAGIC_BYTES + CRC_BYTES || memcmp(text.ptr, magic, MAGIC_BYTES) != 0)
        return ERR_SYNTAX;
    size_t end = text.len - CRC_BYTES;
    if (loadBig64(text.ptr + end) != crc64(0, text.ptr, end)) return ERR_SYNTAX;
    slice rest = sliceMake(text.ptr + MAGIC_BYTES, end - MAGIC_BYTES);
    while (rest.len) {
        sharedEntry e;
        if (sharedEntryTake(&rest, &e) != OK) {
            sharedClear(s);
            return ERR_SYNTAX;
        }
        (void)sharedMerge(s, &e); /* the conflicts were told of when they arose */
        sharedEntryClear(&e);
    }
    return OK;
}

/* ------------------------------------------------------------------ summaries */

static int compareHashes(const void *a, const void *b) { return memcmp(a, b, 8); /* big-endian */ }

void sharedSummaryAppend(const sharedState *s, str *out) {
    size_t start = out->len;
    for (int i = 0; i < s->count; i++) append64(out, s->list[i]->hash);
    if (s->count) qsort(out->ptr + start, (size_t)s->count, 8, compareHashes);
}

bool sharedSummaryHas(slice summary, const sharedEntry *e) {
    char hash[8];
    storeBig64(hash, e->hash);
    check(summary.len % 8 == 0);
    return summary.len && bsearch(hash, summary.ptr, summary.len / 8, 8, compareHashes);
}

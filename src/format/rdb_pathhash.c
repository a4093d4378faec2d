/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hashes as RDB bytes (rdb_pathhash.h). Layout: the number of paths; then for each path its
 * name, the number of its fields, and the fields, name and value in turn. Invariant: a path has at
 * least one field; a path hash may have no path. Paths are written in byte order, and read in any
 * order. */
#include "format/rdb_pathhash.h"

#include "base/base.h"
#include "store/type_pathhash.h"

/* Words that are set at once. */
enum { WORDS_AT_ONCE = 128 };

/* ------------------------------------------------------------------ writing */

void rdbWritePath(rdbWriter *w, slice path, const pathFields *fields) {
    hotCheck(pathFieldsCount(fields) > 0);
    pathFieldsIterator it;
    hashPair pair;
    rdbWriteString(w, path);
    rdbWriteLength(w, pathFieldsCount(fields));
    pathFieldsIteratorInit(&it, fields);
    while (pathFieldsNext(&it, &pair)) {
        rdbWriteString(w, pair.field);
        rdbWriteString(w, pair.value);
    }
    pathFieldsIteratorClear(&it);
}

void rdbWritePathHash(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_PATHHASH);
    pathHashCursor c;
    slice path;
    const pathFields *fields;
    rdbWriteLength(w, pathHashCount(pathHashOf(o)));
    pathHashCursorInit(&c, pathHashOf(o));
    while (pathHashNext(&c, &path, &fields)) rdbWritePath(w, path, fields);
    pathHashCursorClear(&c);
}

/* ------------------------------------------------------------------ reading */

typedef struct pathReader {
    valueReader *v;
    pathHash *map;
    str path, bytes; /* `bytes`: of the words that were read last */
} pathReader;

/* Reads up to WORDS_AT_ONCE fields and values, and sets them. */
static status readWords(pathReader *p, size_t count) {
    hotCheck(count <= WORDS_AT_ONCE);
    size_t ends[WORDS_AT_ONCE];
    slice words[WORDS_AT_ONCE], text;
    strClear(&p->bytes);
    for (size_t i = 0; i < count; i++) {
        status st = rdbReadString(p->v->r, &text);
        if (st != OK) return st;
        strAppendSlice(&p->bytes, text);
        ends[i] = p->bytes.len;
    }
    slice all = strSlice(&p->bytes);
    for (size_t i = 0; i < count; i++) {
        size_t from = i ? ends[i - 1] : 0;
        words[i] = sliceMake(all.ptr + from, ends[i] - from);
    }
    uint64_t before = pathHashFields(p->map);
    pathHashSet(p->map, strSlice(&p->path), words, count, &p->v->options->limits.hash);
    if (pathHashFields(p->map) != before + count / 2)
        return rdbReaderFail(p->v->r, "Duplicate fields in a path of a path hash");
    return OK;
}

static status readPath(pathReader *p) {
    uint64_t fields = 0;
    status st = rdbReadStringInto(p->v->r, &p->path);
    if (st == OK) st = rdbReadLength(p->v->r, &fields);
    if (st != OK) return st;
    if (fields == 0) return rdbReaderFail(p->v->r, "A path of a path hash without fields");
    if (pathHashFind(p->map, strSlice(&p->path)))
        return rdbReaderFail(p->v->r, "Duplicate paths in a path hash");
    while (st == OK && fields > 0) {
        uint64_t some = fields < WORDS_AT_ONCE / 2 ? fields : WORDS_AT_ONCE / 2;
        st = readWords(p, (size_t)some * 2);
        fields -= some;
    }
    return st;
}

status rdbReadPathHash(valueReader *v) {
    hotCheck(!v->r->redis);
    uint64_t paths;
    status st = rdbReadLength(v->r, &paths);
    if (st != OK) return st;
    v->o = pathHashObjectNew(v->key);
    pathReader p = {.v = v, .map = pathHashOf(v->o), .path = STR_EMPTY, .bytes = STR_EMPTY};
    for (uint64_t i = 0; st == OK && i < paths; i++) st = readPath(&p);
    strFree(&p.path);
    strFree(&p.bytes);
    return st;
}

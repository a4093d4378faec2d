/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keys with a stream. A function that fails sets errno to the reason. An
 * iteration continues after the entry that was read last, even if the stream has changed since; the
 * remaining fields of that entry can be read only while it exists. A stream whose last entry is
 * removed remains, and is empty. */
#include <errno.h>

#include "base/base.h"
#include "format/rdb_settings.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/type_stream.h"

/* An iteration. */
typedef struct streamWalk {
    streamId start, end; /* both included */
    bool backwards;
    streamCursor cursor; /* in the stream as of `seen` */
    uint64_t seen;       /* keysChanges */
    bool has_entry;      /* `id` was read, and has not been removed by this iteration */
    bool ended;
    streamId id;
    streamFields fields; /* the rest of them */
    int64_t fields_read;
} streamWalk;

static int failWith(int error) {
    hotCheck(error);
    errno = error;
    return VALKEYMODULE_ERR;
}

static streamId idIn(const ValkeyModuleStreamID *id) { return (streamId){id->ms, id->seq}; }

static void idOut(streamId id, ValkeyModuleStreamID *out) {
    hotCheck(out);
    *out = (ValkeyModuleStreamID){.ms = id.ms, .seq = id.seq};
}

/* What is wrong with the handle, 0: nothing. *s: the stream, or NULL where there is no key. */
static int streamForWrite(ValkeyModuleKey *k, stream **s) {
    hotCheck(k->owner);
    const robj *o = keyIsWritable(k) ? keyFind(k) : keyObject(k);
    if (o && objectType(o) != TYPE_STREAM) return ENOTSUP;
    *s = o ? streamOf(o) : NULL;
    return keyIsWritable(k) && k->owner->run ? 0 : EBADF;
}

/* ------------------------------------------------------------------ entries */

/* Sets *id, which is the id that is wanted, or with `is_auto` nothing, to that of a new entry. */
static int chooseId(const stream *s, bool is_auto, streamId *id) {
    streamId last = s ? streamLastId(s) : STREAM_ID_MIN;
    if (streamIdEqual(last, STREAM_ID_MAX)) return EFBIG;
    if (!is_auto) return streamIdLess(last, *id) ? 0 : EDOM;
    *id = last;
    return streamIdNextAt(id, (uint64_t)clockWallMs()) ? 0 : EFBIG;
}

static int append(ValkeyModuleKey *k, stream *s, streamId id, ValkeyModuleString **argv,
                  int count) {
    enum { FEW = 32 };
    slice few[FEW] = {0}, *fields = moduleStringSlices(argv, count, few, FEW);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += fields[i].len;
    bool fits = bytes <= STREAM_ENTRY_BYTES_MAX;
    if (fits && !s) {
        robj *o = streamObjectNew(keyName(k));
        s = streamOf(o);
        keyPlace(k, o);
    }
    if (fits) streamAppend(s, id, fields, (size_t)count, &rdbLimitsNow()->stream);
    if (fields != few) memFree(fields);
    return fits ? 0 : ERANGE;
}

int apiStreamAdd(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *id,
                 ValkeyModuleString **argv, int64_t numfields) {
    bool is_auto = flags & VALKEYMODULE_STREAM_ADD_AUTOID;
    /* Valkey also takes an entry without fields, which no command can add on a replica. */
    if (!key || !argv || numfields <= 0 || numfields > INT32_MAX / 2 ||
        flags & ~VALKEYMODULE_STREAM_ADD_AUTOID || (!is_auto && !id))
        return failWith(EINVAL);
    stream *s;
    int error = streamForWrite(key, &s);
    streamId at = is_auto ? STREAM_ID_MIN : idIn(id);
    if (!error && !is_auto && streamIdIsZero(at)) error = EDOM;
    if (!error) error = chooseId(s, is_auto, &at);
    if (!error) error = append(key, s, at, argv, (int)numfields * 2);
    if (error) return failWith(error);
    key->changed = true;
    if (id) idOut(at, id);
    return VALKEYMODULE_OK;
}

int apiStreamDelete(ValkeyModuleKey *key, ValkeyModuleStreamID *id) {
    if (!key || !id) return failWith(EINVAL);
    stream *s;
    int error = streamForWrite(key, &s);
    if (!error && !s) error = ENOTSUP;
    if (!error && key->iterator) error = EBADF;
    if (!error && !streamDelete(s, idIn(id))) error = ENOENT;
    if (error) return failWith(error);
    key->changed = true;
    return VALKEYMODULE_OK;
}

/* The work of one approximate trim is bounded, as for XTRIM: 100 full nodes. 0: nodes have no such
 * limit. */
static uint64_t approximateMax(void) {
    uint64_t entries = rdbLimitsNow()->stream.node_entries;
    return entries > INT64_MAX / 100 ? INT64_MAX : entries * 100;
}

static long long trim(ValkeyModuleKey *k, int flags, streamTrimRule rule) {
    stream *s = NULL;
    int error = streamForWrite(k, &s);
    if (!error && !s) error = ENOTSUP;
    if (error) {
        errno = error;
        return -1;
    }
    rule.whole_nodes = flags & VALKEYMODULE_STREAM_TRIM_APPROX;
    if (rule.whole_nodes) rule.max_removed = approximateMax();
    hotCheck(s);
    uint64_t removed = streamTrim(s, &rule);
    k->changed |= removed > 0;
    return (long long)removed;
}

static bool trimFlagsAreKnown(int flags) { return !(flags & ~VALKEYMODULE_STREAM_TRIM_APPROX); }

long long apiStreamTrimByLength(ValkeyModuleKey *key, int flags, long long length) {
    if (key && trimFlagsAreKnown(flags) && length >= 0)
        return trim(key, flags, (streamTrimRule){.length = (uint64_t)length});
    errno = EINVAL;
    return -1;
}

long long apiStreamTrimByID(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *id) {
    if (key && trimFlagsAreKnown(flags) && id)
        return trim(key, flags, (streamTrimRule){.by_id = true, .min_id = idIn(id)});
    errno = EINVAL;
    return -1;
}

/* ------------------------------------------------------------------ iterating */

static void freeWalk(void *iterator) {
    streamWalk *walk = iterator;
    hotCheck(walk->fields_read >= 0);
    streamCursorClear(&walk->cursor);
    memFree(walk);
}

int apiStreamIteratorStart(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *startid,
                           ValkeyModuleStreamID *endid) {
    const int known = VALKEYMODULE_STREAM_ITERATOR_EXCLUSIVE | VALKEYMODULE_STREAM_ITERATOR_REVERSE;
    if (!key || flags & ~known) return failWith(EINVAL);
    const robj *o = keyObject(key);
    if (!o || objectType(o) != TYPE_STREAM) return failWith(ENOTSUP);
    if (key->iterator) return failWith(EBADF);
    streamId start = startid ? idIn(startid) : STREAM_ID_MIN;
    streamId end = endid ? idIn(endid) : STREAM_ID_MAX;
    bool exclusive = flags & VALKEYMODULE_STREAM_ITERATOR_EXCLUSIVE;
    if (exclusive && startid && !streamIdNext(&start)) return failWith(EDOM);
    if (exclusive && endid && !streamIdPrev(&end)) return failWith(EDOM);
    streamWalk *walk = memNew(streamWalk);
    walk->start = start;
    walk->end = end;
    walk->backwards = flags & VALKEYMODULE_STREAM_ITERATOR_REVERSE;
    walk->seen = keysChanges;
    streamCursorInit(&walk->cursor, streamOf(o), start, end, walk->backwards);
    key->iterator = walk;
    key->iterator_free = freeWalk;
    return VALKEYMODULE_OK;
}

/* The iteration of the handle, in *walk. Else what is wrong with it. */
static int walkOf(ValkeyModuleKey *k, streamWalk **walk) {
    if (!k) return EINVAL;
    const robj *o = keyObject(k);
    if (!o || objectType(o) != TYPE_STREAM) return ENOTSUP;
    *walk = k->iterator;
    return *walk ? 0 : EBADF;
}

/* Makes the cursor and the fields those of the stream as it is now. */
static void renew(ValkeyModuleKey *k, streamWalk *walk) {
    const robj *o = keyObject(k);
    if (likely(walk->seen == keysChanges && !(k->owner->flags & CONTEXT_THREAD))) return;
    streamId start = walk->start, end = walk->end;
    if (walk->has_entry) *(walk->backwards ? &end : &start) = walk->id;
    streamCursorClear(&walk->cursor);
    streamCursorInit(&walk->cursor, streamOf(o), start, end, walk->backwards);
    walk->seen = keysChanges;
    hotCheck(walk->fields_read >= 0);
    if (!walk->has_entry) return;
    streamId id;
    streamFields fields;
    bool found = streamCursorNext(&walk->cursor, &id, &fields);
    if (found && streamIdEqual(id, walk->id)) {
        for (int64_t i = 0; i < walk->fields_read; i++) {
            listpackItem name, value;
            streamFieldsNext(&fields, &name, &value);
        }
        walk->fields = fields;
        return;
    }
    walk->fields.left = 0; /* the entry was removed; the cursor begins anew with what follows */
    streamCursorClear(&walk->cursor);
    streamCursorInit(&walk->cursor, streamOf(o), start, end, walk->backwards);
}

/* The current entry is done: an iteration that is renewed continues after it. */
static void leaveEntry(streamWalk *walk) {
    hotCheck(walk->has_entry);
    walk->has_entry = false;
    walk->fields.left = 0;
    streamId next = walk->id;
    bool more = walk->backwards ? streamIdPrev(&next) : streamIdNext(&next);
    *(walk->backwards ? &walk->end : &walk->start) = next;
    walk->ended = !more || streamIdLess(walk->end, walk->start);
}

int apiStreamIteratorNextID(ValkeyModuleKey *key, ValkeyModuleStreamID *id, long *numfields) {
    streamWalk *walk;
    int error = walkOf(key, &walk);
    if (error) return failWith(error);
    renew(key, walk);
    if (walk->has_entry) leaveEntry(walk);
    if (walk->ended || !streamCursorNext(&walk->cursor, &walk->id, &walk->fields))
        return failWith(ENOENT);
    walk->has_entry = true;
    walk->fields_read = 0;
    if (id) idOut(walk->id, id);
    if (numfields) *numfields = (long)walk->fields.left;
    return VALKEYMODULE_OK;
}

int apiStreamIteratorNextField(ValkeyModuleKey *key, ValkeyModuleString **field_ptr,
                               ValkeyModuleString **value_ptr) {
    streamWalk *walk;
    int error = walkOf(key, &walk);
    if (error) return failWith(error);
    renew(key, walk);
    if (!walk->has_entry || !walk->fields.left) return failWith(ENOENT);
    listpackItem name, value;
    streamFieldsNext(&walk->fields, &name, &value);
    walk->fields_read++;
    if (field_ptr) *field_ptr = keyTextOf(key, &name);
    if (value_ptr) *value_ptr = keyTextOf(key, &value);
    return VALKEYMODULE_OK;
}

int apiStreamIteratorDelete(ValkeyModuleKey *key) {
    streamWalk *walk;
    int error = walkOf(key, &walk);
    if (!error && !keyIsWritable(key)) error = EBADF;
    if (!error && !walk->has_entry) error = ENOENT;
    if (error) return failWith(error);
    const robj *o = keyFind(key); /* from now on the cursor is renewed before it is used */
    hotCheck(o);
    bool deleted = streamDelete(streamOf(o), walk->id);
    key->changed |= deleted;
    leaveEntry(walk);
    return deleted ? VALKEYMODULE_OK : failWith(ENOENT);
}

int apiStreamIteratorStop(ValkeyModuleKey *key) {
    streamWalk *walk;
    int error = walkOf(key, &walk);
    if (error) return failWith(error);
    keyStopIterator(key);
    return VALKEYMODULE_OK;
}

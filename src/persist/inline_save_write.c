/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saving in slices: what is written for a key that the store passes on, whole or in parts, and
 * which values are left to a child.
 *
 * Invariant: between begin and end of a value in parts, `records.writer` is the side writer, so no
 * record interrupts that of the value. A failure is noted and ends the walk; the stage reports
 * it. */
#include "persist/inline_save_priv.h"

#include "base/base.h"
#include "persist/persist_priv.h"
#include "store/member_expiry.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_pathhash.h"
#include "store/type_stream.h"

/* Larger values that are not written in parts take more than a millisecond: left to a child in mode
 * auto. */
enum {
    VALUE_ELEMENTS_MAX = 8192, /* written as commands */
    VALUE_BYTES_MAX = 1 << 20,
    COPIED_MAX = 10000, /* nodes of a list, blocks of a stream's groups, or fields of a path */
    VALUE_SAMPLES = 5,  /* elements from which the bytes of a value are estimated */
    REPORT_KEYS = 1024,
};

/* ------------------------------------------------------------------ large values */

static bool isLarger(const robj *o, size_t elements_max, size_t bytes_max) {
    const typeOps *ops = typeOf(o);
    if (ops->length(o) > elements_max) return true;
    return ops->value_memory(NULL, objectPointer(o), VALUE_SAMPLES) > bytes_max;
}

/* True for values that take too long: written whole as commands, or those with too much to be
 * copied at their first change. */
static bool isTooLarge(const robj *o, bool as_commands) {
    hotCheck(objectType(o) < TYPE_COUNT);
    if (likely(objectForm(o) != FORM_POINTER) || objectType(o) == TYPE_STRING) return false;
    if (as_commands) return isLarger(o, VALUE_ELEMENTS_MAX, VALUE_BYTES_MAX);
    if (objectType(o) == TYPE_STREAM) return streamGroupsEffort(streamOf(o)) > COPIED_MAX;
    if (objectType(o) == TYPE_PATHHASH) return pathHashLargest(pathHashOf(o)) > COPIED_MAX;
    if (objectType(o) != TYPE_LIST) return false;
    return quicklistNodes(listQuicklist(o)) > COPIED_MAX;
}

/* True if the value is written in parts. Commands are written whole, and so is what the format has
 * no type for: that fails. */
static bool divides(void *arg, const robj *o) {
    const inlineJob *job = arg;
    if (!job->walks || job->save.job.as_commands) return false;
    if (likely(!storeSavingIsLarge(o))) return false;
    if (job->save.mode == SNAPSHOT_AUTO && isTooLarge(o, false)) return false;
    bool is_hash = objectType(o) == TYPE_HASH;
    bool timed = is_hash ? hashTimedCount(o) > 0 : membersTimes(o) != NULL;
    rdbType type = rdbTypeInParts(objectType(o), timed);
    const rdbWriter *w = job->records.writer;
    return rdbTypeInVersion(w->released_types ? rdbTypeWritten(w, type) : type,
                            job->records.version);
}

bool inlineJobLargeExists(largeValue *large, bool as_commands) {
    if (large->db_id < 0) return false;
    slice key = strSlice(&large->key);
    const robj *o = dbPeek(storeDb(large->db_id), key, storeHash(key));
    if (o && isTooLarge(o, true)) return isTooLarge(o, as_commands);
    large->db_id = -1;
    return false;
}

/* True if the job ends because of this value: found by the stage. */
static bool leaveToChild(inlineJob *job, int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    hotCheck(!job->found_large);
    if (job->save.mode != SNAPSHOT_AUTO) return false;
    if (likely(!isTooLarge(o, job->save.job.as_commands))) return false;
    inlineSaving.large.db_id = db_id;
    strClear(&inlineSaving.large.key);
    strAppendSlice(&inlineSaving.large.key, objectKey(o));
    job->found_large = true;
    inlineJobEndWalk(job);
    return true;
}

/* ------------------------------------------------------------------ records */

static void selectDb(inlineJob *job, int db_id) {
    hotCheck(db_id < storeDbCount());
    hotCheck(db_id >= 0);
    hotCheck(db_id < job->db_count);
    if (db_id == job->db_id) return;
    savedDb *d = &job->dbs[db_id];
    if (d->announced) {
        rdbRecordsSelect(&job->records, db_id);
    } else {
        rdbRecordsDb(&job->records, db_id, d->keys, d->volatile_keys);
    }
    d->announced = true;
    job->db_id = db_id;
    hotCheck(job->dbs[db_id].announced);
}

/* The stage will find the failure. */
static void noteFailure(inlineJob *job, status st, const reason *why) {
    if (likely(st == OK) || job->failed != OK) return;
    job->failed = st;
    job->failed_why = *why;
    inlineJobEndWalk(job);
    hotCheck(job->failed == OK || !job->walks);
    hotCheck(st == OK || job->failed != OK);
}

static void countKey(inlineJob *job) {
    if (++job->keys_done % REPORT_KEYS == 0)
        childNoteProgressHere(job->keys_done, job->keys_total,
                              snapshotStreamCount(job->stream).memory);
}

static void writeKey(inlineJob *job, int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    hotCheck(inlineSaving.runs);
    selectDb(job, db_id);
    status st = rdbRecordsKey(&job->records, db_id, o);
    noteFailure(job, st, &job->records.writer->why);
    countKey(job);
}

/* ------------------------------------------------------------------ values in parts */

static void beginValue(void *arg, const savedValue *value) {
    inlineJob *job = arg;
    check(!job->in_value);
    selectDb(job, value->db_id);
    rdbWriter *w = snapshotStreamWriter(job->stream);
    job->value_type = rdbTypeInParts(objectType(value->head), value->is_timed);
    if (unlikely(w->released_types)) job->value_type = rdbTypeWritten(w, job->value_type);
    if (value->rest) rdbWriteProducers(w, value->rest);
    rdbFileKeyInParts(w, value->head, job->value_type, value->count, job->records.access);
    job->records.writer = snapshotStreamSide(job->stream);
    job->records.writer->released_types = w->released_types;
    job->records.writer->redis_types = w->redis_types;
    job->stream_rest = (rdbStreamRest){0};
    job->in_value = true;
}

static void writeElement(void *arg, const valueElement *element) {
    hotCheck(((const inlineJob *)arg)->in_value);
    inlineJob *job = arg;
    rdbWriteElement(snapshotStreamWriter(job->stream), job->value_type, element);
    job->elements++;
}

static void writeNode(void *arg, const quicklistNodeView *node) {
    hotCheck(((const inlineJob *)arg)->in_value);
    inlineJob *job = arg;
    rdbWriteNode(snapshotStreamWriter(job->stream), node);
    job->elements++;
}

static void writeStreamNode(void *arg, streamId key, const streamNode *node) {
    hotCheck(((const inlineJob *)arg)->in_value);
    inlineJob *job = arg;
    rdbWriteStreamNode(snapshotStreamWriter(job->stream), key, node);
    job->elements++;
}

static bool writeStreamRest(void *arg, const stream *rest, uint64_t count) {
    hotCheck(((const inlineJob *)arg)->in_value);
    inlineJob *job = arg;
    job->stream_rest.from = rest;
    job->elements += count;
    return rdbWriteStreamRest(snapshotStreamWriter(job->stream), &job->stream_rest, count);
}

static void endValue(void *arg) {
    inlineJob *job = arg;
    check(job->in_value);
    rdbWriter *w = snapshotStreamWriter(job->stream);
    noteFailure(job, rdbWriterStatus(w), &w->why);
    noteFailure(job, rdbWriterStatus(job->records.writer), &job->records.writer->why);
    snapshotStreamJoinSide(job->stream);
    job->records.writer = w;
    job->in_value = false;
    job->costs.divided++;
    countKey(job);
}

/* ------------------------------------------------------------------ calls of the walk */

static bool offer(void *arg, int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    inlineJob *job = arg;
    const char *block = job->records.writer->buffer;
    /* Small values fit a block that had room before. */
    if (unlikely(block != job->roomy_block) || unlikely(objectForm(o) == FORM_POINTER)) {
        job->roomy_block = NULL;
        if (!job->walks || leaveToChild(job, db_id, o) || snapshotStreamRoom(job->stream) == 0)
            return false;
        job->roomy_block = block;
    }
    writeKey(job, db_id, o);
    return true;
}

static void take(void *arg, int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    inlineJob *job = arg;
    if (!job->walks || leaveToChild(job, db_id, o)) return;
    job->costs.early++;
    writeKey(job, db_id, o);
    inlineJobLimit(job);
}

static void limit(void *arg) { inlineJobLimit(arg); }

const storeSaver inlineSaveCallbacks = {.offer = offer,
                                        .take = take,
                                        .limit = limit,
                                        .divides = divides,
                                        .begin = beginValue,
                                        .element = writeElement,
                                        .node = writeNode,
                                        .stream_node = writeStreamNode,
                                        .stream_rest = writeStreamRest,
                                        .end = endValue,
                                        .arg = &inlineSaving.job};

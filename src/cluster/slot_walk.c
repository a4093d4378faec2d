/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The walk over the keys of slots (slot_walk.h). There is one walk in a process, so the callbacks
 * do not use their argument.
 *
 * Invariants: `out` has complete commands in the order in which they are to be executed; only after
 * a string was lent it begins with the rest of that string's command. Changes are in `held` if and
 * only if a large value is being sent, because they must not be executed before the rest of it. A
 * walk that was stopped has removed its marks before the next one begins; its stage stays
 * registered until then. */
#include "cluster/slot_walk.h"

#include "base/base.h"
#include "base/clock.h"
#include "engine/child.h"
#include "engine/engine.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/propagate.h"
#include "format/aof_parts.h"
#include "format/aof_value.h"
#include "persist/persist.h"
#include "store/saving.h"
#include "store/store.h"

enum {
    STEP_BUCKETS = 16,
    SEND_BYTES = 32 * 1024, /* passed on together */
    LEND_MIN = 16 * 1024,   /* of a string that is passed on by reference */
    SHARE_PERCENT = 40,     /* of the time, for the walk */
    SHARE_US_MIN = 50,      /* in one turn */
    SHARE_US_MAX = 250,
    OWED_US_MAX = 500, /* for buckets that are owed, because keys were added */
    KEY_PAYS_BUCKETS = 2,
};

static struct {
    bool runs;      /* passes on keys */
    bool has_stage; /* registered */
    const slotWalkProcs *procs;
    void *arg;
    str out;
    rdbSink sink; /* appends to `out` */
    rdbWriter writer;
    int db_id; /* selected at the end of `out`; -1: none */
    aofParts parts;
    uint64_t open; /* large values that are not complete */
    str held;
    int held_db;
    uint64_t added_paid, owed;
    int64_t left_us;
    int64_t resume_us; /* rdb-key-save-delay: no step before this time */
    slotWalkProgress progress;
} walk;

int slotWalkDb(void) { return walk.db_id; }
size_t slotWalkPending(void) { return walk.out.len + walk.held.len; }
slotWalkProgress slotWalkCount(void) { return walk.progress; }

bool slotWalkCanBegin(void) {
    return !walk.runs && !storeSavingRuns() && childAlive() == CHILD_NONE;
}

/* ------------------------------------------------------------------ the stream */

static void sendOut(void) {
    if (!walk.out.len) return;
    walk.progress.bytes += walk.out.len;
    walk.procs->send(walk.arg, strSlice(&walk.out));
    strClear(&walk.out);
}

static void endRecord(void) {
    (void)rdbWriterFlush(&walk.writer); /* to memory: it cannot fail */
    if (walk.out.len >= SEND_BYTES) sendOut();
}

static void selectDb(int db_id) {
    hotCheck(db_id < storeDbCount());
    if (db_id == walk.db_id) return;
    aofWriteSelect(&walk.writer, db_id);
    walk.db_id = db_id;
}

static void writeKey(int db_id, const robj *o) {
    hotCheck(walk.runs);
    selectDb(db_id);
    aofWriteKey(&walk.writer, o);
    walk.progress.keys++;
    endRecord();
}

void slotWalkChange(int db_id, const slice *spans, int count) {
    hotCheck(walk.runs);
    hotCheck(count > 0);
    bool waits = walk.open > 0;
    str *to = waits ? &walk.held : &walk.out;
    int *selected = waits ? &walk.held_db : &walk.db_id;
    if (db_id >= 0 && db_id != *selected) {
        propagateAppendSelect(to, db_id);
        *selected = db_id;
    }
    for (int i = 0; i < count; i++) strAppendSlice(to, spans[i]);
    if (walk.out.len >= SEND_BYTES) sendOut();
}

/* The last open value is complete: what has waited for it follows. */
static void releaseHeld(void) {
    hotCheck(walk.open == 0);
    if (!walk.held.len) return;
    strAppendSlice(&walk.out, strSlice(&walk.held));
    walk.db_id = walk.held_db;
    strFree(&walk.held);
    walk.held_db = -1;
    if (walk.out.len >= SEND_BYTES) sendOut();
}

/* ---- the sink of the writer ---- */

static status takeBytes(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    (void)sink, (void)why; /* writing to memory cannot fail */
    strAppend(&walk.out, bytes, len);
    return OK;
}

static bool takeBlob(rdbSink *sink, rdbWriter *w, blob *bytes) {
    (void)sink;
    if (bytes->len < LEND_MIN) return false;
    (void)rdbWriterFlush(w); /* to memory: it cannot fail */
    sendOut();
    walk.progress.bytes += bytes->len;
    walk.procs->lend(walk.arg, bytes);
    return true;
}

/* ------------------------------------------------------------------ calls of the store */

static bool offer(void *arg, int db_id, const robj *o) {
    (void)arg;
    if (!walk.runs || walk.procs->room(walk.arg) <= walk.out.len) return false;
    writeKey(db_id, o);
    return true;
}

static void take(void *arg, int db_id, const robj *o) {
    (void)arg;
    if (walk.runs) writeKey(db_id, o);
}

static void limit(void *arg) { (void)arg; /* the link has limits of its own */ }

static bool divides(void *arg, const robj *o) {
    (void)arg;
    if (!walk.runs || !aofPartsCan(o)) return false;
    if (!storeSavingIsLarge(o)) return false;
    walk.open++;
    return true;
}

static void beginValue(void *arg, const savedValue *value) {
    (void)arg;
    selectDb(value->db_id);
    aofPartsBegin(&walk.parts, value);
}

static void writeElement(void *arg, const valueElement *element) {
    (void)arg;
    hotCheck(walk.open > 0);
    selectDb(walk.parts.db_id);
    aofPartsElement(&walk.parts, &walk.writer, element);
    endRecord();
}

static void writeNode(void *arg, const quicklistNodeView *node) {
    (void)arg;
    hotCheck(walk.open > 0);
    selectDb(walk.parts.db_id);
    aofPartsNode(&walk.parts, &walk.writer, node);
    endRecord();
}

static void writeStreamNode(void *arg, streamId first, const streamNode *node) {
    (void)arg;
    hotCheck(walk.open > 0);
    selectDb(walk.parts.db_id);
    aofPartsStreamNode(&walk.parts, &walk.writer, first, node);
    endRecord();
}

static bool writeStreamRest(void *arg, const stream *rest, uint64_t count) {
    (void)arg;
    hotCheck(walk.open > 0);
    selectDb(walk.parts.db_id);
    bool more = aofPartsStreamRest(&walk.parts, &walk.writer, rest, count);
    endRecord();
    return more;
}

static void endValue(void *arg) {
    (void)arg;
    check(walk.open > 0);
    selectDb(walk.parts.db_id);
    aofPartsEnd(&walk.parts, &walk.writer);
    walk.open--;
    walk.progress.keys++;
    endRecord();
    if (walk.open == 0) releaseHeld();
}

static const storeSaver saver = {.offer = offer,
                                 .take = take,
                                 .limit = limit,
                                 .divides = divides,
                                 .begin = beginValue,
                                 .element = writeElement,
                                 .node = writeNode,
                                 .stream_node = writeStreamNode,
                                 .stream_rest = writeStreamRest,
                                 .end = endValue};

/* ------------------------------------------------------------------ beginning and end */

static void clear(void) {
    walk.runs = false;
    walk.open = 0;
    strFree(&walk.out);
    strFree(&walk.held);
    rdbWriterClear(&walk.writer);
    aofPartsClear(&walk.parts);
}

/* Called by childKill(). */
static void killed(void) {
    void *arg = walk.arg;
    check(walk.runs);
    storeSavingAbandon();
    clear();
    walk.procs->stopped(arg);
}

void slotWalkStop(const void *arg) {
    if (!walk.runs || walk.arg != arg) return;
    storeSavingAbandon();
    clear();
    childEndHere(1);
}

/* The walk has visited everything. */
static void finish(void) {
    void *arg = walk.arg;
    check(walk.open == 0);
    check(!walk.held.len);
    sendOut();
    clear();
    childEndHere(0);
    walk.procs->ended(arg);
}

/* ------------------------------------------------------------------ the stage */

static void runStage(void);
static const stageJob stages[] = {{STAGE_FREE, runStage}, {0, NULL}};
static const feature slices = {.name = "slot walk", .stages = stages};

static int64_t share(int64_t now_us) {
    int64_t us = (now_us - walk.left_us) * SHARE_PERCENT / (100 - SHARE_PERCENT);
    if (us < SHARE_US_MIN) return SHARE_US_MIN;
    return us > SHARE_US_MAX ? SHARE_US_MAX : us;
}

/* New keys beyond the cut prolong the walk: they are paid for by more of it in this turn. */
static void countOwed(void) {
    uint64_t added = storeSavingAdded();
    hotCheck(added >= walk.added_paid);
    walk.owed += (added - walk.added_paid) * KEY_PAYS_BUCKETS;
    walk.added_paid = added;
}

/* With rdb-key-save-delay a turn visits one bucket, and the next one waits for each of its keys. */
static void step(int64_t now_us, int64_t delay_us, bool *more, bool *has_room) {
    int64_t free_us = share(now_us), spent_us;
    uint64_t keys = walk.progress.keys;
    hotCheck(walk.runs);
    hotCheck(now_us >= walk.resume_us);
    countOwed();
    do {
        *has_room = walk.procs->room(walk.arg) > walk.out.len;
        *more = !*has_room || storeSavingStep(delay_us > 0 ? 1 : STEP_BUCKETS);
        walk.owed -= sizeMin(walk.owed, STEP_BUCKETS);
        spent_us = clockMonoUs() - now_us;
    } while (*more && *has_room && walk.runs && delay_us <= 0 &&
             spent_us < (walk.owed ? OWED_US_MAX : free_us));
    walk.progress.main_us += spent_us;
    if (spent_us > walk.progress.longest_us) walk.progress.longest_us = spent_us;
    latencyNote("slot-migration-slice", spent_us / 1000);
    walk.resume_us = 0;
    if (delay_us > 0) walk.resume_us = now_us + (int64_t)(walk.progress.keys - keys) * delay_us;
}

static void advance(int64_t now_us) {
    hotCheck(walk.runs);
    uint64_t sent = walk.progress.bytes, passed = sent + walk.out.len;
    bool more, has_room;
    int64_t wait_us = walk.resume_us - now_us;
    if (wait_us > 0) {
        loopLimitSleep(engineLoop(), wait_us / 1000 + 1);
        return;
    }
    step(now_us, persistKeySaveDelayUs(), &more, &has_room);
    passed = walk.progress.bytes + walk.out.len - passed;
    if (passed > walk.progress.most_bytes) walk.progress.most_bytes = passed;
    if (!walk.runs) return;
    if (!more) {
        finish();
        return;
    }
    sendOut();
    /* The next turn writes what was sent. That makes room, or registers for the event that does. */
    if (has_room || walk.progress.bytes != sent) loopLimitSleep(engineLoop(), 0);
}

/* A nested turn interrupts a command: the walk waits for its end. */
static void runStage(void) {
    int64_t now_us = clockMonoUs();
    if (loopDepth(engineLoop()) > 1) return;
    if (walk.runs) {
        advance(now_us);
    } else if (storeSavingRuns() && storeSavingIsAbandoned()) {
        int64_t end_us = now_us + share(now_us);
        while (storeSavingStep(STEP_BUCKETS) && clockMonoUs() < end_us) {}
        loopLimitSleep(engineLoop(), 0);
    }
    if (!walk.runs && !storeSavingRuns()) {
        hooksRemoveFeature(&slices);
        walk.has_stage = false;
    }
    walk.left_us = clockMonoUs();
}

/* ------------------------------------------------------------------ start */

static uint64_t countKeys(const slotMask *slots) {
    uint64_t keys = 0;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slotMaskHas(slots, slot)) continue;
        for (int i = 0; i < storeDbCount(); i++) keys += dbSlotCount(storeDb(i), slot);
    }
    return keys;
}

void slotWalkBegin(const slotMask *slots, const slotWalkProcs *procs, void *arg) {
    reason why;
    check(arg);
    check(slotWalkCanBegin());
    status st = childBeginHere(CHILD_SLOT_EXPORT, killed, &why);
    check(st == OK); /* there is no child */
    walk.procs = procs;
    walk.arg = arg;
    walk.db_id = walk.held_db = -1;
    walk.progress = (slotWalkProgress){.keys_total = countKeys(slots)};
    walk.added_paid = walk.owed = 0;
    walk.resume_us = 0;
    walk.sink = (rdbSink){.write = takeBytes, .lend = takeBlob};
    rdbWriterInit(&walk.writer, &walk.sink, false, false);
    walk.runs = true;
    storeSavingBegin(&saver, slots);
    walk.left_us = clockMonoUs();
    if (!walk.has_stage) hooksAddFeature(&slices);
    walk.has_stage = true;
    loopLimitSleep(engineLoop(), 0);
}

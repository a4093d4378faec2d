/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines with positions of the replication stream (aof_position.h). Invariant: while
 * aofPositionIsKnown, `end` is the position that a reader computes for the end of the buffer. */
#include "persist/aof_position.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/propagate.h"
#include "persist/rdb_save.h"
#include "persist/sync.h"

enum {
    ID_LEN = 40,
    PAIR_BYTES_MAX = 128,
    /* Lines may take a sixteenth of the records, and so many bytes per tick. What exceeds that has
     * to wait, with the position unknown meanwhile. */
    CREDIT_MAX = 4096,
    CREDIT_PER_TICK = 256,
    RECORD_BYTES_PER_CREDIT = 16,
};

static const char at_prefix[] = "#AT:";
static const char prefix[] = "#REPL:";
static const char unknown_line[] = "#REPL:0000000000000000000000000000000000000000:-1:-1\r\n";

bool aofPositionIsKnown;

static struct {
    syncOrigin end;
    size_t from;    /* where the turn begins in the buffer */
    bool differs;   /* a record of the turn is not one of the stream */
    bool selects;   /* the turn has a SELECT */
    bool forbidden; /* aofPositionForbid() */
    int64_t credit;
} writer = {.credit = CREDIT_MAX};

/* Bytes of SELECT with this database. */
static int64_t selectLength(int db_id) {
    hotCheck(db_id >= 0);
    char digits[NUMBER_TEXT_MAX];
    int64_t len = (int64_t)numberPrintInt(digits, db_id);
    return (int64_t)sizeof("*2\r\n$6\r\nSELECT\r\n$\r\n\r\n") - 1 + len + (len < 10 ? 1 : 2);
}

/* ------------------------------------------------------------------ writing */

void aofPositionReset(void) {
    aofPositionIsKnown = false;
    writer.forbidden = false;
    hotCheck(threadIsMain());
}

void aofPositionForbid(void) { writer.forbidden = true; }

/* The present position of the stream. False if there is none that the file corresponds to between
 * two turns. */
static bool findPosition(syncOrigin *out) {
    return !writer.forbidden && rdbSaveFindOrigin(out) && strlen(out->id) == ID_LEN;
}

static bool isAt(const syncOrigin *a) {
    const syncOrigin *b = &writer.end;
    return a->id == b->id && a->id_number == b->id_number && a->offset == b->offset &&
           a->db == b->db && a->applies == b->applies;
}

static void printPair(str *out, int64_t at, const syncOrigin *o, int db) {
    hotCheck(at >= 0);
    strAppendFormat(out, "%s%lld\r\n%s%s:%lld:%d\r\n", at_prefix, (long long)at, prefix, o->id,
                    (long long)o->offset, db);
}

/* Appends a pair, unless there are too many. */
static void appendPair(str *buffer, int64_t size, const syncOrigin *now) {
    if (writer.credit < PAIR_BYTES_MAX) return;
    size_t before = buffer->len;
    printPair(buffer, size + (int64_t)before, now, now->db);
    hotCheck(buffer->len - before <= PAIR_BYTES_MAX);
    writer.credit -= (int64_t)(buffer->len - before);
    writer.end = *now;
    aofPositionIsKnown = true;
}

static void appendUnknown(str *buffer) {
    strAppendText(buffer, unknown_line);
    aofPositionIsKnown = false;
}

/* The position of a replica is that before the run of commands that it is executing. The records of
 * that run are counted from there. */
void aofPositionTurnBegins(str *buffer, int64_t size) {
    hotCheck(size >= 0);
    syncOrigin now;
    bool found = findPosition(&now);
    if (aofPositionIsKnown && (!found || !isAt(&now))) appendUnknown(buffer);
    if (!aofPositionIsKnown && found && now.settled) appendPair(buffer, size, &now);
    writer.from = buffer->len;
    writer.differs = writer.selects = false;
}

/* True if the record is the request of the primary that is being executed, unchanged. */
static bool isOfStream(const propagated *p) {
    const ctx *c = engineHot.current;
    return c && c->who->origin == ORIGIN_PRIMARY && c->request && p->span_count > 0 &&
           p->spans[0].ptr == c->request->raw.ptr;
}

void aofPositionCount(const propagated *p, size_t len, bool selects) {
    hotCheck(aofPositionIsKnown);
    bool same = writer.end.applies ? isOfStream(p) : (p->targets & PROPAGATE_REPLICAS) != 0;
    if (unlikely(!same)) writer.differs = true;
    writer.selects |= selects;
    writer.end.offset += (int64_t)len;
    if (likely(p->db_id == writer.end.db) || p->db_id < 0) return;
    writer.end.offset += selectLength(p->db_id);
    writer.end.db = p->db_id;
}

static void insertUnknown(str *buffer) {
    hotCheck(writer.from <= buffer->len);
    const size_t len = sizeof(unknown_line) - 1, rest = buffer->len - writer.from;
    (void)strReserve(buffer, len);
    strGrow(buffer, len);
    memmove(buffer->ptr + writer.from + len, buffer->ptr + writer.from, rest);
    memcpy(buffer->ptr + writer.from, unknown_line, len);
}

void aofPositionTurnEnds(str *buffer, int64_t size) {
    hotCheck(writer.from <= buffer->len);
    syncOrigin now;
    bool found = findPosition(&now);
    writer.credit += (int64_t)((buffer->len - writer.from) / RECORD_BYTES_PER_CREDIT);
    if (writer.credit > CREDIT_MAX) writer.credit = CREDIT_MAX;
    if (aofPositionIsKnown) {
        bool right = found && now.settled && !writer.differs && isAt(&now);
        if (!right) insertUnknown(buffer);
        aofPositionIsKnown = right && !writer.selects;
    }
    if (!aofPositionIsKnown && found && now.settled) appendPair(buffer, size, &now);
}

void aofPositionShift(size_t len) { writer.from += len; }

bool aofPositionIsBehind(void) {
    syncOrigin now;
    return findPosition(&now) && now.settled && !(aofPositionIsKnown && isAt(&now));
}

void aofPositionTick(str *buffer, int64_t size) {
    syncOrigin now;
    writer.credit += CREDIT_PER_TICK;
    if (writer.credit > CREDIT_MAX) writer.credit = CREDIT_MAX;
    if (!findPosition(&now) || !now.settled || (aofPositionIsKnown && isAt(&now))) return;
    appendPair(buffer, size, &now);
}

void aofPositionEnd(str *buffer, int64_t size) {
    syncOrigin now;
    aofPositionIsKnown = false;
    if (!findPosition(&now) || !now.settled) return;
    /* The stream continues with SELECT if none is selected. */
    printPair(buffer, size + (int64_t)buffer->len, &now, now.db < 0 ? 0 : now.db);
}

/* ------------------------------------------------------------------ reading */

static const persistOrigin unknown = {.db = -1};

void aofPositionInit(aofPosition *p) {
    *p = (aofPosition){.at = unknown, .before = unknown, .file_db = -1};
}

void aofPositionNextFile(aofPosition *p) {
    hotCheck(p->file_db >= -1);
    p->file_db = -1;
    p->vouched = false;
}

void aofPositionForget(aofPosition *p) { p->at = p->before = unknown; }

/* Reads a line of which `rest` follows the prefix. */
static bool parsePosition(slice rest, persistOrigin *out) {
    long long offset;
    int db, end = 0;
    char text[64] = "";
    if (rest.len <= ID_LEN + 1 || rest.ptr[ID_LEN] != ':') return false;
    slice numbers = sliceMake(rest.ptr + ID_LEN + 1, rest.len - ID_LEN - 1);
    if (numbers.len >= sizeof(text)) return false;
    memcpy(text, numbers.ptr, numbers.len);
    if (sscanf(text, "%18lld:%9d%n", &offset, &db, &end) != 2 || offset < 0 || db < -1)
        return false;
    slice after = sliceMake(text + end, numbers.len - (size_t)end);
    if (!sliceEqual(after, SLICE("\r\n"))) return false;
    *out = (persistOrigin){.offset = offset, .db = db};
    memcpy(out->id, rest.ptr, ID_LEN);
    return true;
}

static bool startsWith(slice line, const char *start) {
    size_t len = strlen(start);
    return line.len >= len && !memcmp(line.ptr, start, len);
}

/* True for an #AT line of which `start` is the offset in the file. */
static bool isInPlace(slice line, uint64_t start) {
    size_t skip = sizeof(at_prefix) - 1;
    int64_t number;
    if (!startsWith(line, at_prefix) || line.len < skip + 3) return false;
    slice digits = sliceMake(line.ptr + skip, line.len - skip - 2);
    return numberParseInt(digits, &number) && number == (int64_t)start;
}

static void readLine(aofPosition *p, const aofReader *r) {
    uint64_t start = aofReaderOffset(r) - r->raw.len;
    bool vouched = p->vouched;
    p->vouched = isInPlace(r->raw, start);
    if (!startsWith(r->raw, prefix)) return;
    size_t skip = sizeof(prefix) - 1;
    slice rest = sliceMake(r->raw.ptr + skip, r->raw.len - skip);
    persistOrigin found;
    p->at = vouched && !r->in_multi && parsePosition(rest, &found) ? found : unknown;
}

static void readRecord(aofPosition *p, const aofReader *r) {
    slice name = r->argv[0];
    int64_t db;
    p->vouched = false;
    if (sliceIs(name, "select")) {
        bool known = r->argc == 2 && numberParseInt(r->argv[1], &db) && db >= 0 && db < INT32_MAX;
        p->file_db = known ? (int)db : -1;
        aofPositionForget(p);
        return;
    }
    if (!p->at.id[0]) return;
    if (p->file_db < 0 || r->unexpected) {
        aofPositionForget(p);
        return;
    }
    if (sliceIs(name, "multi")) p->before = p->at;
    p->at.offset += (int64_t)r->raw.len;
    if (sliceIs(name, "multi") || sliceIs(name, "exec") || p->at.db == p->file_db) return;
    p->at.offset += selectLength(p->file_db);
    p->at.db = p->file_db;
}

void aofPositionRead(aofPosition *p, const aofReader *r, aofItem item) {
    hotCheck(item == AOF_COMMAND || item == AOF_ANNOTATION);
    if (likely(item == AOF_COMMAND)) {
        readRecord(p, r);
    } else {
        readLine(p, r);
    }
}

void aofPositionCut(aofPosition *p, const aofReader *r) {
    if (r->in_multi) p->at = p->before;
}

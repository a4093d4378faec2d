/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CHANGES: the changes of the dataset as entries, read from the replication backlog.
 *
 * A position is the id of the stream, the number of the last byte that was read, and the database
 * that is selected after it. Clients keep their positions: this server stores nothing between two
 * requests, and trims the backlog without regard to them. A transaction is one unit: all of its
 * entries have the position at its end. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/user.h"
#include "psync/change_window.h"
#include "repl/procs.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/role.h"
#include "store/store.h"

enum { COUNT_DEFAULT = 1000 };

typedef struct position {
    char id[REPL_ID_LEN];
    int64_t offset;
    int db_id; /* -1: unknown */
} position;

/* The arguments of READ. */
typedef struct readRequest {
    position from;
    int64_t count;
    int64_t deadline_ms;
    bool keys_only, blocks;
    slice *prefixes;
    int *slots;
    int prefix_count, slot_count; /* 0: all */
} readRequest;

/* The reply of READ while it is made. */
typedef struct reading {
    ctx *c;
    const readRequest *wanted;
    position at; /* after what was read */
    int64_t count;
    outbuf entries;
} reading;

static struct {
    int waiting; /* readers */
    bool runs;   /* the stage is registered */
} readers;

/* ------------------------------------------------------------------ positions */

/* id:offset or id:offset:db. */
static bool parsePosition(slice text, position *out) {
    int64_t db_id = -1;
    if (text.len < REPL_ID_LEN + 2 || text.ptr[REPL_ID_LEN] != ':') return false;
    memcpy(out->id, text.ptr, REPL_ID_LEN);
    slice rest = sliceMake(text.ptr + REPL_ID_LEN + 1, text.len - REPL_ID_LEN - 1);
    const char *colon = memchr(rest.ptr, ':', rest.len);
    slice offset = colon ? sliceMake(rest.ptr, (size_t)(colon - rest.ptr)) : rest;
    if (!numberParseInt(offset, &out->offset)) return false;
    if (out->offset < 0 || out->offset == INT64_MAX) return false; /* a byte follows it */
    if (colon) {
        slice db = sliceMake(colon + 1, rest.len - offset.len - 1);
        if (!numberParseInt(db, &db_id) || db_id < 0 || db_id >= storeDbCount()) return false;
    }
    out->db_id = (int)db_id;
    return true;
}

static void replyPosition(ctx *c, const position *p) {
    char text[REPL_ID_LEN + 2 * NUMBER_TEXT_MAX + 2];
    size_t len = REPL_ID_LEN;
    memcpy(text, p->id, len);
    text[len++] = ':';
    len += numberPrintInt(text + len, p->offset);
    if (p->db_id >= 0) {
        text[len++] = ':';
        len += numberPrintInt(text + len, p->db_id);
    }
    replyBulk(c, sliceMake(text, len));
}

static void setId(position *p) { memcpy(p->id, replThis()->history.id, REPL_ID_LEN); }

/* The first reader of a primary gets a backlog, as the first replica does. False: the error was
 * replied. */
static bool openStream(ctx *c) {
    replPrimary *p = replicasThis();
    if (p->is_replica && (!p->stream->has_backlog || !replOffset())) {
        replyError(c, SLICE("ERR this replica has no complete dataset yet"));
        return false;
    }
    primaryNoteReader(p);
    return true;
}

/* False: the error was replied. */
static bool isAvailable(ctx *c, const position *p) {
    const replServer *stream = replThis();
    check(stream->has_backlog);
    if (!historyCovers(&stream->history, sliceMake(p->id, REPL_ID_LEN), p->offset + 1)) {
        replyError(c, SLICE("POSITIONLOST the id is not that of the stream of this server"));
    } else if (p->offset >= stream->backlog.next) {
        replyErrorFormat(c, "POSITIONLOST the stream ends at %lld",
                         (long long)stream->backlog.next - 1);
    } else if (p->offset + 1 < stream->backlog.first) {
        replyErrorFormat(c, "POSITIONLOST the backlog begins after %lld",
                         (long long)stream->backlog.first - 1);
    } else {
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ entries */

static bool wantsKey(const readRequest *q, slice key) {
    bool fits = !q->prefix_count;
    for (int i = 0; i < q->prefix_count && !fits; i++) fits = sliceHasPrefix(key, q->prefixes[i]);
    if (!fits || !q->slot_count) return fits;
    int slot = hashSlot(key);
    for (int i = 0; i < q->slot_count; i++) {
        if (q->slots[i] == slot) return true;
    }
    return false;
}

/* Moves the keys that change and are wanted to the front. */
static int chooseKeys(const readRequest *q, const slice *argv, keyPosition *keys, int count) {
    int chosen = 0;
    for (int i = 0; i < count; i++) {
        if (keys[i].flags & KEY_RO || !wantsKey(q, argv[keys[i].arg_index])) continue;
        keys[chosen++] = keys[i];
    }
    return chosen;
}

static void replyEntry(reading *r, int64_t offset, const slice *argv, int argc,
                       const keyPosition *keys, int key_count) {
    hotCheck(argc > 0);
    hotCheck(key_count >= 0);
    ctx *c = r->c;
    bool all = !r->wanted->keys_only || !key_count;
    replyArray(c, 4);
    replyInteger(c, offset);
    replyInteger(c, r->at.db_id);
    replyArray(c, key_count);
    for (int i = 0; i < key_count; i++) replyBulk(c, argv[keys[i].arg_index]);
    replyArray(c, all ? argc : 1);
    for (int i = 0; i < (all ? argc : 1); i++) replyBulk(c, argv[i]);
    r->count++;
}

/* Reads a request of the stream, and adds an entry if it changes a wanted key. A command without
 * keys (FLUSHALL) concerns every reader. */
static void readItem(reading *r, int64_t offset, const slice *argv, int argc) {
    enum { FEW = 16 };
    hotCheck(argc > 0);
    int64_t db_id;
    if (sliceIs(argv[0], "select")) {
        if (argc == 2 && numberParseInt(argv[1], &db_id)) r->at.db_id = (int)db_id;
        return;
    }
    bool unknown_sub;
    const command *cmd = commandResolve(argv, argc, &unknown_sub);
    if (cmd && !(cmd->flags & CMD_WRITE)) return;
    keyPosition few[FEW], *keys = few;
    int count = 0;
    if (cmd && !unknown_sub) keys = commandAllKeys(cmd, argv, argc, few, FEW, &count);
    int chosen = count > 0 ? chooseKeys(r->wanted, argv, keys, count) : 0;
    if (chosen || count <= 0) replyEntry(r, offset, argv, argc, keys, chosen);
    if (keys != few) memFree(keys);
}

/* Reads units until there are enough entries. False: the position is not between two requests, or
 * the database is not known. */
static bool readWindow(reading *r, const changeWindow *w) {
    for (int i = 0, end; i < w->item_count && r->count < r->wanted->count; i = end) {
        end = changeUnitEnd(w, i);
        if (!end) break; /* the rest of a transaction has not arrived here */
        int64_t last = w->items[end - 1].last;
        for (int k = i; k < end; k++) {
            const changeItem *item = &w->items[k];
            readItem(r, last, changeWords(w, item), item->argc);
        }
        if (r->count && r->at.db_id < 0) return false;
        r->at.offset = last;
    }
    return !w->bad;
}

/* ------------------------------------------------------------------ arguments */

static void requestClear(readRequest *q) {
    memFree(q->prefixes);
    memFree(q->slots);
}

/* Parses an option with a value. False: the error was replied. */
static bool parseOption(ctx *c, int i, readRequest *q) {
    int64_t slot;
    if (ctxArgIs(c, i, "prefix")) {
        q->prefixes[q->prefix_count++] = c->argv[i + 1];
    } else if (ctxArgIs(c, i, "slot")) {
        if (!ctxArgIntIn(c, i + 1, 0, SLOT_COUNT - 1, &slot, "ERR Invalid or out of range slot"))
            return false;
        q->slots[q->slot_count++] = (int)slot;
    } else if (ctxArgIs(c, i, "count")) {
        return ctxArgIntIn(c, i + 1, 1, INT64_MAX, &q->count, NULL);
    } else if (ctxArgIs(c, i, "block")) {
        q->blocks = true;
        return blockArgDeadlineMs(c, i + 1, &q->deadline_ms);
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    return true;
}

/* False: the error was replied. */
static bool parseRead(ctx *c, readRequest *q) {
    if (!parsePosition(c->argv[2], &q->from)) {
        replyError(c, SLICE("ERR the position is none: it is id:offset or id:offset:database"));
        return false;
    }
    q->prefixes = memNewArray(slice, (size_t)c->argc);
    q->slots = memNewArray(int, (size_t)c->argc);
    for (int i = 3; i < c->argc; i += 2) {
        if (ctxArgIs(c, i, "keys")) {
            q->keys_only = true;
            i--;
        } else if (i + 1 == c->argc) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        } else if (!parseOption(c, i, q)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ waiting */

static void wakeReaders(void);

static const stageJob stages[] = {{STAGE_EXPIRE, wakeReaders}, {0, NULL}};
static const feature watching = {.name = "changes", .stages = stages};

/* Each turn; isReady() is asked in stage WAKE. */
static void wakeReaders(void) {
    if (!readers.waiting) {
        readers.runs = false;
        hooksRemoveFeature(&watching);
        return;
    }
    if (!replicasThis()->is_replica) primaryNoteReader(replicasThis());
    blockNotify(BLOCK_CUSTOM);
}

/* There is more, or it is another stream. */
static bool isReady(const blockQuery *q) {
    const position *at = q->state;
    const replHistory *history = &replThis()->history;
    return at->offset != history->offset || memcmp(at->id, history->id, REPL_ID_LEN) != 0;
}

static void freeWaiting(void *state) {
    check(readers.waiting > 0);
    readers.waiting--;
    memFree(state);
}

static void replyNothing(ctx *c) {
    replyArray(c, 2);
    replyPosition(c, blockState(c));
    replyArray(c, 0);
}

static void waitForMore(ctx *c, const readRequest *q, const position *at) {
    hotCheck(at->offset >= 0);
    if (c->flags & CTX_WOKEN) {
        *(position *)blockState(c) = *at;
        blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM}); /* goes on waiting */
        return;
    }
    position *kept = memNew(position);
    *kept = *at;
    if (!readers.runs) hooksAddFeature(&watching);
    readers.runs = true;
    readers.waiting++;
    blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM,
                                 .ready = isReady,
                                 .deadline_ms = q->deadline_ms,
                                 .timed_out = replyNothing,
                                 .state = kept,
                                 .free_state = freeWaiting});
}

/* ------------------------------------------------------------------ commands */

/* The stream has all keys, and commands whose arguments are no keys. False: the error was
 * replied. */
static bool mayReadStream(ctx *c) {
    if (userReadsAllKeys(c, true)) return true;
    replyError(c, SLICE("NOPERM CHANGES needs the right to read all keys of all databases"));
    return false;
}

static void replyEntries(reading *r) {
    ctx *c = r->c;
    replyArray(c, 2);
    replyPosition(c, &r->at);
    replyArray(c, r->count);
    outbufMoveAll(c->out, &r->entries);
}

static void readFrom(ctx *c, const readRequest *q, const position *from) {
    changeWindow w;
    reading r = {.c = c, .wanted = q, .at = *from};
    outbuf *out = c->out;
    outbufInit(&r.entries);
    changeWindowRead(&w, &replThis()->backlog, from->offset + 1);
    c->out = &r.entries;
    bool good = readWindow(&r, &w);
    c->out = out;
    setId(&r.at);
    if (!good && !(w.bad && r.count)) {
        replyError(c, w.bad ? SLICE("ERR the position is not between two changes")
                            : SLICE("ERR the position lacks its database: id:offset:database"));
    } else if (!r.count && w.whole && q->blocks && !blockIsDenied(c)) {
        waitForMore(c, q, &r.at);
    } else {
        replyEntries(&r);
    }
    outbufClear(&r.entries);
    changeWindowClear(&w);
}

/* CHANGES READ id:offset[:database] [PREFIX prefix]... [SLOT slot]... [COUNT count] [KEYS] [BLOCK
 * milliseconds]. Reply: the position after what was read, and an array of entries: position after
 * it, database, keys that it changes, command with arguments. */
void changesReadCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    readRequest q = {.count = COUNT_DEFAULT};
    if (mayReadStream(c) && parseRead(c, &q) && openStream(c)) {
        const position *kept = c->flags & CTX_WOKEN ? blockState(c) : NULL;
        position from = kept ? *kept : q.from;
        if (isAvailable(c, &from)) readFrom(c, &q, &from);
    }
    requestClear(&q);
}

/* CHANGES POSITION. Reply: the position after the last change so far. */
void changesPositionCommand(ctx *c) {
    hotCheck(c->argc == 2);
    if (!mayReadStream(c) || !openStream(c)) return;
    const replPrimary *p = replicasThis();
    int db_id = p->is_replica ? replicaStreamDb() : p->stream_db;
    position now = {.offset = p->stream->history.offset, .db_id = db_id < 0 ? 0 : db_id};
    setId(&now);
    replyPosition(c, &now);
}

/* CHANGES HELP. */
void changesHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "POSITION",
        "    Return the position of the stream of changes now.",
        "READ <position> [<option> ...]",
        "    Return the position after what was read, and the changes: for each the position",
        "    after it, its database, the keys that it changes, and the command. Options are:",
        "    * PREFIX <prefix>",
        "      Only changes of keys that begin with one of these prefixes.",
        "    * SLOT <slot>",
        "      Only changes of keys of one of these slots.",
        "    * COUNT <count>",
        "      About this many changes (default: 1000). A transaction is not divided.",
        "    * KEYS",
        "      Without the arguments of commands that have keys.",
        "    * BLOCK <milliseconds>",
        "      Wait for a change if there is none; 0: without a limit.",
        NULL,
    };
    replyHelp(c, lines);
}

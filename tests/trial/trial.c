/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A subsystem that a running server gets, as a module would bring it: a type of values, commands,
 * an INFO section, a listener of events, an observer of keys, a filter of requests and a command
 * that something else wakes. Linked with the whole server; nothing of it knows this file. The type
 * is there before the files are loaded, the rest comes with the first run of the cron. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/ctx.h"
#include "engine/filter.h"
#include "engine/hooks.h"
#include "engine/reply.h"
#include "engine/server_event.h"
#include "format/aof_value.h"
#include "format/rdb_module.h"
#include "net/net.h"
#include "store/store.h"

static str events; /* what was seen since TRIAL.EVENTS was called last, one per line */

/* ----------------------------------------------------------------- a type: a tally with a label */

typedef struct tally {
    int64_t count;
    size_t len;
    char label[];
} tally;

static tally *tallyNew(int64_t count, slice label) {
    tally *t = memAlloc(sizeof(tally) + label.len);
    *t = (tally){.count = count, .len = label.len};
    memcpy(t->label, label.ptr, label.len);
    return t;
}

static void *copyTally(const moduleType *type, const valuePlace *from, const valuePlace *to,
                       void *value) {
    const tally *t = value;
    (void)type, (void)to; /* there is one type; any key may have a copy */
    strAppendFormat(&events, "copy %.*s\n", (int)from->key.len, from->key.ptr);
    return t->count < 0 ? NULL : tallyNew(t->count, sliceMake(t->label, t->len));
}

static void unlinkTally(const moduleType *type, const valuePlace *at, const void *value) {
    (void)type, (void)value; /* the key is enough */
    strAppendFormat(&events, "unlink %d %.*s\n", at->db_id, (int)at->key.len, at->key.ptr);
}

static size_t tallyMemory(const moduleType *type, const valuePlace *at, const void *value,
                          size_t samples) {
    (void)type, (void)at, (void)samples; /* all of it is counted */
    return memSizeOf(value);
}

static void digestTally(const moduleType *type, const valuePlace *at, const void *value,
                        digest *to) {
    const tally *t = value;
    (void)type, (void)at; /* equal values are equal everywhere */
    digestMixNumber(to, (uint32_t)t->count);
    digestMix(to, sliceMake(t->label, t->len));
}

static void freeTally(const moduleType *type, void *value) {
    (void)type; /* there is one */
    memFree(value);
}

static const moduleTypeOps tally_ops = {.free_value = freeTally,
                                        .copy = copyTally,
                                        .memory = tallyMemory,
                                        .unlink = unlinkTally,
                                        .digest = digestTally};
static moduleType tally_type = {.name = "tally-try", .ops = &tally_ops};

static status readTally(const moduleCodec *c, rdbReader *r, int version, const valuePlace *at,
                        void **value) {
    int64_t count;
    slice label;
    (void)c, (void)at; /* there is one; any key may have it */
    if (version != 1) return rdbReaderFail(r, "unknown version of a tally");
    status st = rdbReadModuleSigned(r, &count);
    if (st == OK) st = rdbReadModuleString(r, &label);
    if (st == OK) *value = tallyNew(count, label);
    return st;
}

static void writeTally(const moduleCodec *c, rdbWriter *w, const valuePlace *at,
                       const void *value) {
    const tally *t = value;
    (void)c, (void)at;
    rdbWriteModuleSigned(w, t->count);
    rdbWriteModuleString(w, sliceMake(t->label, t->len));
}

static void writeTallyCommands(const moduleCodec *c, rdbWriter *w, const valuePlace *at,
                               const void *value) {
    const tally *t = value;
    char digits[NUMBER_TEXT_MAX];
    (void)c;
    size_t len = numberPrintInt(digits, t->count);
    aofWriteCommand(w, 4,
                    (slice[]){SLICE("TRIAL.SET"), at->key, sliceMake(digits, len),
                              sliceMake(t->label, t->len)});
}

static moduleCodec tally_codec = {.type = &tally_type,
                                  .read = readTally,
                                  .write = writeTally,
                                  .write_commands = writeTallyCommands};

/* ------------------------------------------------------------------ its commands */

static const keyEvent event_tally = {"tally", NOTIFY_MODULE};

/* TRIAL.SET key count label */
static void setTally(ctx *c) {
    int64_t count;
    slice key = c->argv[1];
    if (!ctxArgInt(c, 2, &count)) return;
    const robj *old = dbFind(c->db, key, c->key_hash, c->look, &c->at);
    if (old) {
        (void)dbDelete(c->db, key, c->key_hash, c->look); /* it exists */
        check(!dbFind(c->db, key, c->key_hash, c->look, &c->at));
    }
    dbPlace(c->db, &c->at, moduleObjectNew(key, &tally_type, tallyNew(count, c->argv[3])));
    ctxKeyChanged(c, key, &event_tally);
    replyOk(c);
}

/* TRIAL.GET key */
static void getTally(ctx *c) {
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!o) {
        replyNull(c);
        return;
    }
    if (objectType(o) != TYPE_MODULE || moduleValueOf(o)->type != &tally_type) {
        replyError(c, ERR_WRONG_TYPE_TEXT);
        return;
    }
    const tally *t = moduleValueOf(o)->content;
    replyArray(c, 2);
    replyInteger(c, t->count);
    replyBulk(c, sliceMake(t->label, t->len));
}

/* TRIAL.EVENTS: what was seen since the last call */
static void eventsCommand(ctx *c) {
    replyBulk(c, strSlice(&events));
    strClear(&events);
}

/* ------------------------------------------------------------------ what it observes */

static void keyChanged(db *d, slice key, const keyEvent *event) {
    if (event && event->class & NOTIFY_MODULE)
        strAppendFormat(&events, "%s %d %.*s\n", event->name, dbId(d), (int)key.len, key.ptr);
}

static void keyRemoving(db *d, const robj *o, storeRemoval why) {
    static const char *const reasons[] = {"deleted", "expired", "evicted", "overwritten", "moved"};
    if (objectType(o) != TYPE_MODULE) return;
    const tally *t = moduleValueOf(o)->content;
    strAppendFormat(&events, "%s %d %lld\n", reasons[why], dbId(d), (long long)t->count);
}

static const keyObserver key_observer = {
    .name = "trial", .changed = keyChanged, .removing = keyRemoving};

static void printInfo(str *out) {
    strAppendFormat(out, "tallies:%llu\r\n", (unsigned long long)tally_type.values);
}

static const infoSection sections[] = {{"trial", "# Trial", INFO_IN_ALL, INFO_MODULES, printInfo},
                                       {0}};

/* ------------------------------------------------------------------ commands that come and go */

static void answerCommand(ctx *c) { replyInteger(c, 42); }

static const commandSpec answer_specs[] = {{.name = "trial.answer",
                                            .proc = answerCommand,
                                            .arity = 1,
                                            .flags = CMD_READONLY | CMD_FAST,
                                            .categories = 1u << CAT_READ | 1u << CAT_FAST,
                                            .group = "generic",
                                            .summary = "42",
                                            .since = "1.0.0"}};

static void replyStatusOf(ctx *c, status st) {
    if (st == OK) {
        replyOk(c);
    } else {
        replyErrorFormat(c, "ERR %s", st == ERR_EXISTS ? "it is there" : "it is not there");
    }
}

/* TRIAL.LOAD, TRIAL.UNLOAD: another command */
static void loadCommand(ctx *c) {
    netThreadsPark();
    status st = commandLoad(answer_specs, COUNT_OF(answer_specs));
    netThreadsUnpark();
    replyStatusOf(c, st);
}

static void unloadCommand(ctx *c) {
    netThreadsPark();
    status st = commandUnload(SLICE("trial.answer"));
    netThreadsUnpark();
    replyStatusOf(c, st);
}

/* --------------------------------------------------------- a command that is woken from outside */

static session *waiting; /* in TRIAL.WAIT */
static int64_t delivered;

static void replyDelivered(ctx *c) {
    waiting = NULL;
    replyInteger(c, delivered);
}

static void replyLate(ctx *c) {
    waiting = NULL;
    replyNull(c);
}

static void forgetWaiting(void *state) {
    if (waiting == state) waiting = NULL;
}

/* TRIAL.WAIT seconds: the number of the next TRIAL.DELIVER, which comes from another client and
 * reaches it in the cron. */
static void waitCommand(ctx *c) {
    int64_t deadline_ms;
    if (!blockArgDeadline(c, 1, &deadline_ms)) return;
    if (waiting || blockIsDenied(c)) {
        replyError(c, SLICE("ERR cannot wait"));
        return;
    }
    waiting = c->who;
    blockParams params = {.kind = BLOCK_MODULE,
                          .deadline_ms = deadline_ms,
                          .timed_out = replyLate,
                          .finish = replyDelivered,
                          .state = c->who,
                          .free_state = forgetWaiting};
    blockStart(c, &params);
}

static bool has_delivery;

static void deliverCommand(ctx *c) {
    if (!ctxArgInt(c, 1, &delivered)) return;
    has_delivery = true;
    replyOk(c);
}

/* ------------------------------------------------------------------ a filter */

/* Makes of "trial.add <key> <label>" the command TRIAL.SET <key> 1 <label>. */
static void rewriteAdd(filteredRequest *f) {
    if (filteredCount(f) != 3 || !sliceIs(filteredArg(f, 0), "trial.add")) return;
    check(filteredReplace(f, 0, SLICE("trial.set")) == OK);
    check(filteredInsert(f, 2, SLICE("1")) == OK);
}

static const requestFilter add_filter = {"trial", rewriteAdd};

/* TRIAL.FILTER ON|OFF */
static void filterCommand(ctx *c) {
    requestFilterArm(&add_filter, ctxArgIs(c, 1, "on"));
    replyOk(c);
}

/* ------------------------------------------------------------------ registration */

#define KEY_SPEC(name, access) \
    static const keySpec name[] = {{.flags = access, \
                                    .begin = KEY_BEGIN_INDEX, \
                                    .begin_at = 1, \
                                    .find = KEY_FIND_RANGE, \
                                    .step = 1}}
KEY_SPEC(writes_key, KEY_OW | KEY_UPDATE);
KEY_SPEC(reads_key, KEY_RO | KEY_ACCESS);

#define KEYED .first_key = 1, .last_key = 1, .key_step = 1, .key_spec_count = 1
#define TEXTS .group = "generic", .summary = "of a trial", .since = "1.0.0"
static const commandSpec specs[] = {
    {.name = "trial.set",
     .proc = setTally,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = 1u << CAT_WRITE,
     .key_specs = writes_key,
     KEYED,
     TEXTS},
    {.name = "trial.get",
     .proc = getTally,
     .arity = 2,
     .flags = CMD_READONLY,
     .categories = 1u << CAT_READ,
     .key_specs = reads_key,
     KEYED,
     TEXTS},
    {.name = "trial.events", .proc = eventsCommand, .arity = 1, TEXTS},
    {.name = "trial.load", .proc = loadCommand, .arity = 1, .flags = CMD_STOPS_BATCH, TEXTS},
    {.name = "trial.unload", .proc = unloadCommand, .arity = 1, .flags = CMD_STOPS_BATCH, TEXTS},
    {.name = "trial.wait", .proc = waitCommand, .arity = 2, .flags = CMD_BLOCKING, TEXTS},
    {.name = "trial.deliver", .proc = deliverCommand, .arity = 2, TEXTS},
    {.name = "trial.filter", .proc = filterCommand, .arity = 2, TEXTS},
};

static const feature trialFeature = {.name = "trial", .info = sections};

static void registerAll(void) {
    static bool done;
    if (done) return;
    done = true;
    netThreadsPark();
    check(commandLoad(specs, COUNT_OF(specs)) == OK);
    hooksAddFeature(&trialFeature);
    keyObserverArm(&key_observer, true);
    netThreadsUnpark();
}

static void deliver(void) {
    if (!has_delivery || !waiting) return;
    has_delivery = false;
    check(blockFinish(waiting));
}

static void onServerEvent(const serverEvent *e) {
    if (e->kind == SERVER_CRON) {
        registerAll();
        deliver();
    } else if (e->kind == SERVER_ROLE) {
        strAppendFormat(&events, "role %s\n", e->role.is_replica ? "replica" : "primary");
    } else if (e->kind == SERVER_FLUSH) {
        strAppendFormat(&events, "flush %d %d\n", e->phase, e->flush.db_id);
    } else if (e->kind == SERVER_PERSISTENCE) {
        strAppendFormat(&events, "saving %d\n", e->phase);
    }
}

/* Before main(): the files that the server loads at its start may have values of the type. */
__attribute__((constructor)) static void begin(void) {
    tally_codec.id = rdbModuleId(SLICE("tally-try"), 1);
    check(moduleCodecRegister(&tally_codec) == OK);
    serverEventsListen(onServerEvent, 1u << SERVER_CRON | 1u << SERVER_ROLE | 1u << SERVER_FLUSH |
                                          1u << SERVER_PERSISTENCE);
}

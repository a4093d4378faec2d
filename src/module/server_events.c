/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: server events. Signals of the engine (engine/server_event.h), steps of the
 * loop and results of commands are translated to the numbers and structures of the module
 * interface. Invariant: events without a listener are not requested from the engine. Main thread
 * only. */
#include "module/server_events.h"

#include "base/base.h"
#include "engine/hooks.h"
#include "engine/lifecycle.h"
#include "engine/propagate.h"
#include "engine/server_event.h"
#include "io/loop.h"
#include "module/client_info.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/generated/server_events.h"
#include "module/key.h"
#include "module/owned.h"
#include "repl/role.h"
#include "store/store.h"

typedef struct listener {
    ownedEntry entry;
    ValkeyModuleEvent event;
    ValkeyModuleEventCallback proc;
    bool awaits_wake; /* was told that the loop is about to sleep, and not that it has woken */
} listener;

enum { COMMAND_DEPTH_MAX = 64 };

static struct {
    ownedList all;
    uint32_t wanted; /* bits of VALKEYMODULE_EVENT_ */
    bool stages_added;
    bool telling_result;
    /* Changes of the dataset before the commands being run. */
    struct {
        const ctx *of;
        uint64_t dirty;
    } commands[COMMAND_DEPTH_MAX];
    int command_count;
} events;

static bool isWanted(uint64_t id) { return events.wanted >> id & 1; }

/* ------------------------------------------------------------------ telling */

/* An event for the listeners of `id`. */
typedef struct telling {
    uint64_t id, sub;
    void *data;
    session *client;   /* of the context; NULL: none */
    const module *but; /* is not told; NULL: all are */
    int db_id;         /* of the context */
    db *key_db;        /* `data` is the open key of this name here; NULL: it is not */
    slice key;
    const listener *to;
} telling;

static void callListener(ValkeyModuleCtx *x, const telling *t, void *data) {
    t->to->proc(x, t->to->event, t->sub, data);
}

static void tellOne(ValkeyModuleCtx *x, void *arg) {
    const telling *t = arg;
    session *before = x->run->who;
    if (t->client) x->run->who = t->client;
    callListener(x, t, t->data);
    x->run->who = before;
}

/* The key is about to be removed, and is seen even if it has expired. */
static void tellOneOfKey(ValkeyModuleCtx *x, void *arg) {
    enum { MODE = VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOEFFECTS };
    const telling *t = arg;
    x->run->look = lookAtAll();
    x->flags |= CONTEXT_READ_ONLY;
    ValkeyModuleString *name = moduleStringNew(t->key);
    ValkeyModuleKeyInfo info = {VALKEYMODULE_KEYINFO_VERSION, keyOpen(x, t->key_db, name, MODE)};
    callListener(x, t, &info);
    apiCloseKey(info.key);
    moduleStringRelease(name);
}

/* True if the listener gets this event of the loop: it gets sleep and wake events in turn. */
static bool isInTurn(listener *l, uint64_t sub) {
    hotCheck(l->event.id == VALKEYMODULE_EVENT_EVENTLOOP);
    bool sleeps = sub == VALKEYMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP;
    if (l->awaits_wake == sleeps) return false;
    l->awaits_wake = sleeps;
    return true;
}

/* Calls the listeners in the order of their registration. */
static void tellAll(telling *t) {
    if (!isWanted(t->id)) return;
    ownedWalkBegin(&events.all);
    for (listener *l = ownedFirst(&events.all); l; l = ownedNext(&events.all, &l->entry)) {
        if (l->entry.owner == t->but || l->event.id != t->id) continue;
        if (t->id == VALKEYMODULE_EVENT_EVENTLOOP && !isInTurn(l, t->sub)) continue;
        t->to = l;
        contextRun(l->entry.owner, t->db_id, t->key_db ? tellOneOfKey : tellOne, t);
    }
    ownedWalkEnd(&events.all);
}

static void tell(uint64_t id, uint64_t sub, void *data) {
    telling t = {.id = id, .sub = sub, .data = data};
    tellAll(&t);
}

void serverEventsTellModule(const module *m, bool loaded) {
    ValkeyModuleModuleChange change = {VALKEYMODULE_MODULE_CHANGE_VERSION, m->name, m->version};
    telling t = {.id = VALKEYMODULE_EVENT_MODULE_CHANGE,
                 .sub = loaded ? VALKEYMODULE_SUBEVENT_MODULE_LOADED
                               : VALKEYMODULE_SUBEVENT_MODULE_UNLOADED,
                 .data = &change,
                 .but = m};
    tellAll(&t);
}

static char *textOf(slice s) { return memDup(s.ptr ? s.ptr : "", s.len); }

/* ------------------------------------------------------------------ results of commands */

static void beforeCommand(ctx *c) {
    hotCheck(events.command_count >= 0);
    if (events.command_count == COMMAND_DEPTH_MAX) return;
    events.commands[events.command_count].of = c;
    events.commands[events.command_count++].dirty = engineHot.dirty;
}

/* Changes by the command. One that was blocked and runs again was not seen before. */
static int64_t changesOf(const ctx *c) {
    while (events.command_count) {
        int at = --events.command_count;
        if (events.commands[at].of == c)
            return (int64_t)(engineHot.dirty - events.commands[at].dirty);
    }
    return 0;
}

/* `dirty`, `duration_ns`: of a command that has run; `context`: why another one was refused. */
static void tellResult(uint64_t id, uint64_t sub, const ctx *c, int64_t dirty, int64_t duration_ns,
                       const char *context) {
    if (!isWanted(id)) return;
    argArray *args = argArrayNew(c->argv, c->argc);
    bool is_known = c->cmd->name.len > 0;
    ValkeyModuleCommandResultInfo info = {.version = VALKEYMODULE_COMMANDRESULTINFO_VERSION,
                                          .command_name = is_known ? c->cmd->name.ptr : NULL,
                                          .duration_us = duration_ns / 1000,
                                          .dirty = dirty,
                                          .client_id = c->who->id,
                                          .is_module_client = c->origin == ORIGIN_MODULE,
                                          .argc = c->argc,
                                          .argv = args->argv,
                                          .rejection_context = context};
    events.telling_result = true; /* what listeners call is not told */
    tell(id, sub, &info);
    events.telling_result = false;
    argArrayEnd(args);
}

static void afterCommand(ctx *c, int64_t duration_ns) {
    int64_t dirty = changesOf(c);
    hotCheck(duration_ns >= 0);
    bool failed = c->flags & CTX_FAILED;
    uint64_t id = failed ? VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE
                         : VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS;
    if (c->flags & CTX_NOT_RUN || !isWanted(id) || events.telling_result) return;
    tellResult(id, 0, c, dirty, duration_ns, NULL);
}

static bool begins(slice text, const char *with) {
    size_t len = strlen(with);
    return text.len >= len && !memcmp(text.ptr, with, len);
}

/* What is told of the error of a refused request, as Valkey does; empty: nothing. */
static slice contextOf(slice error) {
    hotCheck(!error.len || error.ptr);
    static const char code[] = "-ERR ";
    if (begins(error, "-MOVED ") || begins(error, "-ASK ")) return SLICE("");
    if (begins(error, "-REDIRECT ")) return SLICE("-REDIRECT");
    if (!begins(error, code)) return error;
    size_t cut = sizeof(code) - 1, end = error.len;
    while (end > cut && (error.ptr[end - 1] == '\r' || error.ptr[end - 1] == '\n')) end--;
    return sliceMake(error.ptr + cut, end - cut);
}

static void refusedCommand(ctx *c, size_t pending) {
    if (events.telling_result) return;
    size_t len;
    char *replies = outbufCopy(c->out, &len);
    hotCheck(pending <= len);
    slice error = sliceMake(replies + pending, len - pending);
    if (begins(error, "-NOAUTH ")) { /* a right that is missing, but nothing of the ACL log */
        tellResult(VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED, 0, c, 0, 0, NULL);
    } else if (!begins(error, "-NOPERM ")) { /* which is an event of its own */
        slice context = contextOf(error);
        char *text = context.len ? textOf(context) : NULL;
        tellResult(VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED, 0, c, 0, 0, text);
        memFree(text);
    }
    memFree(replies);
}

static const commandObserver result_observer = {
    .name = "modules", .before = beforeCommand, .after = afterCommand, .refused = refusedCommand};

static void tellAclRefusal(const serverEvent *e) {
    hotCheck(e->acl_refusal.request);
    static const uint64_t subs[] = {[REFUSED_COMMAND] = VALKEYMODULE_ACL_LOG_CMD,
                                    [REFUSED_KEY] = VALKEYMODULE_ACL_LOG_KEY,
                                    [REFUSED_CHANNEL] = VALKEYMODULE_ACL_LOG_CHANNEL,
                                    [REFUSED_DATABASE] = VALKEYMODULE_ACL_LOG_DB};
    serverRefusal what = e->acl_refusal.what;
    bool has_object = what == REFUSED_KEY || what == REFUSED_CHANNEL;
    char *object = has_object ? textOf(e->acl_refusal.object) : NULL;
    tellResult(VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED, subs[what], e->acl_refusal.request,
               0, 0, object);
    memFree(object);
}

/* ------------------------------------------------------------------ events of the engine */

static void tellRole(const serverEvent *e) {
    hotCheck(e->kind == SERVER_ROLE);
    char *host = textOf(e->role.host), *id = textOf(sliceOf(replId())),
         *second_id = textOf(sliceOf(replSecondId()));
    ValkeyModuleReplicationInfo info = {.version = VALKEYMODULE_REPLICATIONINFO_VERSION,
                                        .primary = !e->role.is_replica,
                                        .primary_host = host,
                                        .primary_port = e->role.port,
                                        .replid1 = id,
                                        .replid2 = second_id,
                                        .repl1_offset = (uint64_t)replOffset(),
                                        .repl2_offset = (uint64_t)replSecondOffset()};
    tell(VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED,
         e->role.is_replica ? VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA
                            : VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_PRIMARY,
         &info);
    memFree(host);
    memFree(id);
    memFree(second_id);
}

static void tellPersistence(const serverEvent *e) {
    uint64_t sub;
    if (e->phase == EVENT_BEGINS && e->persistence.in_foreground) {
        sub = e->persistence.is_aof ? VALKEYMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START
                                    : VALKEYMODULE_SUBEVENT_PERSISTENCE_SYNC_RDB_START;
    } else if (e->phase == EVENT_BEGINS) {
        sub = e->persistence.is_aof ? VALKEYMODULE_SUBEVENT_PERSISTENCE_AOF_START
                                    : VALKEYMODULE_SUBEVENT_PERSISTENCE_RDB_START;
    } else {
        sub = e->phase == EVENT_ENDED ? VALKEYMODULE_SUBEVENT_PERSISTENCE_ENDED
                                      : VALKEYMODULE_SUBEVENT_PERSISTENCE_FAILED;
    }
    tell(VALKEYMODULE_EVENT_PERSISTENCE, sub, NULL);
}

static void tellLoading(const serverEvent *e) {
    hotCheck(e->phase <= EVENT_FAILED);
    static const uint64_t begins[] = {
        [DATASET_RDB] = VALKEYMODULE_SUBEVENT_LOADING_RDB_START,
        [DATASET_AOF] = VALKEYMODULE_SUBEVENT_LOADING_AOF_START,
        [DATASET_PRIMARY] = VALKEYMODULE_SUBEVENT_LOADING_REPL_START,
    };
    uint64_t sub = e->phase == EVENT_ENDED ? VALKEYMODULE_SUBEVENT_LOADING_ENDED
                                           : VALKEYMODULE_SUBEVENT_LOADING_FAILED;
    tell(VALKEYMODULE_EVENT_LOADING, e->phase == EVENT_BEGINS ? begins[e->loading.source] : sub,
         NULL);
}

static void tellFlush(const serverEvent *e) {
    hotCheck(e->flush.db_id >= -1);
    ValkeyModuleFlushInfo info = {VALKEYMODULE_FLUSHINFO_VERSION, !e->flush.later, e->flush.db_id};
    telling t = {.id = VALKEYMODULE_EVENT_FLUSHDB,
                 .sub = e->phase == EVENT_BEGINS ? VALKEYMODULE_SUBEVENT_FLUSHDB_START
                                                 : VALKEYMODULE_SUBEVENT_FLUSHDB_END,
                 .data = &info,
                 .db_id = e->flush.db_id < 0 ? 0 : e->flush.db_id};
    tellAll(&t);
}

static void tellConfig(const serverEvent *e) {
    hotCheck(e->config.count > 0);
    int count = e->config.count;
    char **names = memNewArray(char *, (size_t)count);
    for (int i = 0; i < count; i++) names[i] = textOf(e->config.names[i]);
    ValkeyModuleConfigChange change = {VALKEYMODULE_CONFIGCHANGE_VERSION, (uint32_t)count,
                                       (const char **)names};
    tell(VALKEYMODULE_EVENT_CONFIG, VALKEYMODULE_SUBEVENT_CONFIG_CHANGE, &change);
    for (int i = 0; i < count; i++) memFree(names[i]);
    memFree(names);
}

static void tellClient(const serverEvent *e) {
    hotCheck(e->client.who);
    ValkeyModuleClientInfo info;
    clientInfoRead(e->client.who, &info);
    telling t = {.id = VALKEYMODULE_EVENT_CLIENT_CHANGE,
                 .sub = e->client.connected ? VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_CONNECTED
                                            : VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED,
                 .data = &info,
                 .client = e->client.who};
    tellAll(&t);
}

static void tellProgress(const serverEvent *e) {
    ValkeyModuleLoadingProgress info = {VALKEYMODULE_LOADING_PROGRESS_VERSION, e->progress.hz,
                                        e->progress.per_1024};
    tell(VALKEYMODULE_EVENT_LOADING_PROGRESS,
         e->progress.is_aof ? VALKEYMODULE_SUBEVENT_LOADING_PROGRESS_AOF
                            : VALKEYMODULE_SUBEVENT_LOADING_PROGRESS_RDB,
         &info);
}

static void tellLoadingBeside(const serverEvent *e) {
    static const uint64_t subs[] = {
        [EVENT_BEGINS] = VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED,
        [EVENT_ENDED] = VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED,
        [EVENT_FAILED] = VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_ABORTED,
    };
    tell(VALKEYMODULE_EVENT_REPL_ASYNC_LOAD, subs[e->phase], NULL);
}

static void tellLogin(const module *m, const session *who, slice name, bool granted) {
    hotCheck(who);
    char *user_name = textOf(name);
    ValkeyModuleAuthenticationInfo info = {.version = VALKEYMODULE_AUTHENTICATION_INFO_VERSION,
                                           .client_id = who->id,
                                           .username = user_name,
                                           .module_name = m ? m->name : NULL,
                                           .result = granted ? VALKEYMODULE_AUTH_RESULT_GRANTED
                                                             : VALKEYMODULE_AUTH_RESULT_DENIED};
    tell(VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT, 0, &info);
    memFree(user_name);
}

void serverEventsTellLogin(const module *m, const session *who, slice name, bool granted) {
    if (isWanted(VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT)) tellLogin(m, who, name, granted);
}

static void tellSlotMigration(const serverEvent *e) {
    hotCheck(e->slots.range_count > 0);
    static const uint64_t subs[][2] = {
        [EVENT_BEGINS] = {VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_STARTED,
                          VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_STARTED},
        [EVENT_ENDED] = {VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_COMPLETED,
                         VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_COMPLETED},
        [EVENT_FAILED] = {VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_ABORTED,
                          VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_ABORTED}};
    ValkeyModuleAtomicSlotMigrationInfo info = {
        .version = VALKEYMODULE_ATOMIC_SLOT_MIGRATION_INFO_VERSION};
    size_t count = e->slots.range_count;
    check(e->slots.job.len < sizeof(info.job_name));
    memcpy(info.job_name, e->slots.job.ptr, e->slots.job.len);
    info.slot_ranges = memNewArray(ValkeyModuleSlotRange, count);
    info.num_slot_ranges = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        info.slot_ranges[i] =
            (ValkeyModuleSlotRange){e->slots.ranges[i].first, e->slots.ranges[i].last};
    }
    tell(VALKEYMODULE_EVENT_ATOMIC_SLOT_MIGRATION, subs[e->phase][e->slots.is_import], &info);
    memFree(info.slot_ranges);
}

static void onServerEvent(const serverEvent *e) {
    hotCheck(e->kind < SERVER_EVENT_KINDS);
    ValkeyModuleSwapDbInfo swap;
    ValkeyModuleCronLoop cron;
    switch (e->kind) {
    case SERVER_ROLE: tellRole(e); break;
    case SERVER_REPLICA: tell(VALKEYMODULE_EVENT_REPLICA_CHANGE, !e->replica.online, NULL); break;
    case SERVER_LINK: tell(VALKEYMODULE_EVENT_PRIMARY_LINK_CHANGE, !e->link.up, NULL); break;
    case SERVER_LOADING: tellLoading(e); break;
    case SERVER_LOADING_PROGRESS: tellProgress(e); break;
    case SERVER_LOADING_BESIDE: tellLoadingBeside(e); break;
    case SERVER_PERSISTENCE: tellPersistence(e); break;
    case SERVER_FLUSH: tellFlush(e); break;
    case SERVER_SWAP:
        swap = (ValkeyModuleSwapDbInfo){VALKEYMODULE_SWAPDBINFO_VERSION, e->swap.first,
                                        e->swap.second};
        tell(VALKEYMODULE_EVENT_SWAPDB, 0, &swap);
        break;
    case SERVER_CHILD:
        tell(VALKEYMODULE_EVENT_FORK_CHILD,
             e->phase == EVENT_BEGINS ? VALKEYMODULE_SUBEVENT_FORK_CHILD_BORN
                                      : VALKEYMODULE_SUBEVENT_FORK_CHILD_DIED,
             NULL);
        break;
    case SERVER_SHUTDOWN: tell(VALKEYMODULE_EVENT_SHUTDOWN, 0, NULL); break;
    case SERVER_CONFIG: tellConfig(e); break;
    case SERVER_CLIENT: tellClient(e); break;
    case SERVER_LOGIN: tellLogin(NULL, e->login.who, e->login.name, e->login.granted); break;
    case SERVER_SLOT_MIGRATION: tellSlotMigration(e); break;
    case SERVER_ACL_REFUSAL: tellAclRefusal(e); break;
    case SERVER_CRON:
        cron = (ValkeyModuleCronLoop){VALKEYMODULE_CRON_LOOP_VERSION, e->cron.hz};
        tell(VALKEYMODULE_EVENT_CRON_LOOP, 0, &cron);
        break;
    case SERVER_EVENT_KINDS: break;
    }
}

/* ------------------------------------------------------------------ removed keys */

static void keyRemoving(db *d, const robj *o, storeRemoval why) {
    static const uint64_t subs[] = {[REMOVAL_DELETED] = VALKEYMODULE_SUBEVENT_KEY_DELETED,
                                    [REMOVAL_EXPIRED] = VALKEYMODULE_SUBEVENT_KEY_EXPIRED,
                                    [REMOVAL_EVICTED] = VALKEYMODULE_SUBEVENT_KEY_EVICTED,
                                    [REMOVAL_OVERWRITTEN] = VALKEYMODULE_SUBEVENT_KEY_OVERWRITTEN,
                                    [REMOVAL_MOVED] = VALKEYMODULE_SUBEVENT_KEY_DELETED};
    telling t = {.id = VALKEYMODULE_EVENT_KEY,
                 .sub = subs[why],
                 .db_id = dbId(d),
                 .key_db = d,
                 .key = objectKey(o)};
    /* A listener's own commands precede the command, as in callbacks of keyspace events. */
    const ctx *c = engineHot.current;
    propagateMark begun = propagateCallbackBegins();
    tellAll(&t);
    propagateCallbackEnded(begun, c && c->flags & CTX_REWRITTEN);
}

static void keyChanged(db *d, slice key, const keyEvent *event) {
    (void)d, (void)key, (void)event; /* only removals are wanted */
}

static const keyObserver key_observer = {
    .name = "module events", .changed = keyChanged, .removing = keyRemoving};

/* ------------------------------------------------------------------ the loop */

/* Turns within a command or a load are no events. */
static bool isNested(void) { return engineHot.current || loopDepth(engineLoop()) > 1; }

/* All that clients have sent was run, and who was woken by that has continued. */
static void beforeSleep(void) {
    if (isNested()) return;
    tell(VALKEYMODULE_EVENT_EVENTLOOP, VALKEYMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP, NULL);
}

static void afterSleep(void) {
    if (isNested()) return;
    tell(VALKEYMODULE_EVENT_EVENTLOOP, VALKEYMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP, NULL);
}

static const stageJob stage_jobs[] = {
    {STAGE_AFTER_SLEEP, afterSleep}, {STAGE_WAKE, beforeSleep}, {0}};
static const feature loop_feature = {.name = "module events", .stages = stage_jobs};

/* ------------------------------------------------------------------ registration */

/* What the interface says of each event. */
static const struct {
    int subs;      /* 0: none, or not told by IsSubEventSupported() */
    bool has_data; /* which is of version 1 */
    int kind;      /* serverEventKind; -1: it comes from elsewhere */
} kinds[_VALKEYMODULE_EVENT_NEXT] = {
    [VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED] = {2, true, SERVER_ROLE},
    [VALKEYMODULE_EVENT_PERSISTENCE] = {6, false, SERVER_PERSISTENCE},
    [VALKEYMODULE_EVENT_FLUSHDB] = {2, true, SERVER_FLUSH},
    [VALKEYMODULE_EVENT_LOADING] = {5, false, SERVER_LOADING},
    [VALKEYMODULE_EVENT_CLIENT_CHANGE] = {2, true, SERVER_CLIENT},
    [VALKEYMODULE_EVENT_SHUTDOWN] = {0, false, SERVER_SHUTDOWN},
    [VALKEYMODULE_EVENT_REPLICA_CHANGE] = {2, false, SERVER_REPLICA},
    [VALKEYMODULE_EVENT_PRIMARY_LINK_CHANGE] = {2, false, SERVER_LINK},
    [VALKEYMODULE_EVENT_CRON_LOOP] = {0, true, SERVER_CRON},
    [VALKEYMODULE_EVENT_MODULE_CHANGE] = {2, true, -1},
    [VALKEYMODULE_EVENT_LOADING_PROGRESS] = {2, true, SERVER_LOADING_PROGRESS},
    [VALKEYMODULE_EVENT_SWAPDB] = {0, true, SERVER_SWAP},
    [VALKEYMODULE_EVENT_REPL_BACKUP] = {0, false, -1},
    [VALKEYMODULE_EVENT_FORK_CHILD] = {2, false, SERVER_CHILD},
    [VALKEYMODULE_EVENT_REPL_ASYNC_LOAD] = {3, false, SERVER_LOADING_BESIDE},
    [VALKEYMODULE_EVENT_EVENTLOOP] = {2, false, -1},
    [VALKEYMODULE_EVENT_CONFIG] = {1, false, SERVER_CONFIG},
    [VALKEYMODULE_EVENT_KEY] = {4, true, -1},
    [VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT] = {0, true, SERVER_LOGIN},
    [VALKEYMODULE_EVENT_ATOMIC_SLOT_MIGRATION] = {0, true, SERVER_SLOT_MIGRATION},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED] = {0, true, SERVER_ACL_REFUSAL},
};

/* The set of listeners has changed. */
static void rearm(void) {
    uint32_t server_kinds = 0;
    const uint32_t results = 1u << VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS |
                             1u << VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE |
                             1u << VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED |
                             1u << VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED;
    events.wanted = 0;
    for (const listener *l = ownedFirst(&events.all); l; l = ownedNext(&events.all, &l->entry)) {
        events.wanted |= 1u << l->event.id;
        if (kinds[l->event.id].kind >= 0) server_kinds |= 1u << kinds[l->event.id].kind;
    }
    serverEventsListen(onServerEvent, server_kinds);
    commandObserverArm(&result_observer, events.wanted & results);
    if (events.wanted & results) { /* the command that subscribes is told, too */
        for (ctx *c = engineHot.current; c; c = c->below) c->flags |= CTX_OBSERVED;
    }
    if (isWanted(VALKEYMODULE_EVENT_KEY)) storeExpectChanges();
    keyObserverArm(&key_observer, isWanted(VALKEYMODULE_EVENT_KEY));
    if (!(events.wanted & results)) events.command_count = 0;
    if (isWanted(VALKEYMODULE_EVENT_EVENTLOOP) && !events.stages_added) {
        hooksAddFeature(&loop_feature); /* it stays: without listeners it does nothing */
        events.stages_added = true;
    }
}

int apiSubscribeToServerEvent(ValkeyModuleCtx *ctx, ValkeyModuleEvent event,
                              ValkeyModuleEventCallback callback) {
    module *m = ctx->module;
    if (!m || event.id >= _VALKEYMODULE_EVENT_NEXT) return VALKEYMODULE_ERR;
    if (kinds[event.id].has_data && event.dataver > 1) return VALKEYMODULE_ERR;
    listener *old = NULL;
    for (listener *l = ownedFirst(&events.all); l; l = ownedNext(&events.all, &l->entry)) {
        if (l->entry.owner == m && l->event.id == event.id) old = l;
    }
    if (old && callback) {
        old->proc = callback;
    } else if (old) {
        ownedRemove(&events.all, &old->entry);
    } else if (callback) {
        listener *l = memNew(listener);
        l->event = event;
        l->proc = callback;
        ownedAdd(&events.all, &l->entry, m);
    }
    rearm();
    return VALKEYMODULE_OK;
}

int apiIsSubEventSupported(ValkeyModuleEvent event, uint64_t subevent) {
    if (event.id >= _VALKEYMODULE_EVENT_NEXT) return 0;
    int count = kinds[event.id].subs;
    hotCheck(count >= 0);
    return subevent < (uint64_t)count;
}

void serverEventsRemove(module *m) {
    if (ownedRemoveAll(&events.all, m)) rearm();
}

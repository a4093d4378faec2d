/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: server events. What the engine signals (engine/server_event.h), steps of
 * the loop and results of commands are translated to the numbers and structures of the module
 * interface. Only what has a listener is asked for.
 *
 * Not signalled yet: Key, AuthenticationAttempt, AtomicSlotMigration and rejected commands.
 * Main thread only. */
#include "module/server_events.h"

#include "base/base.h"
#include "engine/hooks.h"
#include "engine/server_event.h"
#include "module/client_info.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "repl/role.h"

typedef struct listener {
    listNode node;
    module *owner; /* NULL: ended while listeners are called, and is freed after them */
    ValkeyModuleEvent event;
    ValkeyModuleEventCallback proc;
} listener;

enum { COMMAND_DEPTH_MAX = 64 };

static struct {
    list all;
    bool ready;
    int depth;       /* of events being told */
    int gone;        /* listeners without an owner */
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

static list *allListeners(void) {
    if (!events.ready) listInit(&events.all);
    events.ready = true;
    return &events.all;
}

static listener *listenerAt(listNode *n) { return n ? LIST_OWNER(n, listener, node) : NULL; }

static bool isWanted(uint64_t id) { return events.wanted >> id & 1; }

/* ------------------------------------------------------------------ telling */

typedef struct telling {
    const listener *to;
    uint64_t sub;
    void *data;
    session *client; /* of the context; NULL: none */
} telling;

static void tellOne(ValkeyModuleCtx *x, void *arg) {
    const telling *t = arg;
    session *before = x->run->who;
    if (t->client) x->run->who = t->client;
    t->to->proc(x, t->to->event, t->sub, t->data);
    x->run->who = before;
}

static void freeGone(void) {
    hotCheck(!events.depth);
    listNode *next;
    for (listNode *n = listFirst(&events.all); n; n = next) {
        next = listNext(&events.all, n);
        listener *l = listenerAt(n);
        if (l->owner) continue;
        listRemove(&events.all, n);
        memFree(l);
    }
    events.gone = 0;
}

/* Calls the listeners of an event in the order of their registration; `but` is not told. */
static void tellBut(const module *but, uint64_t id, uint64_t sub, void *data, session *client) {
    if (!isWanted(id)) return;
    hotCheck(events.depth >= 0);
    events.depth++;
    listNode *next;
    for (listNode *n = listFirst(&events.all); n; n = next) {
        const listener *l = listenerAt(n);
        telling t = {l, sub, data, client};
        if (l->owner && l->owner != but && l->event.id == id) contextRun(l->owner, 0, tellOne, &t);
        next = listNext(&events.all, n);
    }
    if (!--events.depth && events.gone) freeGone();
}

static void tell(uint64_t id, uint64_t sub, void *data) { tellBut(NULL, id, sub, data, NULL); }

void serverEventsTellModule(const module *m, bool loaded) {
    ValkeyModuleModuleChange change = {VALKEYMODULE_MODULE_CHANGE_VERSION, m->name, m->version};
    tellBut(m, VALKEYMODULE_EVENT_MODULE_CHANGE,
            loaded ? VALKEYMODULE_SUBEVENT_MODULE_LOADED : VALKEYMODULE_SUBEVENT_MODULE_UNLOADED,
            &change, NULL);
}

/* ------------------------------------------------------------------ events of the engine */

static char *textOf(slice s) { return memDup(s.ptr ? s.ptr : "", s.len); }

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
    tell(VALKEYMODULE_EVENT_FLUSHDB,
         e->phase == EVENT_BEGINS ? VALKEYMODULE_SUBEVENT_FLUSHDB_START
                                  : VALKEYMODULE_SUBEVENT_FLUSHDB_END,
         &info);
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
    tellBut(NULL, VALKEYMODULE_EVENT_CLIENT_CHANGE,
            e->client.connected ? VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_CONNECTED
                                : VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED,
            &info, e->client.who);
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
    case SERVER_CRON:
        cron = (ValkeyModuleCronLoop){VALKEYMODULE_CRON_LOOP_VERSION, e->cron.hz};
        tell(VALKEYMODULE_EVENT_CRON_LOOP, 0, &cron);
        break;
    case SERVER_EVENT_KINDS: break;
    }
}

/* ------------------------------------------------------------------ the loop */

static void beforeSleep(void) {
    tell(VALKEYMODULE_EVENT_EVENTLOOP, VALKEYMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP, NULL);
}

static void afterSleep(void) {
    tell(VALKEYMODULE_EVENT_EVENTLOOP, VALKEYMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP, NULL);
}

static const stageJob stage_jobs[] = {
    {STAGE_AFTER_SLEEP, afterSleep}, {STAGE_EXPIRE, beforeSleep}, {0}};
static const feature loop_feature = {.name = "module events", .stages = stage_jobs};

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

static void afterCommand(ctx *c, int64_t duration_ns) {
    int64_t dirty = changesOf(c);
    hotCheck(duration_ns >= 0);
    bool failed = c->flags & CTX_FAILED;
    uint64_t id = failed ? VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE
                         : VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS;
    if (c->flags & CTX_NOT_RUN || !isWanted(id) || events.telling_result) return;
    argArray *args = argArrayNew(c->argv, c->argc);
    ValkeyModuleCommandResultInfo info = {.version = VALKEYMODULE_COMMANDRESULTINFO_VERSION,
                                          .command_name = c->cmd->name.ptr,
                                          .duration_us = duration_ns / 1000,
                                          .dirty = dirty,
                                          .client_id = c->who->id,
                                          .is_module_client = c->origin == ORIGIN_MODULE,
                                          .argc = c->argc,
                                          .argv = args->argv};
    events.telling_result = true; /* what listeners call is not told */
    tell(id, 0, &info);
    events.telling_result = false;
    argArrayEnd(args);
}

static const commandObserver result_observer = {
    .name = "modules", .before = beforeCommand, .after = afterCommand};

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
    [VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT] = {0, true, -1},
    [VALKEYMODULE_EVENT_ATOMIC_SLOT_MIGRATION] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED] = {0, true, -1},
    [VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED] = {0, true, -1},
};

/* The set of listeners has changed. */
static void rearm(void) {
    uint32_t server_kinds = 0;
    const uint32_t results = 1u << VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS |
                             1u << VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE;
    events.wanted = 0;
    for (listNode *n = listFirst(&events.all); n; n = listNext(&events.all, n)) {
        const listener *l = listenerAt(n);
        if (!l->owner) continue;
        events.wanted |= 1u << l->event.id;
        if (kinds[l->event.id].kind >= 0) server_kinds |= 1u << kinds[l->event.id].kind;
    }
    serverEventsListen(onServerEvent, server_kinds);
    commandObserverArm(&result_observer, events.wanted & results);
    if (!(events.wanted & results)) events.command_count = 0;
    if (isWanted(VALKEYMODULE_EVENT_EVENTLOOP) && !events.stages_added) {
        hooksAddFeature(&loop_feature); /* it stays: without listeners it does nothing */
        events.stages_added = true;
    }
}

static void removeListener(listener *l) {
    hotCheck(l->owner);
    l->owner = NULL;
    events.gone++;
    if (!events.depth) freeGone();
}

int apiSubscribeToServerEvent(ValkeyModuleCtx *ctx, ValkeyModuleEvent event,
                              ValkeyModuleEventCallback callback) {
    module *m = ctx->module;
    if (!m || event.id >= _VALKEYMODULE_EVENT_NEXT) return VALKEYMODULE_ERR;
    if (kinds[event.id].has_data && event.dataver > 1) return VALKEYMODULE_ERR;
    listener *old = NULL;
    for (listNode *n = listFirst(allListeners()); n; n = listNext(&events.all, n)) {
        listener *l = listenerAt(n);
        if (l->owner == m && l->event.id == event.id) old = l;
    }
    if (old && callback) {
        old->proc = callback;
    } else if (old) {
        removeListener(old);
    } else if (callback) {
        listener *l = memNew(listener);
        l->owner = m;
        l->event = event;
        l->proc = callback;
        listAppend(&events.all, &l->node);
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
    listNode *next;
    for (listNode *n = listFirst(allListeners()); n; n = next) {
        next = listNext(&events.all, n);
        listener *l = listenerAt(n);
        if (l->owner == m) removeListener(l);
    }
    rearm();
}

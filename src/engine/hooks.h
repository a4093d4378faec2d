/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The places where the house calls upwards. Each wing describes what it hangs up in one const `feature`;
 * the roof lists the features, engineInstall() fills the arrays and freezes them before the loop starts.
 * Absent costs nothing. Main thread only. */
#ifndef ENGINE_HOOKS_H
#define ENGINE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "engine/command.h"
#include "engine/session.h"

/* 1. Gates: may refuse a command (having replied the error), or hold it back. */
/* GATE_HELD: the request stays unrun with its carrier, as if it had not come; the gate has set one of
 * SESSION_STOPS. GATE_DONE: the gate has kept or answered it. */
typedef enum gateVerdict { GATE_PASS, GATE_REFUSED, GATE_HELD, GATE_DONE } gateVerdict;
typedef struct gate {
    const char *name;
    bool (*selects)(const commandSpec *spec); /* commands it wants to see; NULL: all */
    gateVerdict (*ask)(ctx *c);
    bool again; /* asked again for each command that EXEC runs: the answer may have changed since */
    uint32_t origins; /* GATE_ASKS_...: whose commands it judges; 0: GATE_ASKS_USERS */
} gate;
enum {
    GATE_ASKS_CLIENTS = 1u << ORIGIN_CLIENT,
    GATE_ASKS_USERS = GATE_ASKS_CLIENTS | 1u << ORIGIN_SCRIPT | 1u << ORIGIN_MODULE,
    GATE_ASKS_REPLAYS = 1u << ORIGIN_PRIMARY | 1u << ORIGIN_AOF,
};
void gateArm(const gate *g, bool on);                    /* for everybody */
void gateArmSession(session *s, const gate *g, bool on); /* for one session */
bool gateIsArmed(const gate *g);

/* 2. Sinks: take what is propagated, once per executed command that changed the dataset. `bytes` are the
 * command's RESP encoding (spans of it), argv the same in slices; both borrowed for the call. */
typedef struct propagated {
    int db_id; /* -1: any, of MULTI and EXEC */
    int slot;  /* -1: none or several */
    int argc;
    const slice *argv;
    const slice *spans; /* its bytes; encoded once when it had none */
    int span_count;
} propagated;
typedef struct sink {
    const char *name;
    void (*take)(const propagated *p);
} sink;
void sinkArm(const sink *s, bool on);

/* 3. Key changed by a command, or gone without one (expired, evicted). */
typedef struct keyObserver {
    const char *name;
    void (*changed)(db *d, slice key, const char *event);
    /* Events that leave the value as clients read it: of consumer groups, of counters. NULL: unwanted. */
    void (*event)(db *d, slice key, const char *event);
} keyObserver;
void keyObserverArm(const keyObserver *o, bool on);

/* 5. What happens to whole databases. FLUSHING and SWAPPING come before, while the keys still stand. */
typedef enum dbEventKind {
    DB_FLUSHING,
    DB_FLUSHED,
    DB_SWAPPING,
    DB_SWAPPED,
    DB_LOAD_BEGINS,
    DB_LOAD_ENDED
} dbEventKind;
typedef struct dbEvent {
    dbEventKind kind;
    int db_id, other_id; /* -1: all */
    const char *path;
} dbEvent;
typedef void dbEventProc(const dbEvent *e);

/* 6. Sessions. */
typedef enum sessionEvent {
    SESSION_OPENED,
    SESSION_ENDING,
    SESSION_USER_CHANGED,
    SESSION_WAS_RESET
} sessionEvent;
typedef void sessionEventProc(session *s, sessionEvent e);

/* 7. Periodic jobs. `period_ms` 0: each cron turn (hz times a second). */
typedef struct tickJob {
    const char *name;
    int64_t period_ms;
    void (*run)(int64_t budget_us);
} tickJob;

/* 8. Before and after the loop's sleep, in named stages, in this order. */
typedef enum stage {
    STAGE_AFTER_SLEEP,
    STAGE_EXECUTE, /* run what the readers of this turn have parsed */
    STAGE_EXPIRE,
    STAGE_WAKE,
    STAGE_LOG,
    STAGE_REPLICATE,
    STAGE_WRITE,
    STAGE_FREE,
    STAGE_COUNT,
} stage;
typedef struct stageJob {
    stage at;
    void (*run)(void);
} stageJob;
/* Runs the jobs of stages from..to; the roof's loop and nested turns call it. */
void stagesRun(stage from, stage to);

/* 9. Children. */
typedef enum childEvent {
    CHILD_BEFORE_FORK,
    CHILD_IN_CHILD,
    CHILD_IN_PARENT,
    CHILD_ENDED
} childEvent;
typedef void childEventProc(childEvent e, int kind, int exit_code, int signal);

/* 10. Memory pressure: releases what it can, returns bytes. */
typedef size_t pressureProc(void);

/* 12. Shutdown, reverse of the order of start. `flags` as SHUTDOWN's modifiers. ERR_DENIED aborts it;
 * ERR_AGAIN asks to be called again later. */
enum {
    SHUTDOWN_SAVE = 1,
    SHUTDOWN_NOSAVE = 2,
    SHUTDOWN_NOW = 4,
    SHUTDOWN_FORCE = 8,
    SHUTDOWN_SAFE = 16,
    SHUTDOWN_FAILOVER = 32
};
typedef status shutdownProc(uint32_t flags, reason *why);

/* 13. Authentication: asked in order by AUTH and HELLO until one answers. */
/* `name.ptr` is NULL in the form AUTH <password>; AUTH_NO_PASSWORD answers that form when the default user
 * needs none. */
typedef enum authVerdict { AUTH_NOT_MINE, AUTH_GRANTED, AUTH_DENIED, AUTH_NO_PASSWORD } authVerdict;
typedef authVerdict authProc(ctx *c, slice name, slice password, user **who);

/* 14. Commands seen: before they run (MONITOR, filters) and after. */
typedef struct seer {
    const char *name;
    void (*before)(ctx *c);
    void (*after)(ctx *c, int64_t duration_ns);
} seer;
void seerArm(const seer *s, bool on);
/* For one session alone (a tracked client): only its own commands leave the fast path. May be called from a seer of
 * another session, not from one of its own. RESET disarms. */
void seerArmSession(session *s, const seer *w, bool on);

/* INFO: a section, or a wing's share of one: shares of the same order stand under one title. */
enum { INFO_IN_DEFAULT = 1, INFO_IN_ALL = 2, INFO_IN_EVERYTHING = 4, INFO_NORMAL = 7 };
/* Sections come out in this order, which clients and tests have seen for years. */
typedef enum infoOrder {
    INFO_SERVER,
    INFO_TLS,
    INFO_CLIENTS,
    INFO_MEMORY,
    INFO_PERSISTENCE,
    INFO_STATS,
    INFO_REPLICATION,
    INFO_CPU,
    INFO_MODULES,
    INFO_COMMANDSTATS,
    INFO_ERRORSTATS,
    INFO_LATENCYSTATS,
    INFO_CLUSTER,
    INFO_CLUSTER_INFO,
    INFO_SCRIPTING_ENGINES,
    INFO_KEYSPACE,
    INFO_KEYSIZES,
    INFO_DEBUG,
    INFO_ORDER_MAX,
} infoOrder;
typedef struct infoSection {
    const char *name;  /* as asked for: "server" */
    const char *title; /* as printed: "# Server" */
    uint32_t when;
    infoOrder order;
    void (*print)(str *out);
} infoSection;

struct configOption;

/* What a wing exports: one const of these. Every list may be NULL or ends with an empty entry. */
typedef struct feature {
    const char *name;
    const struct configOption *options;
    const infoSection *info;
    const tickJob *ticks;
    const stageJob *stages;
    const gate *const *gates; /* the ones it owns; their order is the roof's */
    const sink *const *sinks;
    const keyObserver *const *observers;
    const seer *const *seers;
    dbEventProc *on_db;
    sessionEventProc *on_session;
    childEventProc *on_child;
    pressureProc *on_pressure;
    authProc *on_auth;
    void (*on_stats_reset)(void); /* CONFIG RESETSTAT */
    status (*init)(reason *why);  /* in registry order, after the configuration is read */
    shutdownProc *on_shutdown;    /* in reverse order */
} feature;

/* Hangs up everything of `features` and fixes the order of gates. Once, before commandInstall(). */
void hooksInstall(const feature *const *features, int count, const gate *const *gate_order,
                  int gate_count);
void hooksUninstall(void); /* tests */
/* Raising: for the engine's own use and for the rooms named in the comments above. */
void hooksDbEvent(const dbEvent *e);
void hooksSessionEvent(session *s, sessionEvent e);
void hooksChildEvent(childEvent e, int kind, int exit_code, int signal);
size_t hooksPressure(void);
authVerdict hooksAuthenticate(ctx *c, slice name, slice password, user **who);
status hooksShutdown(uint32_t flags, reason *why);
void hooksEachInfoSection(void (*proc)(const infoSection *section, void *arg), void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The points at which lower layers call upper ones. Each folder describes its callbacks in one
 * const `feature`; startup code lists the features, and hooksInstall() fills the arrays before the
 * loop starts. Unused hooks cost nothing. Main thread only. */
#ifndef ENGINE_HOOKS_H
#define ENGINE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "engine/command.h"
#include "engine/key_event.h"
#include "engine/session.h"
#include "store/value_type.h"

/* Gates: can refuse a command (after replying the error), or hold it back. GATE_HELD: the carrier
 * keeps the request, and SESSION_STOPS has a bit set by the gate. GATE_DONE: queued or replied. */
typedef enum gateVerdict { GATE_PASS, GATE_REFUSED, GATE_HELD, GATE_DONE } gateVerdict;
typedef struct gate {
    const char *name;
    bool (*selects)(const commandSpec *spec); /* commands it applies to; NULL: all */
    gateVerdict (*admit)(ctx *c);
    bool again;      /* also evaluated for each command that EXEC runs: it may have changed */
    bool of_effects; /* and when the command of a job stores its result: job.h */
    bool waived_for_writer; /* does not stop a script between its writes: gatesWaivedForWriters() */
    bool asked_of_writers;  /* asked at the start of a script that may write, and of its commands */
    bool of_stale_data;     /* refuses what lacks CMD_STALE: see gatesAdmitStale() */
    uint32_t origins;       /* origins it applies to; 0: GATE_FOR_USERS */
    void (*refuse_script)(ctx *c); /* replies the error of gatesAdmitScript(); NULL: not asked */
} gate;
enum {
    GATE_FOR_CLIENTS = 1u << ORIGIN_CLIENT,
    GATE_FOR_USERS = GATE_FOR_CLIENTS | 1u << ORIGIN_SCRIPT | 1u << ORIGIN_MODULE,
    GATE_FOR_REPLAYS = 1u << ORIGIN_PRIMARY | 1u << ORIGIN_IMPORT | 1u << ORIGIN_AOF,
};
void gateArm(const gate *g, bool on);                    /* for all sessions */
void gateArmSession(session *s, const gate *g, bool on); /* for one session */
bool gateIsArmed(const gate *g);
/* For the field gates_exempt of a ctx: the gate; the gates for changes that no longer apply to the
 * commands of a script that has changed something. */
uint64_t gateMask(const gate *g);
uint64_t gatesWaivedForWriters(void);
/* Evaluates the gates for changes, but `exempt`, for a command that is going to change data. */
gateVerdict gatesAdmitWriter(ctx *c, uint64_t exempt);
/* Evaluates the gates that protect stale data, for a command that is going to read it although it
 * has CMD_STALE: a script. */
gateVerdict gatesAdmitStale(ctx *c);
/* Evaluates the gates that have an error for scripts, for one with declared flags that a module
 * runs. `writes`: it may change something; `needs_fresh`: it may not see stale data. */
gateVerdict gatesAdmitScript(ctx *c, bool writes, bool needs_fresh);

/* Sinks: receive what is propagated, once per executed command that changed the dataset. `spans`
 * are the command's RESP encoding, `argv` the same as slices; both are borrowed for the call. */
typedef struct propagated {
    int db_id;        /* -1: any, of MULTI and EXEC */
    uint32_t targets; /* enum propagateTarget */
    int slot;         /* of its keys in cluster mode; -1: none or several */
    int argc;
    const slice *argv;
    const slice *spans; /* its encoding; produced on demand if there was none */
    int span_count;
} propagated;
typedef struct sink {
    const char *name;
    void (*take)(const propagated *p);
    uint32_t targets; /* gets what is for one of these; 0: everything */
} sink;
void sinkArm(const sink *s, bool on);

/* Key observers: a key was changed by a command, or removed without one (expired, evicted). */
typedef struct keyObserver {
    const char *name;
    /* `event` is NULL for a change without a name. */
    void (*changed)(db *d, slice key, const keyEvent *event);
    /* Events of consumer groups and counters leave values as clients read them. NULL: unwanted. */
    void (*event)(db *d, slice key, const keyEvent *event);
    /* Which of NOTIFY_NEW, NOTIFY_KEY_MISS and NOTIFY_LOADED event() shall be called for, which
     * cost something where they arise; asked whenever an observer is armed or disarmed. NULL:
     * none. */
    uint32_t (*notes)(void);
    /* A key is about to be removed, and its value still in place. Must not change the keyspace.
     * NULL: unwanted. */
    void (*removing)(db *d, const robj *o, storeRemoval why);
} keyObserver;
void keyObserverArm(const keyObserver *o, bool on);
/* For code that loads keys: signals eventLoaded, if an observer wants it. */
void keyObserversTellLoaded(db *d, slice key);

/* Events of whole databases. FLUSHING and SWAPPING are signalled before, while the keys still
 * exist. */
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
    int db_id, other_id; /* -1: all databases */
    const char *path;
    bool later;   /* of a flush: memory is freed in the background */
    bool swapped; /* of a flush: the keys are replaced by a dataset that was loaded beside them */
} dbEvent;
typedef void dbEventProc(const dbEvent *e);

/* Events of sessions. SESSION_CHANNELS_TAKEN: its user has lost rights to channels; pubsub asks
 * userMayReceive() for each subscription and closes the session if one is refused. */
typedef enum sessionEvent {
    SESSION_OPENED,
    SESSION_ENDING,
    SESSION_USER_CHANGED,
    SESSION_WAS_RESET,
    SESSION_CHANNELS_TAKEN,
} sessionEvent;
typedef void sessionEventProc(session *s, sessionEvent e);

/* Periodic jobs. `period_ms` 0: in each cron run (hz times per second). An idle server runs them
 * once per second, unless one of them is busy: has something to do before that, although nothing
 * happens. */
typedef struct tickJob {
    const char *name;
    int64_t period_ms;
    void (*run)(int64_t budget_us);
    bool (*is_busy)(void); /* asked after each run of the cron of an idle server; NULL: never */
} tickJob;

/* Stages: jobs that run before and after the loop's sleep, in this order. */
typedef enum stage {
    STAGE_AFTER_SLEEP,
    STAGE_EXECUTE, /* run what was read and parsed in this turn */
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
/* Runs the jobs of stages [from, to]; called by the main loop and nested turns. */
void stagesRun(stage from, stage to);

/* Events of children. BEFORE_FORK is followed by exactly one of IN_PARENT and FORK_FAILED. Only a
 * child that was announced by IN_PARENT ends, once, with ENDED, which has its exit code (-1: it was
 * killed, by `signal`). IN_CHILD is in the child itself. A handler undoes in FORK_FAILED what it
 * has done in BEFORE_FORK. */
typedef enum childEvent {
    CHILD_BEFORE_FORK,
    CHILD_IN_CHILD,
    CHILD_IN_PARENT,
    CHILD_ENDED,
    CHILD_FORK_FAILED
} childEvent;
typedef void childEventProc(childEvent e, int kind, int exit_code, int signal);

/* Memory pressure: releases what is possible, returns the number of bytes. */
typedef size_t pressureProc(void);

/* Shutdown, in reverse order of the start. `flags` are SHUTDOWN's options. ERR_DENIED aborts the
 * shutdown; ERR_AGAIN asks to be called again later. */
enum {
    SHUTDOWN_SAVE = 1,
    SHUTDOWN_NOSAVE = 2,
    SHUTDOWN_NOW = 4,
    SHUTDOWN_FORCE = 8,
    SHUTDOWN_SAFE = 16,
    SHUTDOWN_FAILOVER = 32
};
typedef status shutdownProc(uint32_t flags, reason *why);

/* Authentication: called in order by AUTH and HELLO until one decides. `name.ptr` is NULL for
 * AUTH <password>; AUTH_NO_PASSWORD is the result for that form if the default user needs none. */
/* AUTH_BLOCKED: the callback has called blockStart(), without `finish`; the command replies nothing
 * and runs again when the wait ends. The callback is asked again then: blockState() is what it
 * knows. */
/* AUTH_REPLIED: denied, and the callback has replied the error. */
typedef enum authVerdict {
    AUTH_NOT_MINE,
    AUTH_GRANTED,
    AUTH_DENIED,
    AUTH_REPLIED,
    AUTH_NO_PASSWORD,
    AUTH_BLOCKED
} authVerdict;
typedef authVerdict authProc(ctx *c, slice name, slice password, user **who);

/* Command observers (MONITOR, tracking). A duration was added to command.usec_ns before. */
typedef struct commandObserver {
    const char *name;
    void (*before)(ctx *c);
    void (*after)(ctx *c, int64_t duration_ns);
    /* A wait has ended without a second run, or a module's thread has worked. May be NULL. */
    void (*worked)(ctx *c, int64_t duration_ns);
    /* A request was refused; `pending`: size of the output before its error. May be NULL. */
    void (*refused)(ctx *c, size_t pending);
} commandObserver;
void commandObserverArm(const commandObserver *s, bool on);
/* Arms an observer for one session (a tracked client), so that only commands of this session leave
 * the fast path; RESET disarms it. Observers may arm and disarm any observer, also themselves,
 * while they are called; a disarmed observer is not called any more. */
void commandObserverArmSession(session *s, const commandObserver *w, bool on);

/* INFO sections. Sections with the same order are printed under one title. */
enum { INFO_IN_DEFAULT = 1, INFO_IN_ALL = 2, INFO_IN_EVERYTHING = 4, INFO_NORMAL = 7 };
/* The fixed order of sections in INFO. */
typedef enum infoOrder {
    INFO_SERVER,
    INFO_TLS,
    INFO_CLIENTS,
    INFO_MEMORY,
    INFO_PERSISTENCE,
    INFO_STATS,
    INFO_REPLICATION,
    INFO_THROTTLING,
    INFO_CPU,
    INFO_SENTINEL,
    INFO_MODULES,
    INFO_COMMANDSTATS,
    INFO_ERRORSTATS,
    INFO_LATENCYSTATS,
    INFO_HOTKEYS,
    INFO_CLUSTER,
    INFO_CLUSTER_INFO,
    INFO_GATEWAY,
    INFO_SCRIPTING_ENGINES,
    INFO_KEYSPACE,
    INFO_KEYSIZES,
    INFO_DEBUG,
    INFO_USERS,
    INFO_ORDER_MAX,
} infoOrder;
typedef struct infoSection {
    const char *name;  /* as requested: "server" */
    const char *title; /* as printed: "# Server" */
    uint32_t when;
    infoOrder order;
    void (*print)(str *out);
} infoSection;

struct configOption;

/* A folder registers this struct. Each list may be NULL, or ends with an empty entry. */
typedef struct feature {
    const char *name;
    const struct configOption *options;
    const infoSection *info;
    const tickJob *ticks;
    const stageJob *stages;
    const gate *const *gates; /* its gates; their order is given by startup code */
    const sink *const *sinks;
    const keyObserver *const *observers;
    const commandObserver *const *command_observers;
    dbEventProc *on_db;
    sessionEventProc *on_session;
    childEventProc *on_child;
    pressureProc *on_pressure;
    authProc *on_auth;
    void (*on_commands)(void);    /* commands were loaded or unloaded */
    void (*on_stats_reset)(void); /* CONFIG RESETSTAT */
    status (*init)(reason *why);  /* in the order of the features, once directives are known */
    shutdownProc *on_shutdown;    /* in reverse order */
} feature;

/* Registers callbacks and the order of gates. Once, before commandInstall(). */
void hooksInstall(const feature *const *features, int count, const gate *const *gate_order,
                  int gate_count);
/* Adds a feature while the server runs, or removes it (modules): its INFO sections, periodic jobs,
 * events and, from the next turn on, its stages. It may have no gates. Its `init` and `on_shutdown`
 * for the removal are the caller's to call; what it has armed it disarms itself. Not from inside of
 * an event of these hooks. */
void hooksAddFeature(const feature *f);
void hooksRemoveFeature(const feature *f);
void hooksUninstall(void); /* for tests */
/* Signalling events: for the engine, and for the folders named in the comments above. */
void hooksDbEvent(const dbEvent *e);
void hooksCommandsChanged(void);
void hooksSessionEvent(session *s, sessionEvent e);
void hooksChildEvent(childEvent e, int kind, int exit_code, int signal);
size_t hooksPressure(void);
authVerdict hooksAuthenticate(ctx *c, slice name, slice password, user **who);
status hooksShutdown(uint32_t flags, reason *why);
/* INFO has only the sections whose bit (1u << order) is set; at first it has all. */
void hooksLimitInfo(uint32_t orders);
/* Prints more of INFO after the sections (modules): those that `names` ask for, or with `all` all.
 * `crashed`: it is called by the crash report. */
typedef void infoMoreProc(str *out, const slice *names, int count, bool all, bool crashed);
void hooksSetInfoMore(infoMoreProc *proc);
void hooksInfoMore(str *out, const slice *names, int count, bool all, bool crashed);
void hooksEachInfoSection(void (*proc)(const infoSection *section, void *arg), void *arg);

#endif

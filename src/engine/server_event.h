/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Server events: events of the server as a whole, for those who want to know what happens but have
 * no part in it (modules, the kernel's settings of the process). The hooks on_db, on_session and
 * on_child (hooks.h) are for the folders whose own state depends on the same facts: they run in the
 * order of the features, first when something begins and when it ends. An event is passed on to
 * listeners after them, so a listener finds the server in its new state.
 *
 * Invariant: an event of a kind without listener costs one test. Main thread only. */
#ifndef ENGINE_SERVER_EVENT_H
#define ENGINE_SERVER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/slots.h"
#include "engine/session.h"

typedef struct ctx ctx;

typedef enum serverEventKind {
    SERVER_ROLE,             /* became a primary or a replica, or the replica of another primary */
    SERVER_REPLICA,          /* a replica of this server is online, or is so no more */
    SERVER_LINK,             /* of a replica to its primary: works, or works no more */
    SERVER_LOADING,          /* phases */
    SERVER_LOADING_PROGRESS, /* hz times a second during a load */
    SERVER_LOADING_BESIDE,   /* phases: of another dataset, while this one remains; SERVER_LOADING
                                begins after it. ENDED: the new one is in its place, before
                                SERVER_LOADING ends; FAILED: after that */
    SERVER_PERSISTENCE,      /* phases: a dataset is saved for the disk or for replicas */
    SERVER_FLUSH,            /* phases: BEGINS while the keys still exist */
    SERVER_SWAP,             /* two databases were exchanged */
    SERVER_CHILD,            /* phases: a process was forked; it has ended */
    SERVER_SHUTDOWN,         /* certain: nothing can stop it any more, files are complete */
    SERVER_CONFIG,           /* CONFIG SET has succeeded */
    SERVER_CLIENT,           /* connected; about to be freed */
    SERVER_LOGIN,            /* AUTH or HELLO with a user: by a password */
    SERVER_ACL_REFUSAL,      /* a request of a client, for lack of rights */
    SERVER_SLOT_MIGRATION,   /* phases: slots move from one node to another by a job */
    SERVER_CRON,             /* hz times a second */
    SERVER_EVENT_KINDS
} serverEventKind;

typedef enum serverEventPhase { EVENT_BEGINS, EVENT_ENDED, EVENT_FAILED } serverEventPhase;

typedef enum serverDatasetSource { DATASET_RDB, DATASET_AOF, DATASET_PRIMARY } serverDatasetSource;

typedef enum serverRefusal {
    REFUSED_COMMAND,
    REFUSED_KEY,
    REFUSED_CHANNEL,
    REFUSED_DATABASE
} serverRefusal;

/* The data of an event are in the member named after its kind. Borrowed for the call. */
typedef struct serverEvent {
    serverEventKind kind;
    serverEventPhase phase; /* of kinds that have phases */
    union {
        struct {
            bool is_replica;
            slice host; /* of the primary; empty for a primary */
            int port;
        } role;
        struct {
            bool online;
            session *who; /* more about it: repl/role.h */
        } replica;
        struct {
            bool up;
        } link;
        struct {
            serverDatasetSource source; /* of EVENT_BEGINS */
        } loading;
        struct {
            bool is_aof;  /* the part that is being read now */
            int per_1024; /* -1: unknown */
            int hz;
        } progress;
        struct {
            bool is_aof;        /* the append only file, else a snapshot; of EVENT_BEGINS */
            bool in_foreground; /* the server does nothing else meanwhile */
        } persistence;
        struct {
            int db_id;  /* -1: all */
            bool later; /* memory is freed in the background */
        } flush;
        struct {
            int first, second;
        } swap;
        struct {
            int kind; /* enum childKind */
        } child;
        struct {
            const slice *names; /* of all directives of the request */
            int count;
        } config;
        struct {
            session *who;
            bool connected;
        } client;
        struct {
            const session *who;
            slice name;
            bool granted;
        } login;
        struct {
            const ctx *request;
            serverRefusal what;
            slice object; /* the key or channel; else the name of the command */
        } acl_refusal;
        struct {
            slice job;
            bool is_import;
            const slotRange *ranges;
            size_t range_count;
        } slots;
        struct {
            int hz;
        } cron;
    };
} serverEvent;

typedef void serverEventProc(const serverEvent *e);

/* From now on `proc` gets the kinds whose bit (1u << kind) is set in `kinds`, and no others; 0 ends
 * that. Allowed from inside of `proc`. Listeners are called in the order of their first
 * registration. */
void serverEventsListen(serverEventProc *proc, uint32_t kinds);
/* True if somebody listens, for events whose data take time to gather. */
bool serverEventIsWanted(serverEventKind kind);
/* Passes an event on; by the folder that makes it happen. */
void serverEventSignal(const serverEvent *e);
/* SERVER_PERSISTENCE. What children do is signalled by on_child. */
void serverEventSaving(serverEventPhase phase, bool is_aof, bool in_foreground);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: who is asking. Database, user, protocol, flags, transaction, output; never a socket: what
 * carries it (a connection, a script, the AOF loader) is a vtable of a few functions.
 * Main thread only, except while an I/O thread owns the whole session. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"
#include "resp/resp.h"

typedef struct session session;
typedef struct command command;
typedef struct db db;
typedef struct user user;               /* acl's */
typedef struct transaction transaction; /* engine's own */
typedef struct blockWait blockWait;     /* likewise */

enum sessionFlag {
    SESSION_CLOSE_SOON = 1u << 0, /* close once the output is written; runs nothing more */
    SESSION_CLOSE_NOW = 1u << 1,  /* close at the next stage FREE, output dropped */
    SESSION_BLOCKED = 1u << 2,    /* waits for a key, time or acknowledgement */
    SESSION_REPARSE = 1u << 3,   /* the rest of the batch must be parsed again (RESET, AUTH, ...) */
    SESSION_PAUSED = 1u << 4,    /* held back by CLIENT PAUSE */
    SESSION_REPLY_OFF = 1u << 5, /* CLIENT REPLY OFF */
    SESSION_REPLY_SKIP_NEXT = 1u << 6,
    SESSION_REPLY_SKIP = 1u << 7,  /* the command running now is silent */
    SESSION_PENDING_OUT = 1u << 8, /* stands on the pending-output list */
    SESSION_IN_MULTI = 1u << 9,
    SESSION_MULTI_POISONED = 1u << 10, /* EXEC will answer EXECABORT */
    SESSION_WATCH_DIRTY = 1u << 11,
    SESSION_NO_EVICT = 1u << 12,
    SESSION_NO_TOUCH = 1u << 13,
    SESSION_INTERNAL = 1u << 14, /* script, loader, module: no limits, no statistics of clients */
    SESSION_PRIMARY = 1u << 15,  /* the stream of our primary */
    SESSION_REPLICA = 1u << 16,
    SESSION_MONITOR = 1u << 17,
    SESSION_PUBSUB = 1u << 18, /* has subscriptions */
    SESSION_UNIX_SOCKET = 1u << 19,
    SESSION_LOCAL = 1u << 20, /* loopback or Unix socket */
    SESSION_AUTHENTICATED = 1u << 21,
    SESSION_IN_BATCH = 1u << 22, /* its requests stand in a batch that is being run */
    SESSION_CAPA_REDIRECT = 1u << 23,
    SESSION_IMPORT_SOURCE = 1u << 24,
    SESSION_DENY_BLOCKING = 1u << 25, /* inside EXEC or a script */
    SESSION_CLOSING = 1u << 26,       /* its end was announced by hook 6 */
    SESSION_READONLY = 1u << 27,      /* READONLY: reads from a replica are fine */
    SESSION_REPLAY = 1u << 28,        /* its origin decides about expiry: sessionSetOrigin() */
    SESSION_LENT = 1u << 29,          /* an I/O thread owns it: nobody else touches its output */
    /* Any of these stops the run of requests before the next command. */
    SESSION_STOPS =
        SESSION_CLOSE_SOON | SESSION_CLOSE_NOW | SESSION_BLOCKED | SESSION_REPARSE | SESSION_PAUSED,
    /* Its commands see the keyspace otherwise than most: keyspaceSpecialLook(). */
    SESSION_OWN_LOOK = SESSION_NO_TOUCH | SESSION_IMPORT_SOURCE | SESSION_REPLAY,
    SESSION_REPLY_MODES = SESSION_REPLY_OFF | SESSION_REPLY_SKIP_NEXT | SESSION_REPLY_SKIP,
};

/* Where a command comes from: decides which gates it is asked by. The order matters: see ctxIsReplay(). */
typedef enum ctxOrigin {
    ORIGIN_CLIENT,
    ORIGIN_SCRIPT,
    ORIGIN_MODULE,
    ORIGIN_PRIMARY, /* the stream of our primary */
    ORIGIN_AOF,
    ORIGIN_COUNT,
} ctxOrigin;

/* Who gets what a command changes. */
enum propagateTarget {
    PROPAGATE_AOF = 1u << 0,
    PROPAGATE_REPLICAS = 1u << 1,
    PROPAGATE_SLOT_EXPORT = 1u << 2,
    PROPAGATE_ALL = PROPAGATE_AOF | PROPAGATE_REPLICAS | PROPAGATE_SLOT_EXPORT,
};

/* What carries a session. All may be NULL; `describe` writes CLIENT LIST's connection fields. */
typedef struct sessionCarrier {
    void (*describe)(const session *s, str *out);
    void (*pause_reading)(session *s, bool paused);
    /* It was held back and goes on: what has been read is run in this turn. */
    void (*resume)(session *s);
    /* Told once when a session gets SESSION_CLOSE_SOON or _NOW. */
    void (*close_soon)(session *s);
    void (*close_now)(session *s);
    /* Appends the peer's address, as CLIENT LIST shows it. */
    void (*peer)(const session *s, str *out);
    /* Its output grew outside of its own requests: the output limits are applied. */
    void (*output_grew)(session *s);
} sessionCarrier;

/* Parts few sessions have; made on first use. */
typedef struct sessionExtra {
    str name, lib_name, lib_version;
} sessionExtra;

struct session {
    uint32_t flags;
    uint32_t armed; /* gates armed for this session alone */
    db *db;
    int32_t db_id;
    uint8_t proto;   /* 2 or 3 */
    uint8_t origin;  /* enum ctxOrigin of its requests */
    uint8_t targets; /* enum propagateTarget: who gets what its requests change */
    bool observed;   /* seerArmSession() armed somebody for it */
    outbuf out;
    listNode pending;  /* place on the engine's pending-output list */
    listNode held;     /* place on the list of those that a pause holds back */
    listNode released; /* place on the list of those that no longer wait and go on */
    const command *last_command;
    user *user;                 /* NULL: the default user */
    transaction *multi;         /* NULL until the first MULTI or WATCH */
    blockWait *blocked;         /* NULL while it does not wait */
    struct sessionSlots *slots; /* what subsystems keep for it: see session_slot.h */
    const sessionCarrier *carrier;
    uint64_t id;
    uint64_t commands, bytes_in, bytes_out;
    int64_t created_ms, active_ms; /* monotonic-cached wall time: birth, last request */
};

/* Sets up a session in storage of the caller's. `id` 0 for internal ones. Raises hook 6 (opened). */
void sessionInit(session *s, const sessionCarrier *carrier, uint32_t flags);
/* Announces the end (hook 6), drops output, transaction, extra. */
void sessionClear(session *s);
/* Back to how a new connection begins, as RESET does (db 0, RESP2, no transaction, default user). */
void sessionReset(session *s);
/* Where the session's requests come from, and with it whom their changes are propagated to: all for clients, not the
 * replicas for the stream of our primary (they get that stream itself), nobody for the AOF. */
void sessionSetOrigin(session *s, ctxOrigin origin);
/* Asks the carrier to close: after what is pending is written, or without it. */
void sessionCloseSoon(session *s);
void sessionCloseNow(session *s);
/* ERR_RANGE when there is no such database. */
status sessionSelect(session *s, int64_t id);
sessionExtra *sessionExtraOf(session *s);               /* makes it */
const sessionExtra *sessionExtraFind(const session *s); /* NULL when there is none */
/* Appends the address of who is asking; nothing for a session without a connection. */
void sessionPeer(const session *s, str *out);
slice sessionName(const session *s); /* empty when none */

/* Authentication state: arms or disarms the AUTH gate of this session. */
void sessionSetAuthenticated(session *s, user *user, bool yes);
static inline bool sessionIsAuthenticated(const session *s) {
    return s->flags & SESSION_AUTHENTICATED;
}

/* Replaces the SESSION_REPLY_* flags (CLIENT REPLY). */
void sessionSetReplyMode(session *s, uint32_t modes);

/* Puts a session with output on the pending list (idempotent), which net drains at stage WRITE. */
void sessionWantWrite(session *s);
/* Takes the first session off the pending list; NULL when it is empty. */
session *sessionNextPending(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: the state of a client: database, user, protocol, flags, transaction, output. It does not
 * know sockets: its carrier (a connection, a script, the AOF loader) is a table of functions. Main
 * thread only, except while an I/O thread owns the whole session. */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"
#include "resp/resp.h"

typedef struct session session;
typedef struct command command;
typedef struct db db;
typedef struct user user;               /* defined in user.h */
typedef struct transaction transaction; /* defined in engine */
typedef struct blockWait blockWait;     /* defined in engine */

/* The flags of a session, 64 bits: macros, because the constants of an enum are ints in C. */
#define SESSION_BIT(number) (UINT64_C(1) << (number))
/* Each of these stops execution before the next command: SESSION_STOPS. */
#define SESSION_CLOSE_SOON SESSION_BIT(0) /* close once the output is written; runs nothing more */
#define SESSION_CLOSE_NOW SESSION_BIT(1)  /* close in the next stage FREE, discarding output */
#define SESSION_BLOCKED SESSION_BIT(2)    /* waits for a key, timeout or acknowledgement */
#define SESSION_REPARSE SESSION_BIT(3)    /* the rest of the batch must be parsed again (RESET) */
#define SESSION_PAUSED SESSION_BIT(4)     /* held back: CLIENT PAUSE, a share of time */
#define SESSION_STOPS \
    (SESSION_CLOSE_SOON | SESSION_CLOSE_NOW | SESSION_BLOCKED | SESSION_REPARSE | SESSION_PAUSED)
/* The reply mode. */
#define SESSION_REPLY_OFF SESSION_BIT(5) /* CLIENT REPLY OFF */
#define SESSION_REPLY_SKIP_NEXT SESSION_BIT(6)
#define SESSION_REPLY_SKIP SESSION_BIT(7) /* the reply of the running command is suppressed */
#define SESSION_REPLY_MODES (SESSION_REPLY_OFF | SESSION_REPLY_SKIP_NEXT | SESSION_REPLY_SKIP)
/* Transactions. */
#define SESSION_IN_MULTI SESSION_BIT(8)
#define SESSION_MULTI_POISONED SESSION_BIT(9) /* EXEC will reply EXECABORT */
#define SESSION_WATCH_DIRTY SESSION_BIT(10)
/* Its commands see the keyspace differently: keyspaceSessionLook(). */
#define SESSION_NO_TOUCH SESSION_BIT(11)
#define SESSION_IMPORT_SOURCE SESSION_BIT(12)
#define SESSION_REPLAY SESSION_BIT(13) /* its origin controls expiry: sessionSetOrigin() */
#define SESSION_OWN_LOOK (SESSION_NO_TOUCH | SESSION_IMPORT_SOURCE | SESSION_REPLAY)
/* Kind of the session. */
#define SESSION_INTERNAL SESSION_BIT(14) /* script, loader, module: no limits, not a client */
#define SESSION_PRIMARY SESSION_BIT(15)  /* the replication stream of our primary */
#define SESSION_REPLICA SESSION_BIT(16)
#define SESSION_MONITOR SESSION_BIT(17)
#define SESSION_PUBSUB SESSION_BIT(18) /* has subscriptions */
#define SESSION_UNIX_SOCKET SESSION_BIT(19)
#define SESSION_LOCAL SESSION_BIT(20) /* loopback or Unix socket */
#define SESSION_AUTHENTICATED SESSION_BIT(21)
#define SESSION_CAPA_REDIRECT SESSION_BIT(22)
#define SESSION_READONLY SESSION_BIT(23) /* READONLY: reads from a replica are allowed */
#define SESSION_NO_EVICT SESSION_BIT(24)
#define SESSION_DENY_BLOCKING SESSION_BIT(25) /* inside EXEC or a script */
/* Where it is. */
#define SESSION_IN_BATCH SESSION_BIT(26)     /* has requests in a batch that is being run */
#define SESSION_PENDING_OUT SESSION_BIT(27)  /* is in the pending list */
#define SESSION_PENDING_PUSH SESSION_BIT(28) /* is in the list of pushed sessions */
#define SESSION_LENT SESSION_BIT(29)         /* an I/O thread writes its output */
#define SESSION_CLOSING SESSION_BIT(30)      /* its end was signalled by on_session */
#define SESSION_SLOT_EXPORT SESSION_BIT(31)  /* sends slots to another node: no limits of clients */
#define SESSION_ASKING SESSION_BIT(32)       /* ASKING: of a slot that is being imported */
#define SESSION_PENDING_LATER SESSION_BIT(34) /* is in the list of those that are written later */
#define SESSION_EVER_AUTHENTICATED SESSION_BIT(35) /* since the connection began; for modules */
/* Paused by a scope that holds writes, or by one that holds all requests: pause.c. */
#define SESSION_HELD_WRITE SESSION_BIT(36)
#define SESSION_HELD_READ SESSION_BIT(37)
/* The connection was accepted at admin-port; shares of time do not apply to it
 * (account/share.h). */
#define SESSION_ADMIN_PORT SESSION_BIT(38)
/* The connection was accepted at cluster-gateway-port (gateway/README.md). */
#define SESSION_GATEWAY SESSION_BIT(39)
/* Another node of the cluster sends the requests of several users over it (gateway/identity.h). If
 * its user is switched on or off, SESSION_USER_CHANGED is signalled, too. */
#define SESSION_NODE_LINK SESSION_BIT(40)
#define SESSION_PENDING (SESSION_PENDING_OUT | SESSION_PENDING_PUSH | SESSION_PENDING_LATER)
#define SESSION_STREAMS (SESSION_REPLICA | SESSION_SLOT_EXPORT) /* what is sent is no reply */
/* A request was refused for its name, the number of its arguments or its user: its reply tells
 * nothing of the keyspace. Cleared by who looks at it (repl/held_output.c). */
#define SESSION_REFUSED SESSION_BIT(33)

/* Where commands come from: determines which gates apply. The order matters: see ctxIsReplay(). */
typedef enum ctxOrigin {
    ORIGIN_CLIENT,
    ORIGIN_SCRIPT,
    ORIGIN_MODULE,
    ORIGIN_PRIMARY, /* the replication stream of our primary */
    ORIGIN_IMPORT,  /* the stream of a slot that another node hands over */
    ORIGIN_AOF,
    ORIGIN_COUNT,
} ctxOrigin;

/* Where the changes of a command are propagated to. */
enum propagateTarget {
    PROPAGATE_AOF = 1u << 0,
    PROPAGATE_REPLICAS = 1u << 1,
    PROPAGATE_SLOT_EXPORT = 1u << 2,
    PROPAGATE_ALL = PROPAGATE_AOF | PROPAGATE_REPLICAS | PROPAGATE_SLOT_EXPORT,
};

/* The transport of a session. All functions may be NULL. */
typedef struct sessionCarrier {
    void (*pause_reading)(session *s, bool paused);
    /* Continues after it was held back: requests that have been read are run in this turn. */
    void (*resume)(session *s);
    /* Called once when a session gets SESSION_CLOSE_SOON or _NOW. */
    void (*close_soon)(session *s);
    void (*close_now)(session *s);
    /* Appends the peer's address in the format of CLIENT LIST. */
    void (*peer)(const session *s, str *out);
    /* Output was added outside of its own requests, and there is more than one block of it: applies
     * the output limits. */
    void (*output_grew)(session *s);
    /* A conversation within a command (the debugger of scripts). The first two block the calling
     * process. */
    /* Writes all output. False: the connection has failed. */
    bool (*write_all)(session *s);
    /* Waits for input, and reads up to `cap` bytes of it; what was read before is not included. 0:
     * the peer has closed, or the connection has failed. */
    size_t (*read_wait)(session *s, void *dst, size_t cap);
    /* Closes the connection in this process alone, without a message to the peer: a forked process
     * continues with it. */
    void (*hand_over)(session *s);
} sessionCarrier;

/* Rarely used parts; allocated on first use. */
typedef struct sessionExtra {
    str name, lib_name, lib_version;
} sessionExtra;

struct session {
    uint64_t flags; /* SESSION_... */
    uint64_t armed; /* gates armed for this session only */
    db *db;
    int32_t db_id;
    uint8_t proto;   /* 2 or 3 */
    uint8_t origin;  /* enum ctxOrigin of its requests */
    uint8_t targets; /* enum propagateTarget of its requests */
    bool observed;   /* has command observers of its own */
    outbuf out;
    listNode pending;  /* node in the pending list or that of pushed sessions */
    listNode held;     /* node in the list of paused sessions */
    listNode released; /* node in the list of unblocked sessions */
    const command *last_command;
    user *user;                 /* NULL: none, no checks; see user.h */
    transaction *multi;         /* NULL until the first MULTI or WATCH */
    blockWait *blocked;         /* NULL if not blocked */
    struct sessionSlots *slots; /* state of subsystems: see session_slot.h */
    const sessionCarrier *carrier;
    uint64_t id;
    uint64_t commands, bytes_in, bytes_out;
    int64_t created_ms, active_ms; /* wall time of creation, and of the last request */
};
_Static_assert(offsetof(session, out) + offsetof(outbuf, base) <= CACHE_LINE,
               "what each request reads, and where its reply goes, are in the first line");

/* Initialises a session in memory of the caller. `id` is 0 for internal ones. Signals on_session
 * (opened). */
void sessionInit(session *s, const sessionCarrier *carrier, uint64_t flags);
/* Signals the end (on_session) unless it is internal and has no slots; frees output, transaction,
 * slots. */
void sessionClear(session *s);
/* Resets to the state of a new connection, as RESET does (db 0, RESP2, no transaction, default
 * user). */
void sessionReset(session *s);
/* Sets where the session's requests come from, and the propagation targets of their changes: all
 * for clients, not the replicas for streams (they receive the stream itself: stream.h), none for
 * the AOF. */
void sessionSetOrigin(session *s, ctxOrigin origin);
/* Ask the carrier to close: after pending output was written, or immediately. */
void sessionCloseSoon(session *s);
void sessionCloseNow(session *s);
/* ERR_RANGE if there is no such database. */
status sessionSelect(session *s, int64_t id);
sessionExtra *sessionExtraOf(session *s);               /* allocates it */
const sessionExtra *sessionExtraFind(const session *s); /* NULL if not allocated */
/* Appends the peer's address; nothing for a session without a connection. */
void sessionPeer(const session *s, str *out);
slice sessionName(const session *s); /* empty if none */

/* Sets user and authentication state, which arms or disarms the gate bit of this session. Signals
 * on_session (user changed) if it is another user. */
void sessionSetAuthenticated(session *s, user *user, bool yes);
static inline bool sessionIsAuthenticated(const session *s) {
    return s->flags & SESSION_AUTHENTICATED;
}

/* Replaces the SESSION_REPLY_* flags (CLIENT REPLY). */
void sessionSetReplyMode(session *s, uint64_t modes);

/* Sessions with output, which net writes in stage WRITE in this order, so that who has a reply
 * finds that replicas and listeners were sent the change:
 *
 * 1. streams to replicas and exports of slots,
 * 2. sessions with nothing but what was delivered to them (messages, invalidations, MONITOR),
 * 3. those with replies as well, 4. those with replies alone,
 * 5. some of those that have got nothing but messages that many receive: the others are written in
 *    later turns, with what they get until then.
 *
 * 1 and 2 are the list of pushed sessions, 3 and 4 the pending list. The functions are idempotent,
 * and a session that is in a list moves at most to an earlier one. The first is for replies and
 * what remains to be written, the second for deliveries, the third for messages to many. */
void sessionWantWrite(session *s);
void sessionWantPush(session *s);
void sessionWantLater(session *s);
/* Remove and return the first session of a list; NULL if it is empty. */
session *sessionNextPushed(void);
session *sessionNextPending(void);
session *sessionFirstLater(void);      /* stays in the list; NULL if it is empty */
void sessionTakeLater(session *first); /* removes it */
size_t sessionLaterCount(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The link of a replica to its primary, as a state machine: from the connection over the handshake
 * and the transfer of the dataset to the stream. It knows no sockets and no clock: what it does
 * goes through a table of functions, and what happens is told to it. Texts that go to the log are
 * Valkey's. One thread at a time. */
#ifndef PSYNC_LINK_H
#define PSYNC_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "psync/birth.h"
#include "psync/history.h"

/* In this order. The second column is the state in ROLE and INFO. */
typedef enum linkState {
    LINK_NONE,         /*               not a replica */
    LINK_CONNECT,      /* "connect"     waits until it is time to connect */
    LINK_CONNECTING,   /* "connecting"  */
    LINK_PING,         /* "handshake"   waits for the reply to PING, and so on */
    LINK_AUTH,         /* "handshake"   */
    LINK_PORT,         /* "handshake"   REPLCONF listening-port */
    LINK_ADDRESS,      /* "handshake"   REPLCONF ip-address */
    LINK_CAPABILITIES, /* "handshake"   REPLCONF capa */
    LINK_VERSION,      /* "handshake"   REPLCONF version */
    LINK_NODE_ID,      /* "handshake"   REPLCONF set-cluster-node-id */
    LINK_PSYNC,        /* "handshake"   */
    LINK_SECOND,       /* "handshake"   dual channel: waits for what the second connection tells */
    LINK_CLIENT_ID,    /* "handshake"   REPLCONF set-rdb-client-id */
    LINK_SECOND_PSYNC, /* "handshake"   PSYNC for the stream that follows the dataset */
    LINK_ANNOUNCED,    /* "sync"        a dataset will come: waits for its size or end mark */
    LINK_TRANSFER,     /* "sync"        it is received and loaded */
    LINK_CONNECTED,    /* "connected"   the stream is applied */
} linkState;
const char *linkStateName(linkState state);

/* The second connection of a dual-channel synchronisation, over which the dataset comes. */
typedef enum linkSecond {
    SECOND_NONE,
    SECOND_CONNECTING,
    SECOND_REPLIES,   /* waits for the replies to AUTH and REPLCONF */
    SECOND_END,       /* waits for $ENDOFF: where the stream will continue after the dataset */
    SECOND_ANNOUNCED, /* waits for the end mark; then the transfer has it */
} linkSecond;

/* What the handshake announces. Texts are borrowed until the settings change. */
typedef struct linkSettings {
    slice host; /* of the primary */
    int port;
    slice user, password; /* no password: no AUTH */
    int announce_port;
    slice announce_address;   /* empty: none */
    const char *version;      /* "9.1.2" */
    slice node_id;            /* of a cluster; else empty */
    bool skips_checksum;      /* the transfer needs no checksum */
    bool lz4, zstd;           /* dataset and stream may be compressed so */
    bool dual_channel;        /* the dataset may come over a second connection */
    int64_t timeout_ms, fack; /* repl-timeout; `fack`: -1, or the offset that is on disk */
    bool has_confirmed;       /* with replication-quorum: what this primary has sent so far */
    /* A primary that was started without a dataset is refused (birth.h); `kept_birth`: of the data
     * here, empty: unknown. */
    bool keeps_data;
    slice kept_birth;
    bool keeps_discarded; /* keeps_data also holds after linkNoteGetack() */
} linkSettings;

/* A dataset that follows. */
typedef struct linkTransfer {
    int64_t bytes; /* -1: up to `mark` */
    char mark[REPL_ID_LEN];
    bool known;               /* the primary has told id and offset */
    char id[REPL_ID_LEN + 1]; /* the history after the dataset */
    int64_t offset;
    int db;         /* selected in the stream after it; -1: SELECT will come */
    bool needs_key; /* a dataset without any key is refused: LINK_NO_KEY */
} linkTransfer;

typedef enum linkHistoryChange {
    LINK_HISTORY_REPLACED, /* another dataset */
    LINK_HISTORY_RENAMED,  /* the same under another id */
} linkHistoryChange;

/* How a transfer has ended. */
typedef enum linkResult {
    LINK_LOADED,
    LINK_CUT,    /* the connection was lost or timed out: tried again within a second */
    LINK_FAILED, /* the dataset was refused, or could not be stored: tried again later and later */
    LINK_NO_KEY, /* linkTransfer.needs_key, and it had none: what is here was kept */
    /* The dataset has values that are refused (foreign-values): until somebody changes something
     * each further try fails as well, and costs the primary a save. Tried again after a minute. */
    LINK_FOREIGN,
} linkResult;

/* All functions get the `arg` of linkInit(). They must not call functions of the link, except
 * linkOpened() and linkFailed() from `connect`, linkSecondOpened() and linkSecondLost() from
 * `connect_second`. */
typedef struct linkEnv {
    linkSettings (*settings)(void *arg);
    /* Begins to connect: linkOpened() or linkFailed() follows. */
    void (*connect)(void *arg);
    void (*send)(void *arg, slice bytes);
    /* Closes the connection, in whatever use it is: a transfer is cancelled, a stream ends. What
     * was applied of the stream has been added to the history on return. */
    void (*close)(void *arg);
    /* Receives and loads the dataset; `received` are the first bytes. linkTransferEnded()
     * follows. */
    void (*transfer)(void *arg, const linkTransfer *what, slice received);
    /* Applies what comes from now on; `received` are the first bytes. `from_start`: no database is
     * selected. */
    void (*stream)(void *arg, slice received, bool from_start);
    /* Dual channel. */
    void (*connect_second)(void *arg);
    void (*send_second)(void *arg, slice bytes);
    /* The primary saves the dataset; PSYNC on the first connection follows. May be NULL. */
    void (*save_started)(void *arg);
    /* The first connection has the stream from now on: it is collected until `stream` is called,
     * which gets what was collected by itself. `received` are the first bytes. Not called if the
     * dataset was loaded before. */
    void (*collect)(void *arg, slice received);
    void (*history_changed)(void *arg, linkHistoryChange change);
    /* The reply to PSYNC .. FAILOVER. */
    void (*failover_ended)(void *arg, bool accepted);
} linkEnv;

typedef struct replLink {
    const linkEnv *env;
    void *arg;
    replHistory *history;
    linkState state;
    /* The dataset is at history->offset of a stream: a partial resynchronisation can be asked for.
     * */
    bool can_continue;
    bool reconnects; /* LINK_CONNECT: the log has a line about it */
    bool halted;     /* no further attempts until linkStart() or linkRestart(): they would fail */
    bool failover;   /* the next PSYNC asks the primary to take over from us */
    bool forces;     /* ... although its data are known to differ from ours */
    bool unanswered; /* such a PSYNC was sent, and the connection lost before its answer */
    bool sync_only;  /* the stream came by SYNC: no offsets are known, nothing is acknowledged */
    linkTransfer dataset;
    str received; /* an incomplete line */
    linkSecond second;
    int second_replies;  /* SECOND_REPLIES: still to come */
    str second_received; /* an incomplete line */
    /* Dual channel, from SECOND_ANNOUNCED on, the first connection: LINK_CLIENT_ID and
     * LINK_SECOND_PSYNC while it is asked for the stream, LINK_CONNECTED when that is collected.
     * Else LINK_NONE. */
    linkState main;
    int64_t since_ms; /* when the state was entered */
    int64_t heard_ms; /* last byte from the primary */
    int64_t retry_ms; /* LINK_CONNECT: when to connect */
    int64_t acked_ms; /* last REPLCONF ACK */
    bool holds_acks;  /* only what precedes held_from is acknowledged: linkHoldAcks() */
    int64_t held_from;
    int64_t primary_end; /* of its stream when it continued; 0: not told, or there is a dataset */
    /* The last byte from the primary before the link was lost; -1: it was never up. */
    int64_t down_ms;
    int failures; /* full synchronisations that failed in a row, without those that were cut */
    int cuts;     /* full synchronisations in a row whose connection was lost */
    /* Told in the handshake of this connection. */
    bool knows_birth, keeps_data;
    bool told_lz4, told_zstd;              /* the stream may be compressed so */
    replBirth primary_birth;               /* set if knows_birth */
    char primary_process[REPL_ID_LEN + 1]; /* set if knows_birth, else empty */
    /* The primary has discarded its data by order when it was shut down (birth.h). True until its
     * stream is followed again, or another primary. */
    bool is_discarded;
    /* The primary has lost the data that are here: it is asked again later and later, as it may be
     * restored. */
    bool refuses;
    int refusals;
    int64_t refusal_told_ms;
    char refused_birth[REPL_ID_LEN + 1]; /* empty: it was not told */
} replLink;

/* The state for ROLE: that of the connection that gets the stream. */
static inline linkState linkShownState(const replLink *link) {
    return link->main && link->main != LINK_CONNECTED ? link->main : link->state;
}

/* `history` is shared with the caller. */
void linkInit(replLink *link, replHistory *history, const linkEnv *env, void *arg);
void linkClear(replLink *link);

/* Begins to follow the primary of the settings, ending the link to another one. */
void linkStart(replLink *link, int64_t now_ms);
/* Ends: not a replica any more. */
void linkStop(replLink *link);
/* Closes the connection and connects again at once. `continues`: with a partial resynchronisation,
 * if possible. */
void linkRestart(replLink *link, bool continues, int64_t now_ms);
/* When the connection is lost or the transfer has failed next, it is not tried again: this server
 * has too few databases for the primary, or a command of the stream has failed. `keeps_position`:
 * the dataset remains that of its position. */
void linkHalt(replLink *link, bool keeps_position);
/* Whether the dataset is at history->offset of a stream. */
void linkSetContinuable(replLink *link, bool yes);

/* What has happened to the connection. */
void linkOpened(replLink *link, int64_t now_ms);
void linkFailed(replLink *link, const char *why, int64_t now_ms);
/* Up to LINK_ANNOUNCED; in a dual-channel synchronisation until the stream is collected. */
void linkReceived(replLink *link, slice bytes, int64_t now_ms);
/* Bytes were received by the transfer or the stream. */
void linkHeard(replLink *link, int64_t now_ms);
/* The primary has closed it, or it has failed, in any state; `why` NULL: closed. */
void linkLost(replLink *link, const char *why, int64_t now_ms);
/* The same for the second connection: up to SECOND_ANNOUNCED. */
void linkSecondOpened(replLink *link, int64_t now_ms);
void linkSecondReceived(replLink *link, slice bytes, int64_t now_ms);
void linkSecondLost(replLink *link, const char *why, int64_t now_ms);
/* The dataset was loaded (`received`: the bytes after it), or not. `replaced`: the old dataset is
 * gone either way. */
void linkDatasetGone(replLink *link);
void linkTransferEnded(replLink *link, linkResult result, slice received, int64_t now_ms);

/* Called for REPLCONF GETACK `value` in the stream. Has an effect only if the value means that the
 * primary of this stream discards its data (birth.h). */
void linkNoteGetack(replLink *link, slice value);

/* Time passes: at least ten times a second. */
void linkTick(replLink *link, int64_t now_ms);
/* On, unless it is: nothing beyond the offset is acknowledged from now on. */
void linkHoldAcks(replLink *link, bool on, int64_t from);
/* Sends REPLCONF ACK for this offset. */
void linkAcknowledge(replLink *link, int64_t offset, int64_t now_ms);

#endif

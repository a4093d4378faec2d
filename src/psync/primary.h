/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The primary's side of replication as a state machine: its stream, the replicas as it sees them,
 * full synchronisations. It knows no sockets, clocks or processes: events come in as calls, and it
 * acts through a table of functions (primaryEnv). Everything is in the instance, so that a
 * simulation can have several. One thread at a time.
 *
 * States of a replica (column 2 is `state` in INFO):
 *
 *   PEER_NONE             -            has sent REPLCONF at most; not in the list of replicas
 *   PEER_WAITING_START    wait_bgsave  for a child to be forked for it
 *   PEER_WAITING_END      wait_bgsave  for the child to end
 *   PEER_SENDING_FILE     send_bulk    the file is being sent
 *   PEER_MAIN_CHANNEL     bg_transfer  gets the stream while another connection of it gets the
 *   dataset
 *   PEER_TRANSMITTED      rdb_transmitted  wanted nothing but the dataset, and has it
 *   PEER_ONLINE           online       has, or is loading, the dataset
 *
 *   event                        from             to                 action
 *   PSYNC that can continue      NONE             ONLINE             +CONTINUE, then the stream
 *     for a main channel         NONE             MAIN_CHANNEL       the same
 *   PSYNC, SYNC otherwise        NONE             WAITING_START
 *     a file is being saved      NONE             WAITING_END        +FULLRESYNC with the offset of
 *     that save
 *   child forked                 WAITING_START    WAITING_END        +FULLRESYNC (or $ENDOFF)
 *   fork failed                  WAITING_START    -                  closed
 *   file saved                   WAITING_END      SENDING_FILE
 *   file sent                    SENDING_FILE     ONLINE             the stream
 *   all sent through the pipe    WAITING_END      ONLINE             the stream begins with the
 *   first REPLCONF ACK
 *     dataset alone was wanted   WAITING_END      TRANSMITTED        closed
 *   child failed                 WAITING_END      -                  closed
 *   REPLCONF ACK                 MAIN_CHANNEL     ONLINE
 *     of what does not exist     any              -                  closed
 *   lost, timed out, over limit  any              -                  removed */
#ifndef PSYNC_PRIMARY_H
#define PSYNC_PRIMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "ds/list.h"
#include "psync/backlog.h"
#include "psync/history.h"
#include "psync/peer.h"
#include "psync/stream_state.h"

typedef struct replPrimary replPrimary;

/* Kinds of full synchronisation; what one child writes. */
typedef struct primarySave {
    bool to_file;
    bool dual_channel;
    int rdb_version;
    uint32_t filter;
    bool no_checksum;
    bool released_types; /* without TTLs of members */
    peerCodec codec;     /* of the whole */
} primarySave;

/* What the state machine asks of its surroundings. None of them may call back into it, except where
 * noted. */
typedef struct primaryEnv {
    void (*send)(replPeer *to, slice bytes); /* copies */
    void (*send_shared)(replPeer *to, blob *bytes, size_t at, size_t len);
    size_t (*pending)(const replPeer *to); /* bytes not yet sent */
    /* For a peer with a codec: adds bytes to its compressed stream, and sends what is needed to
     * read all of them. */
    void (*pack)(replPeer *to, slice bytes);
    void (*send_packed)(replPeer *to);
    /* Closes the connection; primaryForget() is called later. */
    void (*close)(replPeer *peer);
    /* The same after what is pending was sent. */
    void (*close_when_sent)(replPeer *peer);
    /* Appends "host:port" for the log. */
    void (*name)(const replPeer *peer, str *out);
    uint64_t (*id)(const replPeer *peer);
    /* Called before it: what is propagated from now on is not to be in the dataset that is saved.
     * NULL: of no interest. */
    void (*before_save)(replPrimary *p);
    /* Starts a child that saves for the replicas in PEER_WAITING_END; it ends with
     * primarySaveEnded(). */
    status (*start_save)(replPrimary *p, const primarySave *save, reason *why);
    void (*stop_save)(replPrimary *p);
    /* True if a complete file is of use even if no replica wants it any more. NULL: never. */
    bool (*keeps_file)(replPrimary *p);
    /* True if a child of any kind exists. */
    bool (*is_busy)(replPrimary *p);
    /* Begins to send the saved file; primaryFileSent() follows. */
    status (*send_file)(replPeer *to, reason *why);
    /* The replica is online, or is so no more. NULL: of no interest. */
    void (*online_changed)(replPeer *peer, bool online);
    /* The number of online replicas, or their acknowledgements, have changed. */
    void (*changed)(replPrimary *p);
    /* The backlog was created (the stream has to be fed from now on) or freed. */
    void (*backlog_changed)(replPrimary *p);
    /* The database selected in the stream of this server, a replica; -1: unknown. */
    int (*stream_db)(const replPrimary *p);
    /* Whether a link to this replica is encrypted: only then checksums may be omitted. */
    bool (*is_secure)(const replPeer *peer);
} primaryEnv;

/* Directives. */
typedef struct primarySettings {
    bool diskless, dual_channel;
    int diskless_delay_s, diskless_max_replicas, ping_period_s, timeout_s;
    int64_t backlog_limit, backlog_ttl_s;
    int dataset_grace_s;           /* DEBUG DELAY-RDB-CLIENT-FREE-SECONDS */
    bool turn_acks;                /* replicas that can acknowledge at the end of each turn */
    bool member_ttls, path_hashes; /* the dataset may have values that not all replicas know */
    bool redis_peers;     /* a replica that tells no version is taken for Redis 7.4 or later */
    peerCodec codec;      /* the strongest one to be used (repl-compression) */
    peerCodec file_codec; /* of saved files */
    bool lacks_lz4;       /* this build does */
} primarySettings;

struct replPrimary {
    const primaryEnv *env;
    void *owner;              /* of the environment */
    primarySettings settings; /* changed by the owner; then primaryApplySettings() */
    /* Shared with the replica's side; its first byte after history.offset is the backlog's next. */
    replServer *stream;
    bool is_replica, link_is_up; /* the role: primarySetRole() */
    bool is_failing_over;
    bool starts_soon; /* primaryStartSoon() is to be called */
    bool is_paused;   /* for a failover nothing is added to the stream: no PING, no GETACK */
    list peers;
    int stream_db;  /* database selected last in the stream; -1: unknown, SELECT comes first */
    bool is_saving; /* a child saves for replicas */
    primarySave save;
    uint32_t save_capabilities;  /* of the replica that the file is saved for */
    int64_t without_replicas_ms; /* since when; 0: there are some, or no backlog */
    int64_t pinged_ms;
    bool wants_acks; /* a GETACK is to be added in this turn */
    bool asks_twice; /* two of them, also while it is paused: primaryAskTwice() */
    /* The last requests for acknowledgements, without data; the end of the last two together. */
    int64_t asks_begin, asks_end, asked_twice_end;
    /* The stream has to tell replicas how often they acknowledge; they know it is each turn. */
    bool tells_ack_mode, told_turn_acks;
    uint64_t full_syncs, partial_syncs, refused_partial_syncs;
};

/* `stream` is borrowed and initialised. */
void primaryInit(replPrimary *p, const primaryEnv *env, replServer *stream, void *owner);
/* No peers may be left. */
void primaryClear(replPrimary *p);
/* Applies changes of `settings` (the size of the backlog). */
void primaryApplySettings(replPrimary *p);
/* A server that is a replica has the stream of its primary: it accepts replicas of its own while
 * the link is up, and adds nothing to the stream. */
void primarySetRole(replPrimary *p, bool is_replica, bool link_is_up);

/* ------------------------------------------------------------------ the stream */

/* A new id and an empty backlog, unless there is one: for the first replica. */
void primaryOpenBacklog(replPrimary *p);
void primaryFreeBacklog(replPrimary *p);
/* The same for a primary whose stream is to exist without replicas. */
void primaryOpenStream(replPrimary *p);
/* Adds a PING now. False: nothing may be added. */
bool primaryPing(replPrimary *p);
/* A reader that is no replica reads the stream: makes a backlog, if none, and restarts its TTL. */
void primaryNoteReader(replPrimary *p);
/* Appends bytes to the stream: encoded requests of this primary, or what a replica has applied. */
void primaryAppend(replPrimary *p, const slice *spans, int count);
/* Adds SELECT if the stream is in another database; db_id -1: any. */
void primarySelect(replPrimary *p, int db_id);
/* Hands new bytes to the replicas; once per turn. */
void primaryFeed(replPrimary *p);
/* Adds REPLCONF GETACK in primaryFeed(). No effect without replicas. */
void primaryWantAcks(replPrimary *p);
/* Adds two requests for acknowledgements in primaryFeed(), also while it is paused. Valkey's
 * replicas reply with the offset before each: who replies to the second one has read both. */
void primaryAskTwice(replPrimary *p);
/* Tells the replicas that this process is shut down by order and saves nothing (birth.h). */
void primaryTellDiscard(replPrimary *p);
/* True if the online replica has applied the whole stream. */
bool primaryHasRead(const replPrimary *p, const replPeer *peer);
/* The end of the stream without the requests for acknowledgements at its end: a replica that has
 * acknowledged this offset lacks nothing. */
int64_t primaryDataEnd(const replPrimary *p);
/* The stream continues as another one (the dataset was replaced by that of a primary, or a
 * promotion): the replicas are closed and synchronise again. The backlog, if any, is emptied and
 * begins after history.offset. */
void primaryRestartStream(replPrimary *p);
/* Closes all replicas. */
void primaryDropAll(replPrimary *p);

/* ------------------------------------------------------------------ events of replicas */

void peerInit(replPeer *peer, void *owner);
void peerClear(replPeer *peer);
/* PSYNC: `id` and the number of the next byte that the replica wants. */
void primaryPsync(replPrimary *p, replPeer *peer, slice id, int64_t from, int64_t now_ms);
/* A PSYNC that was refused because its offset is no number. */
void primaryLogWrongOffset(const replPrimary *p, const replPeer *peer);
void primarySync(replPrimary *p, replPeer *peer, int64_t now_ms);
/* REPLCONF ACK; `fsynced` -1: not reported. Offsets after the end of the stream are refused: the
 * connection is closed. */
void primaryAck(replPrimary *p, replPeer *peer, int64_t offset, int64_t fsynced, int64_t now_ms);
/* REPLCONF set-rdb-client-id: false if no such dataset channel waits. */
bool primaryHasDatasetChannel(const replPrimary *p, uint64_t id);
/* Its connection is about to end for this reason (a sentence without its point): the log will say
 * it. The first reason counts. */
void primaryPeerEnds(replPeer *peer, const char *why);
/* The connection was closed. */
void primaryForget(replPrimary *p, replPeer *peer, int64_t now_ms);

/* ------------------------------------------------------------- events of synchronisations, time */

/* The child has ended; everything it wrote was handed to the replicas. */
void primarySaveEnded(replPrimary *p, bool success, int64_t now_ms);
/* The file was sent to a replica in PEER_SENDING_FILE. */
void primaryFileSent(replPrimary *p, replPeer *peer, int64_t now_ms);
/* Starts a waiting synchronisation if it is time and no child exists. */
void primaryStartWaiting(replPrimary *p, int64_t now_ms);
/* After the commands of a turn, if `starts_soon`: begins the synchronisations that they have asked
 * for. */
void primaryStartSoon(replPrimary *p, int64_t now_ms);
/* Once per second: PING, timeouts, waiting synchronisations, the backlog's time to live. */
void primaryTick(replPrimary *p, int64_t now_ms);

/* ------------------------------------------------------------------ state */

const char *peerStateName(peerState state);
/* Number of online replicas that have acknowledged `offset`, or that have it on disk. */
int primaryCountAcked(const replPrimary *p, int64_t offset);
int primaryCountFsynced(const replPrimary *p, int64_t offset);
/* True if what the peer acknowledges counts for a quorum. */
static inline bool peerConfirms(const replPeer *peer) {
    return peer->state == PEER_ONLINE && peer->capabilities & PEER_CAN_ACK_TURNS &&
           !peer->is_former && !peer->is_backup;
}
/* The offset that `count` online replicas of our kind have acknowledged, or have on disk; 0: fewer
 * have acknowledged anything. */
enum { PRIMARY_QUORUM_MAX = 32 };
int64_t primaryQuorumOffset(const replPrimary *p, int count, bool on_disk);
/* Online replicas that were heard of within `lag_s`. */
int primaryCountGood(const replPrimary *p, int lag_s, int64_t now_ms);
/* Memory in bytes that keeps the stream for this replica, and its blocks. */
size_t peerHeld(const replPrimary *p, const replPeer *peer, int64_t *blocks);
static inline replPeer *peerOf(listNode *n) { return LIST_OWNER(n, replPeer, node); }

#endif

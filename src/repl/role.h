/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role of this server, for commands, the cluster and modules: which server it follows, how far
 * it is, and who follows it. Changes are signalled as SERVER_ROLE, SERVER_LINK and SERVER_REPLICA
 * (engine/server_event.h). Main thread only. */
#ifndef REPL_ROLE_H
#define REPL_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "engine/command.h"
#include "engine/session.h"
#include "io/compress.h"

bool replIsReplica(void);
/* "master" or "replica". */
const char *replRole(void);

/* An order: becomes a replica of this server, in cluster mode, too, where REPLICAOF is refused to
 * clients. Blocked clients whose waits only a primary can serve are told so. False: it is that
 * primary's replica already, and nothing was done, unless it has refused it as it was empty
 * (followed.h). */
bool replFollow(slice host, int port);
/* The same without an order: the primary of these data is at this address now. */
void replFollowMoved(slice host, int port);
/* The same with a primary of which the dataset here never was a copy: none of it is kept, and until
 * the dataset of the primary has arrived the offset is 0. */
void replFollowStranger(slice host, int port);
/* Before the dataset is loaded at the start of a primary: this server is a replica, as the one of
 * replicaof. The position in the stream that the file names is continued, and expired keys stay
 * until the primary deletes them. */
void replFollowAtStart(slice host, int port);
/* Becomes a primary; no effect on one. If the dataset is complete, replicas of the old primary can
 * continue with this server. */
void replPromote(void);

/* True if a promotion by order of a user has to be refused: the primary is connected, or the link
 * was stopped, and the data of this replica are known to differ from the primary's. Appends the
 * reason. Elections do not call this. */
bool replRefusesPromotion(str *why);

/* ------------------------------------------------------------------ the stream */

/* Number of the last byte: sent by a primary, applied by a replica; 0: a replica without a complete
 * dataset. */
int64_t replOffset(void);
/* The stream's id, and the one that it had up to before replSecondOffset(): 40 characters; offset
 * -1: none. */
const char *replId(void);
/* A number for that id. Two streams have the same one only by chance, for which there is none. */
uint64_t replStreamNumber(void);
const char *replSecondId(void);
int64_t replSecondOffset(void);
/* A primary passes on bytes of a stream that it applies (stream.h) to its replicas, unchanged:
 * `db_id` is what the stream had selected before them, -1 if they continue those of the last call,
 * `db_after` what it selects now. */
void replForward(int db_id, const slice *spans, int count, int db_after);
/* After the last change that a session's commands have added to the stream; 0: none. */
int64_t replOffsetOf(const session *s);
/* Asks the replicas of this server to acknowledge what they have, in this turn. */
void replWantAcks(void);
/* How this server logs in at another one: primaryuser, primaryauth; both empty: not. Borrowed until
 * the configuration changes. */
void replCredentials(slice *user_name, slice *password);
/* The strongest codec that repl-compression allows. */
compressCodec replCodec(void);
/* repl-timeout in ms. */
int64_t replTimeoutMs(void);
/* repl-ping-replica-period in ms. */
int64_t replPingMs(void);
/* True if the stream up to `offset` is confirmed as replication-quorum asks, or it is off. */
bool replIsConfirmed(int64_t offset);
/* True if this server is a primary with replication-quorum. */
bool replQuorumIsOn(void);
/* The end of the last change in the stream of such a primary; 0: it is none. */
int64_t replLastChange(void);
int64_t replQuorumTimeoutMs(void);
size_t replQuorumOutputLimit(void);
/* replication-quorum; replication-read-lease in ms. */
int replQuorumSize(void);
int64_t replReadLeaseMs(void);
/* True for a primary, and for a replica that since its start, and since it follows its present
 * primary, has had everything that this had when they were linked: its offset is one of that
 * stream, and not before anything that it has acknowledged, also before its start. */
bool replHasCaughtUp(void);
/* True for a primary that was started without data that its replicas have confirmed
 * (replication-quorum), until another one is promoted: it must not be taken to work. */
bool replIsBehind(void);
/* How long ago a replica has told this primary that it keeps data which are not here, as this
 * server was started without them (birth.h); -1: none has. */
int64_t replLostDataMs(void);
/* On: this replica acknowledges nothing more to its primary than what it has now, until it follows
 * another one; as a primary it confirms nothing more (replication-quorum). Or off. */
void replHoldAcks(bool on);
/* While held a primary adds nothing of its own (PING, GETACK): with writes paused (engine/pause.h)
 * the offset stands still until all replicas have reached it. */
void replHoldStream(bool held);

/* The dataset of a primary is replaced by another one: its replicas are disconnected, and
 * synchronise completely. */
void replRestartStream(void);

/* ------------------------------------------------------------------ the link to the primary */

typedef enum replLinkPhase {
    REPL_LINK_NONE,       /* this server is a primary */
    REPL_LINK_CONNECTING, /* or waiting to, or in the handshake */
    REPL_LINK_SYNCING,    /* the whole dataset is being received or loaded */
    REPL_LINK_UP,
} replLinkPhase;

typedef struct replLinkInfo {
    slice host; /* of the primary; borrowed until the role changes */
    int port;
    replLinkPhase phase;
    const char *state; /* as in ROLE */
    int64_t silent_ms; /* up: since something was received from the primary */
    int64_t down_ms;   /* not up: since when; -1: it never was */
} replLinkInfo;
void replLinkRead(replLinkInfo *out);
/* Age of the dataset: how long the primary may have had changes that are not here. -1: unknown,
 * because the link has never been up; 0 for a primary. */
int64_t replLinkAgeMs(void);

/* ------------------------------------------------------------------ replicas of this server */

typedef struct replPeerInfo {
    session *who;
    slice ip;     /* announced by it, or of its connection */
    int64_t port; /* announced; 0: not */
    bool online;
    const char *state; /* as in INFO */
    int64_t offset;    /* acknowledged */
    bool has_all;      /* it is online, and lacks no data */
    int64_t silent_ms; /* since something was received from it */
    slice node_id;     /* of a cluster; empty: not told */
    int version;       /* 0x090102 for 9.1.2; 0: not told */
} replPeerInfo;
/* False ends the walk. It must not change the role or close a session. */
typedef bool replPeerProc(const replPeerInfo *peer, void *arg);
void replPeersEach(replPeerProc *proc, void *arg);

/* What ROLE replies in a process without replication. NULL: there is replication. */
void replSetRoleReply(void (*proc)(ctx *c));

/* ------------------------------------------------------------ what replication asks the cluster */

typedef struct replCluster {
    slice (*own_id)(void); /* told to the primary; empty: not in cluster mode */
    bool (*knows)(slice node_id);
    slice (*primary_id)(void); /* empty: this node is none of a cluster, or no replica */
} replCluster;
/* Set by the cluster's init. Without it replication knows no nodes. */
void replSetCluster(const replCluster *cluster);

#endif

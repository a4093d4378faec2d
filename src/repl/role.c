/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role of this server (role.h), for the other folders: combines what the primary's side and the
 * replica's side know. Its only state are the functions that the cluster has registered. */
#include "repl/role.h"

#include "base/base.h"
#include "base/hash.h"
#include "engine/hot.h"
#include "psync/primary_peer.h"
#include "repl/divergence.h"
#include "repl/followed.h"
#include "repl/quorum_server.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/role_priv.h"

static const replCluster *cluster;

void replSetCluster(const replCluster *procs) { cluster = procs; }

slice roleOwnNode(void) { return cluster ? cluster->own_id() : SLICE(""); }

void roleAppendPrimary(str *out) {
    slice node = cluster ? cluster->primary_id() : SLICE("");
    if (node.len) {
        strAppendSlice(out, node);
    } else {
        strAppendFormat(out, "%s:%d", strText(&replConf.primary_host), replConf.primary_port);
    }
}

bool roleKnowsNode(slice id) { return cluster && cluster->knows(id); }

bool replIsReplica(void) { return replicaIsOn(); }

const char *replRole(void) { return replicaIsOn() ? "replica" : "master"; }

static bool isFollowed(slice host, int port) {
    return replicaIsOn() && sliceEqualFold(host, strSlice(&replConf.primary_host)) &&
           port == replConf.primary_port;
}

bool replFollow(slice host, int port) {
    bool same = isFollowed(host, port);
    bool differs = divergenceIsKnown();
    if (same && !replicaRefusesPrimary() && !differs) return false;
    followedForget();
    replicaFollow(host, port, !(same && differs));
    return true;
}

void replFollowMoved(slice host, int port) {
    if (!isFollowed(host, port)) replicaFollow(host, port, true);
}

void replFollowStranger(slice host, int port) {
    followedForget();
    replicaFollow(host, port, false);
}

void replFollowAtStart(slice host, int port) { replicaFollowAtStart(host, port); }

void replPromote(void) { replicaPromote(); }

bool replRefusesPromotion(str *why) {
    hotCheck(threadIsMain());
    if (!divergenceIsKnown() || !(replicaIsConnected() || divergenceStops())) return false;
    divergenceAppendReason(why);
    return true;
}

/* ------------------------------------------------------------------ the stream */

int64_t replOffset(void) {
    if (replicaIsOn() && !replicaIsConnected() && !replicaLink()->can_continue) return 0;
    return replThis()->history.offset;
}

int64_t replOffsetOf(const session *s) { return replicasOffsetOf(s); }

void replWantAcks(void) { primaryWantAcks(replicasThis()); }
void replCredentials(slice *user_name, slice *password) {
    *user_name = strSlice(&replConf.primaryuser);
    *password = strSlice(&replConf.primaryauth);
}

int64_t replTimeoutMs(void) { return (int64_t)replConf.repl_timeout * 1000; }

int64_t replPingMs(void) { return (int64_t)replConf.repl_ping_replica_period * 1000; }

const char *replId(void) { return replThis()->history.id; }

uint64_t replStreamNumber(void) {
    static const uint8_t key[16] = "id of a stream"; /* the same on all servers */
    return hashSip13(replId(), REPL_ID_LEN, key);
}

const char *replSecondId(void) { return replThis()->history.id2; }
int64_t replSecondOffset(void) { return replThis()->history.second_offset; }

void replForward(int db_id, const slice *spans, int count, int db_after) {
    replPrimary *p = replicasThis();
    check(!p->is_replica);
    if (!p->stream->has_backlog) return;
    primarySelect(p, db_id);
    primaryAppend(p, spans, count);
    p->stream_db = db_after;
    quorumNoteForwarded();
}

bool replIsConfirmed(int64_t offset) { return quorumHas(offset); }
bool replQuorumIsOn(void) { return quorumIsBusy(); }
int64_t replLastChange(void) { return quorumLastChange(); }
int64_t replQuorumTimeoutMs(void) { return replConf.replication_quorum_timeout; }
size_t replQuorumOutputLimit(void) { return (size_t)replConf.replication_quorum_output_limit; }
int replQuorumSize(void) { return replConf.replication_quorum; }
int64_t replReadLeaseMs(void) { return replConf.replication_read_lease; }
bool replHasCaughtUp(void) { return !replicaIsOn() || replicaHasCaughtUp(); }
int64_t replLostDataMs(void) { return lostDataMs(); }
bool replIsBehind(void) { return quorumIsBehind(); }
void replHoldAcks(bool on) {
    replicaHoldAcks(on);
    quorumServerHold(on);
}

void replHoldStream(bool held) { replicasThis()->is_paused = held; }

/* ------------------------------------------------------------------ the link */

static replLinkPhase phaseOf(const replLink *link) {
    if (link->state == LINK_NONE) return REPL_LINK_NONE;
    if (link->state == LINK_CONNECTED) return REPL_LINK_UP;
    return link->state >= LINK_ANNOUNCED ? REPL_LINK_SYNCING : REPL_LINK_CONNECTING;
}

static int64_t since(int64_t ms) {
    int64_t passed_ms = clockMonoMs() - ms;
    return passed_ms > 0 ? passed_ms : 0;
}

void replLinkRead(replLinkInfo *out) {
    hotCheck(threadIsMain());
    const replLink *link = replicaLink();
    *out = (replLinkInfo){.host = strSlice(&replConf.primary_host),
                          .port = replConf.primary_port,
                          .phase = phaseOf(link),
                          .state = linkStateName(linkShownState(link))};
    if (out->phase == REPL_LINK_UP) {
        out->silent_ms = since(link->heard_ms);
    } else if (out->phase != REPL_LINK_NONE) {
        out->down_ms = link->down_ms < 0 ? -1 : since(link->down_ms);
    }
}

int64_t replLinkAgeMs(void) {
    if (replicaRefusesPrimary()) return 0; /* there are none that are newer */
    replLinkInfo link;
    replLinkRead(&link);
    return link.phase == REPL_LINK_UP ? link.silent_ms : link.down_ms;
}

/* ------------------------------------------------------------------ replicas */

static void describe(const replPeer *peer, replPeerInfo *out) {
    bool online = peer->state == PEER_ONLINE;
    int64_t silent_ms = engineHot.now_ms - peer->heard_ms;
    *out = (replPeerInfo){.who = replicasConn(peer)->who,
                          .ip = replicasIp(peer),
                          .port = peer->port,
                          .online = online,
                          .state = peerStateName(peer->state),
                          .offset = peer->acked,
                          .has_all = online && peer->acked >= primaryDataEnd(replicasThis()),
                          .silent_ms = silent_ms > 0 ? silent_ms : 0,
                          .node_id = strSlice(&peer->node_id),
                          .version = peer->server_version};
}

void replPeersEach(replPeerProc *proc, void *arg) {
    hotCheck(threadIsMain());
    const replPrimary *p = replicasThis();
    replPeerInfo info;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (!peerIsReplica(peerOf(n))) continue;
        describe(peerOf(n), &info);
        if (!proc(&info, arg)) return;
    }
}

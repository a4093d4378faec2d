/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Full synchronisations (primary.h): for which replicas one child saves, and what happens when the
 * child ends.
 *
 * Invariant: while `is_saving` is set, the peers in PEER_WAITING_END are those that the child saves
 * for, and each has an open position at the offset of the fork. */
#include <stdio.h>

#include "base/base.h"
#include "format/rdb_format.h"
#include "psync/primary_priv.h"

enum { VERSION_WITH_RDB_80 = 0x090000, VERSION_WITH_RDB_81 = 0x090200 };

/* True if the replica is taken for a Redis. A Redis does not send its version; only from 8.0 on it
 * can be recognised. */
static bool isRedis(const replPrimary *p, const replPeer *peer) {
    if (peer->server_version) return false;
    return p->settings.redis_peers || peer->capabilities & PEER_IS_REDIS_8;
}

/* The version that the dataset needs. */
static int newestVersion(const replPrimary *p) {
    return p->settings.path_hashes ? RDB_VERSION_VALKEY_92 : RDB_VERSION;
}

/* Older servers read the last version that all of them know. What it has no type for cannot be
 * saved for them. */
static int rdbVersionFor(const replPrimary *p, const replPeer *peer) {
    if (isRedis(p, peer)) return RDB_VERSION_REDIS_TIMES;
    if (peer->server_version < VERSION_WITH_RDB_80) return RDB_VERSION_REDIS_MAX;
    bool knows_all =
        peer->server_version >= VERSION_WITH_RDB_81 || peer->capabilities & PEER_KNOWS_PATH_HASHES;
    return knows_all ? newestVersion(p) : RDB_VERSION;
}

/* True if it gets members without their TTLs, if any has one. */
static bool needsReleasedTypes(const replPrimary *p, const replPeer *peer) {
    return p->settings.member_ttls && !(peer->capabilities & PEER_KNOWS_MEMBER_TTLS);
}

peerCodec primaryCodecFor(const replPrimary *p, const replPeer *peer) {
    hotCheck(p->settings.codec <= PEER_ZSTD);
    if (p->settings.codec == PEER_ZSTD && peer->capabilities & PEER_CAN_ZSTD) return PEER_ZSTD;
    bool lz4 = p->settings.codec != PEER_PLAIN && !p->settings.lacks_lz4;
    return lz4 && peer->capabilities & PEER_CAN_LZ4 ? PEER_LZ4 : PEER_PLAIN;
}

/* True if one child can save for both. */
static bool wantsSame(const replPrimary *p, const replPeer *a, const replPeer *b) {
    return a->filter == b->filter && a->is_dataset_channel == b->is_dataset_channel &&
           rdbVersionFor(p, a) == rdbVersionFor(p, b) && a->codec == b->codec &&
           needsReleasedTypes(p, a) == needsReleasedTypes(p, b);
}

static void __attribute__((format(printf, 3, 0)))
logFor(const replPrimary *p, const replPeer *peer, const char *format) {
    str name = STR_EMPTY;
    (void)primaryPeerName(p, peer, &name);
    logNotice(format, strText(&name));
    strFree(&name);
}

/* -------------------------------------------------------------- a peer that the child saves for */

static void beginDualChannel(replPrimary *p, replPeer *peer) {
    hotCheck(peer->state != PEER_ONLINE);
    char line[REPL_ID_LEN + 96];
    unsigned long long id = (unsigned long long)p->env->id(peer);
    str name = STR_EMPTY;
    (void)primaryPeerName(p, peer, &name);
    logNotice("Dual channel replication: Sending to replica %s RDB end offset %lld and client-id "
              "%llu",
              strText(&name), (long long)peer->sync_offset, id);
    peer->waits_for_stream = backlogLength(&p->stream->backlog) == 0;
    logDebug("Dual channel replication: Add rdb replica %s to waiting psync, with cid %llu, %s",
             strText(&name), id,
             peer->waits_for_stream ? "no repl-backlog to track " : "tracking repl-backlog tail");
    strFree(&name);
    /* The stream of a primary continues with SELECT; a replica passes on what it has got. */
    int db = p->is_replica ? p->env->stream_db(p) : 0;
    int len = snprintf(line, sizeof(line), "$ENDOFF:%lld %s %d %llu\r\n",
                       (long long)peer->sync_offset, p->stream->history.id, db, id);
    peer->waits_for_main = true;
    p->env->send(peer, sliceMake(line, (size_t)len));
}

/* The child saves for this peer, at `offset` of the stream. */
static void beginTransfer(replPrimary *p, replPeer *peer, int64_t offset, int64_t now_ms) {
    hotCheck(peer->state == PEER_WAITING_START || peer->state == PEER_WAITING_END);
    hotCheck(p->stream->has_backlog);
    hotCheck(offset <= p->stream->history.offset);
    peer->state = PEER_WAITING_END;
    peer->sync_offset = offset;
    peer->acked_dataset = false;
    peer->heard_ms = now_ms;
    backlogOpen(&p->stream->backlog, &peer->at, offset + 1);
    historyShare(&p->stream->history);
    if (peer->is_dataset_channel) {
        beginDualChannel(p, peer);
    } else if (!peer->is_sync) {
        char line[REPL_ID_LEN + 64];
        int len = snprintf(line, sizeof(line), "+FULLRESYNC %s %lld\r\n", p->stream->history.id,
                           (long long)offset);
        p->env->send(peer, sliceMake(line, (size_t)len));
    }
}

/* A peer that the running child saves a file for, and whose result suits `peer`; NULL if there is
 * none. */
static replPeer *findSharedSave(const replPrimary *p, const replPeer *peer) {
    hotCheck(p->is_saving);
    if (p->save_capabilities & ~peer->capabilities) return NULL;
    if (needsReleasedTypes(p, peer) != p->save.released_types) return NULL;
    if (p->save.codec != peer->codec) return NULL;
    bool same_version = rdbVersionFor(p, peer) == p->save.rdb_version;
    if (p->save.rdb_version != RDB_VERSION_REDIS_MAX &&
        (peer->server_version || isRedis(p, peer)) && !same_version)
        return NULL;
    /* Other servers know neither the version of a Redis nor its types. */
    if (p->save.rdb_version == RDB_VERSION_REDIS_TIMES && !same_version) return NULL;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *other = peerOf(n);
        bool saves = other->state == PEER_WAITING_END && other->filter == peer->filter;
        if (saves && !peer->is_dataset_channel) return other;
    }
    return NULL;
}

/* ------------------------------------------------------------------ starting a child */

/* A child to be started: for the replica that waits first, and all that want the same. */
typedef struct savePlan {
    const replPeer *first;
    int count;
    int64_t oldest_ms;
    uint32_t capabilities; /* that all of them have */
    primarySave save;
} savePlan;

static bool takesPart(const replPrimary *p, const savePlan *plan, const replPeer *peer) {
    return peer->state == PEER_WAITING_START && wantsSame(p, plan->first, peer);
}

/* False if no replica waits. */
static bool planSave(const replPrimary *p, savePlan *plan) {
    bool may_skip_checksum = true;
    *plan = (savePlan){.capabilities = UINT32_MAX, .oldest_ms = INT64_MAX};
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (!plan->first && peer->state == PEER_WAITING_START) plan->first = peer;
        if (!plan->first || !takesPart(p, plan, peer)) continue;
        plan->capabilities &= peer->capabilities;
        may_skip_checksum &= p->env->is_secure(peer);
        if (peer->waiting_since_ms < plan->oldest_ms) plan->oldest_ms = peer->waiting_since_ms;
        plan->count++;
    }
    if (!plan->first) return false;
    int version = rdbVersionFor(p, plan->first);
    bool released = needsReleasedTypes(p, plan->first);
    bool needs_pipe = p->settings.diskless || plan->first->filter ||
                      plan->first->is_dataset_channel || version != newestVersion(p) || released ||
                      plan->first->codec != p->settings.file_codec;
    primarySave *save = &plan->save;
    save->dual_channel = plan->first->is_dataset_channel;
    save->filter = plan->first->filter;
    save->to_file = !needs_pipe || !(plan->capabilities & PEER_CAN_READ_TO_MARK);
    save->rdb_version = save->to_file ? newestVersion(p) : version;
    save->released_types = !save->to_file && released;
    /* A file for a replica that needs one, and may not know its codec, is not compressed. */
    bool suits = !save->to_file || plan->first->codec == p->settings.file_codec;
    save->codec = suits ? plan->first->codec : PEER_PLAIN;
    save->no_checksum =
        !save->to_file && may_skip_checksum && plan->capabilities & PEER_CAN_SKIP_CHECKSUM;
    return true;
}

static void beginTransfers(replPrimary *p, const savePlan *plan, int64_t now_ms) {
    hotCheck(p->stream->has_backlog);
    int64_t offset = p->stream->history.offset;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        if (takesPart(p, plan, peerOf(n))) beginTransfer(p, peerOf(n), offset, now_ms);
}

/* There is no child. `begun`: beginTransfers() was called. */
static void giveUp(replPrimary *p, const savePlan *plan, bool begun) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (!takesPart(p, plan, peer) && !(begun && peer->state == PEER_WAITING_END)) continue;
        peer->state = PEER_TRANSMITTED; /* not to be tried again */
        p->env->close(peer);
    }
}

static void startSave(replPrimary *p, const savePlan *plan, int64_t now_ms) {
    hotCheck(!p->is_saving);
    logNotice("Starting BGSAVE for SYNC with target: %s using: %s%s",
              plan->save.to_file ? "disk" : "replicas sockets",
              plan->save.dual_channel ? "dual-channel" : "normal sync",
              plan->save.no_checksum ? " while skipping RDB checksum for this transfer" : "");
    if (plan->save.codec != PEER_PLAIN)
        logNotice("%s full sync with compression: %s",
                  plan->save.to_file ? "Disk-based" : "Diskless",
                  plan->save.codec == PEER_LZ4 ? "lz4" : "zstd");
    reason why;
    const replPeer first = *plan->first; /* its state changes */
    savePlan group = *plan;
    group.first = &first;
    /* On a dataset channel the child may write to the connection itself, so what precedes the
     * dataset is sent before. */
    bool before = plan->save.dual_channel;
    if (p->env->before_save) p->env->before_save(p);
    if (before) beginTransfers(p, &group, now_ms);
    status st = p->env->start_save(p, &plan->save, &why);
    if (st != OK) {
        logWarning("BGSAVE for replication failed: %s", why.text);
        giveUp(p, &group, before);
        return;
    }
    if (!before) beginTransfers(p, &group, now_ms);
    p->is_saving = true;
    p->save = plan->save;
    p->save_capabilities = plan->capabilities;
    p->stream_db = -1; /* the stream of the new replicas begins with SELECT */
}

void primaryStartWaiting(replPrimary *p, int64_t now_ms) {
    savePlan plan;
    if (!planSave(p, &plan) || p->is_saving || p->env->is_busy(p)) return;
    const primarySettings *conf = &p->settings;
    bool enough = conf->diskless_max_replicas > 0 && plan.count >= conf->diskless_max_replicas;
    bool waited = now_ms - plan.oldest_ms >= conf->diskless_delay_s * 1000LL;
    if (!plan.save.to_file && conf->diskless && !enough && !waited) return;
    startSave(p, &plan, now_ms);
}

/* Why the synchronisation does not begin at once. */
static void logWaiting(replPrimary *p) {
    if (p->is_saving && p->save.to_file) {
        logNotice("Can't attach the replica to the current BGSAVE. Waiting for next BGSAVE for "
                  "SYNC");
    } else if (p->is_saving) {
        logNotice("Current BGSAVE has socket target. Waiting for next BGSAVE for SYNC");
    } else if (p->env->is_busy(p)) {
        logNotice("No BGSAVE in progress, but another BG operation is active. BGSAVE for "
                  "replication delayed");
    } else {
        logNotice("Delay next BGSAVE for diskless SYNC");
    }
}

void primaryFullSync(replPrimary *p, replPeer *peer, int64_t now_ms) {
    p->full_syncs++;
    if (!p->stream->has_backlog) {
        historyRenew(&p->stream->history);
        primaryOpenBacklog(p);
        logNotice("Replication backlog created, my new replication IDs are '%s' and '%s'",
                  p->stream->history.id, p->stream->history.id2);
    }
    primaryAddPeer(p, peer, PEER_WAITING_START);
    peer->waiting_since_ms = peer->heard_ms = now_ms;
    replPeer *other = p->is_saving && p->save.to_file ? findSharedSave(p, peer) : NULL;
    if (other) {
        logNotice("Waiting for end of BGSAVE for SYNC");
        beginTransfer(p, peer, other->sync_offset, now_ms);
        return;
    }
    if (peer->is_dataset_channel) {
        p->starts_soon = true; /* its connection takes nothing while its command runs */
        return;
    }
    primaryStartWaiting(p, now_ms);
    if (peer->state == PEER_WAITING_START) logWaiting(p);
    hotCheck(p->stream->has_backlog);
}

void primaryStartSoon(replPrimary *p, int64_t now_ms) {
    savePlan plan;
    p->starts_soon = false;
    primaryStartWaiting(p, now_ms);
    if (planSave(p, &plan) && plan.first->is_dataset_channel) logWaiting(p);
}

/* ------------------------------------------------------------------ the end of a child */

void primarySyncSucceeded(const replPrimary *p, const replPeer *peer) {
    logFor(p, peer, "Synchronization with replica %s succeeded");
}

static void closeTransmitted(replPrimary *p, replPeer *peer, int64_t now_ms) {
    peer->state = PEER_TRANSMITTED;
    logFor(p, peer, "RDB transfer completed, rdb only replica (%s) should be disconnected asap");
    if (peer->waits_for_main) {
        peer->close_at_ms = now_ms + p->settings.dataset_grace_s * 1000LL;
    } else {
        p->env->close_when_sent(peer);
    }
    hotCheck(peer->state == PEER_TRANSMITTED);
}

/* Everything was handed to its connection. */
static void endPipeTransfer(replPrimary *p, replPeer *peer, int64_t now_ms) {
    logFor(p, peer,
           "Streamed RDB transfer with replica %s succeeded (socket). Waiting for REPLCONF ACK "
           "from replica to enable streaming");
    if (peer->only_dataset) {
        closeTransmitted(p, peer, now_ms);
        return;
    }
    peer->starts_with_ack = true;
    primarySetOnline(p, peer, now_ms);
    if (peer->acked_dataset) primaryStartAcked(p, peer);
}

static void beginFileTransfer(replPrimary *p, replPeer *peer) {
    hotCheck(peer->state == PEER_WAITING_END);
    reason why;
    peer->state = PEER_SENDING_FILE;
    status st = p->env->send_file(peer, &why);
    if (st == OK) return;
    logWarning("SYNC failed. Can't open/stat DB after BGSAVE: %s", why.text);
    p->env->close(peer);
}

void primarySaveEnded(replPrimary *p, bool success, int64_t now_ms) {
    check(p->is_saving);
    p->is_saving = false;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (peer->state != PEER_WAITING_END) continue;
        if (!success) {
            logWarning("SYNC failed. BGSAVE child returned an error");
            peer->state = PEER_TRANSMITTED;
            p->env->close(peer);
        } else if (p->save.to_file) {
            beginFileTransfer(p, peer);
        } else {
            endPipeTransfer(p, peer, now_ms);
        }
    }
    primaryStartWaiting(p, now_ms);
}

void primaryFileSent(replPrimary *p, replPeer *peer, int64_t now_ms) {
    check(peer->state == PEER_SENDING_FILE);
    if (peer->only_dataset) {
        closeTransmitted(p, peer, now_ms);
        return;
    }
    primarySetOnline(p, peer, now_ms);
    peer->streams = true;
    primarySyncSucceeded(p, peer);
}

void primarySaveLostPeer(replPrimary *p) {
    if (!p->is_saving || (p->save.to_file && p->env->keeps_file && p->env->keeps_file(p))) return;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (peerOf(n)->state == PEER_WAITING_END) return;
    }
    logNotice(p->save.to_file ? "Background saving, persistence disabled, last replica dropped, "
                                "killing fork child."
                              : "Diskless rdb transfer, last replica dropped, killing fork child.");
    p->env->stop_save(p);
}

/* ------------------------------------------------------------------ waiting */

void primaryNoteStream(const replPrimary *p, replPeer *peer) {
    hotCheck(p->stream->has_backlog);
    if (backlogLength(&p->stream->backlog) == 0) return;
    peer->waits_for_stream = false;
    logDebug("Dual channel replication: Attach replica rdb client %llu to repl buf block",
             (unsigned long long)p->env->id(peer));
}

bool primaryHasDatasetChannel(const replPrimary *p, uint64_t id) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (peer->waits_for_main && p->env->id(peer) == id) return true;
    }
    return false;
}

void primaryKeepWaiting(replPrimary *p, replPeer *peer, int64_t now_ms) {
    bool before_file = peer->state == PEER_WAITING_END && p->is_saving && p->save.to_file;
    if (peer->state == PEER_WAITING_START || before_file) p->env->send(peer, SLICE("\n"));
    if (!peer->close_at_ms || now_ms < peer->close_at_ms) return;
    logNotice("Dual channel replication: Replica main channel failed to establish PSYNC within "
              "the grace period (%d seconds). Freeing RDB client %llu.",
              p->settings.dataset_grace_s, (unsigned long long)p->env->id(peer));
    p->env->close(peer);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The primary's side of replication: its stream and its replicas (primary.h). Full synchronisations
 * are in primary_sync.c.
 *
 * Invariants: a peer is in the list if and only if its state is not PEER_NONE. A peer that gets the
 * stream or a dataset has an open position, so the backlog keeps the bytes that it needs.
 * history.offset + 1 is the number of the next byte of the backlog. */
#include "psync/primary.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "psync/primary_peer.h"
#include "psync/primary_priv.h"
#include "resp/resp.h"

/* Bytes handed to a connection ahead of what it has sent. The rest stays in the backlog, which has
 * one copy of it for all replicas. */
enum { FEED_BYTES = 256 * 1024 };

static const slice PING = SLICE("*1\r\n$4\r\nping\r\n");
static const slice GETACK = SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n");
/* At once, and from now on at the end of each turn, or no more. Other replicas acknowledge once. */
static const slice GETACK_TURN = SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$4\r\nTURN\r\n");
static const slice GETACK_TICK = SLICE("*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$4\r\nTICK\r\n");

const char *peerStateName(peerState state) {
    static const char *const names[PEER_STATES] = {
        [PEER_NONE] = "-",
        [PEER_WAITING_START] = "wait_bgsave",
        [PEER_WAITING_END] = "wait_bgsave",
        [PEER_SENDING_FILE] = "send_bulk",
        [PEER_MAIN_CHANNEL] = "bg_transfer",
        [PEER_TRANSMITTED] = "rdb_transmitted",
        [PEER_ONLINE] = "online",
    };
    check(state < PEER_STATES);
    return names[state];
}

/* ------------------------------------------------------------------ the instance */

void primaryInit(replPrimary *p, const primaryEnv *env, replServer *stream, void *owner) {
    *p = (replPrimary){.env = env, .stream = stream, .owner = owner, .stream_db = -1};
    listInit(&p->peers);
}

void primaryClear(replPrimary *p) {
    check(listIsEmpty(&p->peers));
    if (p->stream->has_backlog) backlogClear(&p->stream->backlog);
    p->stream->has_backlog = false;
}

void primaryApplySettings(replPrimary *p) {
    hotCheck(p->settings.backlog_limit > 0);
    if (p->stream->has_backlog)
        backlogSetLimit(&p->stream->backlog, (size_t)p->settings.backlog_limit);
}

void primarySetRole(replPrimary *p, bool is_replica, bool link_is_up) {
    p->is_replica = is_replica;
    p->link_is_up = link_is_up;
    p->env->changed(p);
}

void peerInit(replPeer *peer, void *owner) {
    *peer = (replPeer){.owner = owner, .state = PEER_NONE};
}

void peerClear(replPeer *peer) {
    check(!listHas(&peer->node));
    strFree(&peer->ip);
    strFree(&peer->node_id);
    strFree(&peer->keeps);
}

const char *primaryPeerName(const replPrimary *p, const replPeer *peer, str *name) {
    strClear(name);
    p->env->name(peer, name);
    return strText(name);
}

/* ------------------------------------------------------------------ the stream */

void primaryOpenBacklog(replPrimary *p) {
    if (p->stream->has_backlog) return;
    backlogInit(&p->stream->backlog, p->stream->history.offset + 1,
                (size_t)p->settings.backlog_limit);
    p->stream->has_backlog = true;
    p->stream_db = -1;
    p->env->backlog_changed(p);
    hotCheck(p->stream->has_backlog);
}

void primaryFreeBacklog(replPrimary *p) {
    hotCheck(p->peers.count == 0 || p->is_replica || p->stream->has_backlog);
    if (!p->stream->has_backlog) return;
    backlogClear(&p->stream->backlog);
    p->stream->has_backlog = false;
    p->without_replicas_ms = 0;
    p->env->backlog_changed(p);
    hotCheck(!p->stream->has_backlog);
}

void primaryOpenStream(replPrimary *p) {
    hotCheck(!p->is_replica);
    if (p->stream->has_backlog) return;
    historyRenew(&p->stream->history);
    primaryOpenBacklog(p);
    hotCheck(p->stream->has_backlog);
}

bool primaryPing(replPrimary *p) {
    if (p->is_replica || p->is_paused) return false;
    primaryAppend(p, &PING, 1);
    return true;
}

void primaryNoteReader(replPrimary *p) {
    if (!p->stream->has_backlog && !p->is_replica) {
        primaryOpenStream(p);
        logNotice("Replication backlog created for a reader of changes, my new replication ID is "
                  "'%s'",
                  p->stream->history.id);
    }
    p->without_replicas_ms = 0;
}

void primaryAppend(replPrimary *p, const slice *spans, int count) {
    hotCheck(count >= 0);
    for (int i = 0; i < count; i++) p->stream->history.offset += (int64_t)spans[i].len;
    if (likely(p->stream->has_backlog)) backlogAppend(&p->stream->backlog, spans, count);
}

void primarySelect(replPrimary *p, int db_id) {
    hotCheck(p->stream_db >= -1);
    if (likely(db_id == p->stream_db) || db_id < 0) return;
    char digits[NUMBER_TEXT_MAX], text[64];
    size_t digit_count = numberPrintInt(digits, db_id);
    int len = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", digit_count,
                       (int)digit_count, digits);
    slice span = sliceMake(text, (size_t)len);
    primaryAppend(p, &span, 1);
    p->stream_db = db_id;
}

/* At most FEED_BYTES before they are compressed, so that the turn does not become long. */
static void feedPacked(replPrimary *p, replPeer *peer, size_t pending) {
    hotCheck(peer->codec != PEER_PLAIN);
    size_t room = pending < FEED_BYTES ? FEED_BYTES - pending : 0;
    bool any = false;
    while (room) {
        blob *bytes;
        size_t at;
        size_t n = backlogRead(&p->stream->backlog, &peer->at, room, &bytes, &at);
        if (n == 0) break;
        p->env->pack(peer, sliceMake(bytes->bytes + at, n));
        room -= n;
        any = true;
    }
    if (any) p->env->send_packed(peer);
}

static void feedPeer(replPrimary *p, replPeer *peer) {
    hotCheck(peer->streams);
    hotCheck(p->stream->has_backlog);
    size_t pending = p->env->pending(peer);
    if (unlikely(peer->codec != PEER_PLAIN)) {
        feedPacked(p, peer, pending);
        return;
    }
    while (pending < FEED_BYTES) {
        blob *bytes;
        size_t at;
        size_t n = backlogRead(&p->stream->backlog, &peer->at, FEED_BYTES - pending, &bytes, &at);
        if (n == 0) return;
        p->env->send_shared(peer, bytes, at, n);
        pending += n;
    }
}

static void askForAcks(replPrimary *p, const slice *request) {
    int64_t begin = p->stream->history.offset;
    if (begin != p->asks_end) p->asks_begin = begin;
    primaryAppend(p, request, 1);
    p->asks_end = p->stream->history.offset;
}

int64_t primaryDataEnd(const replPrimary *p) {
    int64_t end = p->stream->history.offset;
    return end == p->asks_end ? p->asks_begin : end;
}

bool primaryHasRead(const replPrimary *p, const replPeer *peer) {
    int64_t end = p->stream->history.offset;
    if (peer->state != PEER_ONLINE) return false;
    return peer->acked == end ||
           (end == p->asked_twice_end && peer->acked >= end - (int64_t)GETACK.len);
}

static void tellAckMode(replPrimary *p) {
    bool turns = p->settings.turn_acks;
    p->tells_ack_mode = false;
    if (p->is_replica || !p->peers.count || (!turns && !p->told_turn_acks)) return;
    p->told_turn_acks = turns;
    askForAcks(p, turns ? &GETACK_TURN : &GETACK_TICK);
}

void primaryFeed(replPrimary *p) {
    if (!p->stream->has_backlog) return;
    if (unlikely(p->wants_acks | p->tells_ack_mode) && !p->is_paused) {
        bool wants = p->wants_acks;
        p->wants_acks = false;
        if (p->tells_ack_mode) tellAckMode(p);
        if (wants && !p->is_replica && p->peers.count) askForAcks(p, &GETACK);
    }
    if (unlikely(p->asks_twice)) {
        p->asks_twice = false;
        if (!p->is_replica) {
            askForAcks(p, &GETACK);
            askForAcks(p, &GETACK);
            p->asked_twice_end = p->asks_end;
        }
    }
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (peer->streams && peer->at.next != p->stream->backlog.next) feedPeer(p, peer);
        if (unlikely(peer->waits_for_stream)) primaryNoteStream(p, peer);
    }
}

void primaryWantAcks(replPrimary *p) { p->wants_acks = p->peers.count > 0; }

void primaryAskTwice(replPrimary *p) { p->asks_twice = p->peers.count > 0; }

void primaryTellDiscard(replPrimary *p) {
    if (!p->stream->has_backlog || p->is_replica || p->is_paused || !p->peers.count) return;
    char word[REPL_ID_LEN + 16];
    int len = snprintf(word, sizeof(word), DISCARDS_PREFIX "%s", p->stream->process);
    hotCheck(len == REPL_ID_LEN + (int)strlen(DISCARDS_PREFIX));
    const slice words[] = {SLICE("REPLCONF"), SLICE("GETACK"), sliceMake(word, (size_t)len)};
    size_t size;
    char *bytes = respRequest(COUNT_OF(words), words, &size);
    const slice span = sliceMake(bytes, size);
    askForAcks(p, &span);
    memFree(bytes);
    logNotice("Replicas are told that this server saves nothing and ends by order: they will "
              "follow it if it comes back without data (replica-refuse-empty-primary)");
}

void primaryDropAll(replPrimary *p) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        peer->streams = false;
        p->env->close(peer);
    }
}

void primaryRestartStream(replPrimary *p) {
    primaryDropAll(p);
    p->asks_begin = p->asks_end = p->asked_twice_end = 0; /* offsets of another stream */
    if (!p->stream->has_backlog) return;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        backlogClose(&p->stream->backlog, &peerOf(n)->at);
    backlogClear(&p->stream->backlog);
    backlogInit(&p->stream->backlog, p->stream->history.offset + 1,
                (size_t)p->settings.backlog_limit);
    p->stream_db = -1;
}

/* ------------------------------------------------------------------ PSYNC that continues */

void primaryAddPeer(replPrimary *p, replPeer *peer, peerState state) {
    check(peer->state == PEER_NONE);
    peer->state = state;
    listAppend(&p->peers, &peer->node);
    p->without_replicas_ms = 0;
}

static void signalOnline(replPrimary *p, replPeer *peer, bool online) {
    if (p->env->online_changed && peerIsReplica(peer)) p->env->online_changed(peer, online);
}

void primarySetOnline(replPrimary *p, replPeer *peer, int64_t now_ms) {
    peer->state = PEER_ONLINE;
    peer->heard_ms = now_ms;
    if (peer->capabilities & PEER_CAN_ACK_TURNS) p->tells_ack_mode = true;
    p->env->changed(p);
    signalOnline(p, peer, true);
}

/* Logs why the replica cannot continue. */
static void logRefusal(replPrimary *p, const replPeer *peer, slice id, int64_t from) {
    const replHistory *h = &p->stream->history;
    str name = STR_EMPTY;
    (void)primaryPeerName(p, peer, &name);
    if (id.len && id.ptr[0] == '?') {
        logNotice("Full resync requested by replica %s", strText(&name));
    } else if (!historyCovers(h, id, from)) {
        if (sliceIs(id, h->id2)) {
            logNotice("Partial resynchronization not accepted: Requested offset for second ID was "
                      "%lld, but I can reply up to %lld",
                      (long long)from, (long long)h->second_offset);
        } else {
            logNotice("Partial resynchronization not accepted: Replication ID mismatch (Replica "
                      "asked for '%.*s', my replication IDs are '%s' and '%s')",
                      (int)id.len, id.ptr, h->id, h->id2);
        }
    } else {
        logNotice("Unable to partial resync with replica %s for lack of backlog (Replica request "
                  "was %.*s:%lld, and I can only reply with the range [%lld, %lld]).",
                  strText(&name), (int)id.len, id.ptr, (long long)from,
                  (long long)(p->stream->has_backlog ? p->stream->backlog.first : 0),
                  (long long)(p->stream->has_backlog ? p->stream->backlog.next : 0));
        if (from > h->offset + 1) {
            logWarning("Warning: replica %s tried to PSYNC with an offset (%lld) that is greater "
                       "than the primary replication offset (%lld)",
                       strText(&name), (long long)from, (long long)h->offset);
        }
    }
    strFree(&name);
}

/* The main channel of a dual-channel synchronisation holds the stream from now on. */
static void releaseDatasetChannel(replPrimary *p, uint64_t id) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        if (!peer->waits_for_main || p->env->id(peer) != id) continue;
        peer->waits_for_main = false;
        backlogClose(&p->stream->backlog, &peer->at);
        if (peer->state == PEER_TRANSMITTED) p->env->close(peer);
    }
}

static void continueStream(replPrimary *p, replPeer *peer, int64_t from, int64_t now_ms) {
    hotCheck(p->stream->has_backlog);
    hotCheck(from <= p->stream->history.offset + 1);
    char line[REPL_ID_LEN + NUMBER_TEXT_MAX + 16], end[NUMBER_TEXT_MAX + 1] = "";
    bool with_id = peer->capabilities & PEER_CAN_CONTINUE;
    bool is_main = peer->dataset_channel && primaryHasDatasetChannel(p, peer->dataset_channel);
    /* Replicas of our kind are told where the stream ends: quorum.h. */
    if (with_id && !is_main && peer->capabilities & PEER_CAN_ACK_TURNS)
        (void)snprintf(end, sizeof(end), " %lld", (long long)p->stream->history.offset); /* fits */
    int len = snprintf(line, sizeof(line), with_id ? "+CONTINUE %s%s\r\n" : "+CONTINUE\r\n",
                       p->stream->history.id, end);
    historyShare(&p->stream->history);
    primaryAddPeer(p, peer, is_main ? PEER_MAIN_CHANNEL : PEER_ONLINE);
    backlogOpen(&p->stream->backlog, &peer->at, from);
    peer->streams = true;
    p->env->send(peer, sliceMake(line, (size_t)len));
    str name = STR_EMPTY;
    logNotice("Partial resynchronization request from %s accepted. Sending %lld bytes of backlog "
              "starting from offset %lld.",
              primaryPeerName(p, peer, &name), (long long)(p->stream->backlog.next - from),
              (long long)from);
    strFree(&name);
    p->partial_syncs++;
    if (is_main) {
        peer->heard_ms = now_ms;
        releaseDatasetChannel(p, peer->dataset_channel);
    } else {
        primarySetOnline(p, peer, now_ms);
    }
}

/* Other connections with the address that this replica has announced are former ones of it. They
 * may stay until they time out, and must not count as other replicas. */
static void markFormer(const replPrimary *p, const replPeer *peer) {
    str name = STR_EMPTY, other = STR_EMPTY;
    (void)primaryPeerName(p, peer, &name);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *former = peerOf(n);
        if (former == peer || former->port != peer->port || former->is_dataset_channel) continue;
        (void)primaryPeerName(p, former, &other);
        former->is_former |= sliceEqual(strSlice(&other), strSlice(&name));
    }
    strFree(&name);
    strFree(&other);
}

void primaryLogWrongOffset(const replPrimary *p, const replPeer *peer) {
    hotCheck(threadIsMain());
    str name = STR_EMPTY;
    logNotice("Replica %s asks for synchronization", primaryPeerName(p, peer, &name));
    logWarning("Replica %s asks for synchronization but with a wrong offset", strText(&name));
    strFree(&name);
}

void primaryPsync(replPrimary *p, replPeer *peer, slice id, int64_t from, int64_t now_ms) {
    check(peer->state == PEER_NONE);
    str name = STR_EMPTY;
    logNotice("Replica %s asks for synchronization", primaryPeerName(p, peer, &name));
    if (peer->port && !peer->is_dataset_channel) markFormer(p, peer);
    peer->codec = primaryCodecFor(p, peer);
    if (p->stream->has_backlog && historyCovers(&p->stream->history, id, from) &&
        backlogHas(&p->stream->backlog, from)) {
        strFree(&name);
        continueStream(p, peer, from, now_ms);
        return;
    }
    logRefusal(p, peer, id, from);
    if (id.len == 0 || id.ptr[0] != '?') p->refused_partial_syncs++;
    if (peer->capabilities & PEER_CAN_DUAL_CHANNEL && p->settings.dual_channel) {
        logNotice("Dual channel replication: Replica %s is capable of dual channel "
                  "synchronization, and partial sync isn't possible. Full sync will continue with "
                  "dedicated RDB channel.",
                  strText(&name));
        p->env->send(peer, SLICE("+DUALCHANNELSYNC\r\n"));
    } else {
        primaryFullSync(p, peer, now_ms);
    }
    strFree(&name);
}

void primarySync(replPrimary *p, replPeer *peer, int64_t now_ms) {
    check(peer->state == PEER_NONE);
    str name = STR_EMPTY;
    logNotice("Replica %s asks for synchronization", primaryPeerName(p, peer, &name));
    strFree(&name);
    peer->is_sync = true;
    peer->codec = primaryCodecFor(p, peer);
    primaryFullSync(p, peer, now_ms);
}

/* ------------------------------------------------------------------ acknowledgements */

void primaryStartAcked(replPrimary *p, replPeer *peer) {
    peer->starts_with_ack = false;
    peer->streams = true;
    primarySyncSucceeded(p, peer);
    /* A first write, so that its offset differs from that of a server without any. */
    if (p->stream->history.offset == 0 && !p->is_replica) primaryAppend(p, &PING, 1);
    hotCheck(peer->streams);
}

/* A peer that claims what this server has never had is no replica of it: nothing that it tells may
 * count. */
static bool claimsTooMuch(const replPrimary *p, replPeer *peer, int64_t offset, int64_t fsynced) {
    int64_t end = p->stream->history.offset, claimed = offset > fsynced ? offset : fsynced;
    hotCheck(peer->state != PEER_NONE);
    hotCheck(end >= 0);
    if (likely(claimed <= end)) return false;
    str name = STR_EMPTY;
    logWarning("Replica %s acknowledges offset %lld, but the stream ends at %lld. The connection "
               "is closed.",
               primaryPeerName(p, peer, &name), (long long)claimed, (long long)end);
    strFree(&name);
    p->env->close(peer);
    return true;
}

void primaryAck(replPrimary *p, replPeer *peer, int64_t offset, int64_t fsynced, int64_t now_ms) {
    if (peer->state == PEER_NONE || claimsTooMuch(p, peer, offset, fsynced)) return;
    if (offset > peer->acked) peer->acked = offset;
    if (fsynced > peer->fsynced) peer->fsynced = fsynced;
    peer->heard_ms = now_ms;
    if (peer->state == PEER_MAIN_CHANNEL) {
        primarySetOnline(p, peer, now_ms);
        primarySyncSucceeded(p, peer);
    }
    if (peer->state == PEER_WAITING_END) peer->acked_dataset = true;
    if (peer->starts_with_ack) primaryStartAcked(p, peer);
    p->env->changed(p);
    hotCheck(peer->acked >= offset || peer->state == PEER_NONE);
}

static bool isOnline(const replPeer *peer) {
    return peer->state == PEER_ONLINE && peerIsReplica(peer);
}

int primaryCountAcked(const replPrimary *p, int64_t offset) {
    hotCheck(offset >= 0);
    int count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        count += isOnline(peer) && peer->acked >= offset;
    }
    return count;
}

int primaryCountFsynced(const replPrimary *p, int64_t offset) {
    hotCheck(offset >= 0);
    int count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        count += isOnline(peer) && peer->fsynced >= offset;
    }
    return count;
}

int64_t primaryQuorumOffset(const replPrimary *p, int count, bool on_disk) {
    hotCheck(count > 0);
    hotCheck(count <= PRIMARY_QUORUM_MAX);
    int64_t greatest[PRIMARY_QUORUM_MAX] = {0}; /* in descending order */
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (!peerConfirms(peer)) continue;
        int64_t offset = on_disk ? peer->fsynced : peer->acked;
        for (int i = 0; i < count; i++) {
            if (offset <= greatest[i]) continue;
            int64_t next = greatest[i];
            greatest[i] = offset;
            offset = next;
        }
    }
    return greatest[count - 1];
}

int primaryCountGood(const replPrimary *p, int lag_s, int64_t now_ms) {
    hotCheck(lag_s >= 0);
    int count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        count += isOnline(peer) && now_ms / 1000 - peer->heard_ms / 1000 <= (int64_t)lag_s;
    }
    return count;
}

size_t primaryReplicaCount(const replPrimary *p) {
    size_t count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        count += peerIsReplica(peerOf(n));
    check(count <= p->peers.count);
    return count;
}

size_t peerHeld(const replPrimary *p, const replPeer *peer, int64_t *blocks) {
    *blocks = 0;
    return peer->at.block ? backlogHeld(&p->stream->backlog, &peer->at, blocks) : 0;
}

/* ------------------------------------------------------------------ the end of a replica */

void primaryPeerEnds(replPeer *peer, const char *why) {
    if (!peer->end_why[0]) snprintf(peer->end_why, sizeof(peer->end_why), "%s.", why);
}

void primaryForget(replPrimary *p, replPeer *peer, int64_t now_ms) {
    if (peer->state == PEER_NONE) return;
    str name = STR_EMPTY;
    (void)primaryPeerName(p, peer, &name);
    if (peer->is_dataset_channel) {
        logNotice("Dual channel replication: Replica %s rdb channel disconnected.", strText(&name));
    } else {
        logNotice("Connection with replica %s lost.%s%s", strText(&name),
                  peer->end_why[0] ? " " : "", peer->end_why);
    }
    strFree(&name);
    bool was_saved_for = peer->state == PEER_WAITING_END, was_online = peer->state == PEER_ONLINE;
    if (p->stream->has_backlog) backlogClose(&p->stream->backlog, &peer->at);
    listRemove(&p->peers, &peer->node);
    peer->state = PEER_NONE;
    peer->streams = peer->starts_with_ack = peer->waits_for_main = false;
    if (!p->peers.count) p->without_replicas_ms = now_ms;
    if (was_saved_for) primarySaveLostPeer(p);
    p->env->changed(p);
    if (was_online) signalOnline(p, peer, false);
}

/* ------------------------------------------------------------------ time */

/* The wall clock may have been set back: then the period begins anew. */
static void limitTo(int64_t *since_ms, int64_t now_ms) {
    if (*since_ms > now_ms) *since_ms = now_ms;
}

static void sendPing(replPrimary *p, int64_t now_ms) {
    limitTo(&p->pinged_ms, now_ms);
    const int64_t early_ms = 500;             /* the period of the ticks varies */
    if (!p->pinged_ms) p->pinged_ms = now_ms; /* the first period begins at the start */
    if (p->is_replica || p->is_paused || !p->stream->has_backlog || !p->peers.count) return;
    if (now_ms - p->pinged_ms < p->settings.ping_period_s * 1000LL - early_ms) return;
    p->pinged_ms = now_ms;
    primaryAppend(p, &PING, 1);
}

static void closeTimedOut(replPrimary *p, replPeer *peer, int64_t now_ms) {
    limitTo(&peer->heard_ms, now_ms);
    if (now_ms - peer->heard_ms <= p->settings.timeout_s * 1000LL) return;
    bool streaming = peer->state == PEER_ONLINE && !peer->is_sync;
    bool through_pipe = peer->state == PEER_WAITING_END && p->is_saving && !p->save.to_file;
    if (!streaming && !through_pipe) return;
    str name = STR_EMPTY;
    logWarning("Disconnecting timedout replica (%s sync): %s", streaming ? "streaming" : "full",
               primaryPeerName(p, peer, &name));
    strFree(&name);
    p->env->close(peer);
}

/* After a change of repl-compression, here or at the replica: a replica whose codec is another one
 * now connects again. */
static void closeIfRecoded(replPrimary *p, replPeer *peer) {
    peerCodec codec = primaryCodecFor(p, peer);
    if (likely(codec == peer->codec) || peer->state != PEER_ONLINE || !peer->streams) return;
    str name = STR_EMPTY;
    logNotice("Compression of the stream of replica %s changes: it connects again",
              primaryPeerName(p, peer, &name));
    strFree(&name);
    p->env->close(peer);
}

static void freeUnusedBacklog(replPrimary *p, int64_t now_ms) {
    limitTo(&p->without_replicas_ms, now_ms);
    int64_t ttl_s = p->settings.backlog_ttl_s;
    if (!p->stream->has_backlog || p->is_replica || p->peers.count || !ttl_s) return;
    if (!p->without_replicas_ms) p->without_replicas_ms = now_ms;
    if (now_ms - p->without_replicas_ms <= ttl_s * 1000) return;
    /* Writes do not count in the stream any more, so its id must not be used for another
     * continuation. */
    historyRenew(&p->stream->history);
    primaryFreeBacklog(p);
    logNotice("Replication backlog freed after %lld seconds without connected replicas.",
              (long long)ttl_s);
}

void primaryTick(replPrimary *p, int64_t now_ms) {
    sendPing(p, now_ms);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        replPeer *peer = peerOf(n);
        primaryKeepWaiting(p, peer, now_ms);
        closeTimedOut(p, peer, now_ms);
        closeIfRecoded(p, peer);
    }
    freeUnusedBacklog(p, now_ms);
    primaryStartWaiting(p, now_ms);
    p->env->changed(p);
}

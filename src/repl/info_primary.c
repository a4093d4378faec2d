/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields of INFO replication that a primary shows. */
#include "repl/info_primary.h"

#include "base/base.h"
#include "engine/hot.h"
#include "psync/primary_peer.h"
#include "repl/failover.h"
#include "repl/min_replicas.h"
#include "repl/packed_stream.h"
#include "repl/repl_priv.h"
#include "repl/replicas.h"

static const char *typeName(const replPeer *peer) {
    if (peer->is_dataset_channel) return "rdb-channel";
    return peer->state == PEER_MAIN_CHANNEL ? "main-channel" : "replica";
}

static void printReplica(const replPeer *peer, int number, str *out) {
    hotCheck(number >= 0);
    bool acks = peer->state == PEER_ONLINE;
    int64_t lag_s = acks ? (engineHot.now_ms - peer->heard_ms) / 1000 : 0;
    strAppendFormat(out, "slave%d:ip=", number);
    replicasAppendIp(peer, out);
    strAppendFormat(out, ",port=%lld,state=%s,offset=%lld,lag=%lld,type=%s", (long long)peer->port,
                    peerStateName(peer->state), (long long)peer->acked, (long long)lag_s,
                    typeName(peer));
    packedStreamPrintInfo(peer, out);
    strAppendText(out, "\r\n");
}

void infoPrintReplicas(str *out) {
    hotCheck(threadIsMain());
    const replPrimary *p = replicasThis();
    int number = 0, waiting = 0;
    strAppendField(out, "connected_slaves", primaryReplicaCount(p));
    if (minReplicasIsOn()) strAppendFormat(out, "min_slaves_good_slaves:%d\r\n", minReplicasGood());
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (peerIsReplica(peerOf(n))) printReplica(peerOf(n), number++, out);
        waiting += peerOf(n)->waits_for_main;
    }
    strAppendFormat(out, "replicas_waiting_psync:%d\r\n", waiting);
    packedStreamPrintTotals(out);
    number = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n))
        fullSyncPrintInfo(peerOf(n), number++, out);
}

void infoPrintStream(str *out) {
    hotCheck(threadIsMain());
    const replPrimary *p = replicasThis();
    const replHistory *h = &p->stream->history;
    bool active = p->stream->has_backlog;
    strAppendFormat(out, "master_failover_state:%s\r\nmaster_replid:%s\r\n", failoverStateName(),
                    h->id);
    strAppendFormat(out, "master_replid2:%s\r\nmaster_repl_offset:%lld\r\n", h->id2,
                    (long long)h->offset);
    strAppendFormat(out, "second_repl_offset:%lld\r\nrepl_backlog_active:%d\r\n",
                    (long long)h->second_offset, active);
    strAppendFormat(out,
                    "repl_backlog_size:%lld\r\nrepl_backlog_first_byte_offset:%lld\r\n"
                    "repl_backlog_histlen:%lld\r\n",
                    (long long)p->settings.backlog_limit,
                    (long long)(active ? p->stream->backlog.first : 0),
                    (long long)(active ? backlogLength(&p->stream->backlog) : 0));
}

void infoPrintSyncs(str *out) {
    hotCheck(threadIsMain());
    const replPrimary *p = replicasThis();
    strAppendField(out, "sync_full", p->full_syncs);
    strAppendField(out, "sync_partial_ok", p->partial_syncs);
    strAppendField(out, "sync_partial_err", p->refused_partial_syncs);
}

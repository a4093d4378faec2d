/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computes up to which offset enough replicas have confirmed the stream, and whether enough
 * replicas can be reached (quorum.h). */
#include "psync/quorum.h"

#include "base/base.h"

void quorumSet(replQuorum *q, const quorumSettings *settings, bool is_primary, int64_t offset,
               int64_t now_ms) {
    hotCheck(offset >= 0);
    check(settings->replicas <= (int)PRIMARY_QUORUM_MAX);
    *q = (replQuorum){.settings = *settings,
                      .is_on = is_primary && settings->replicas > 0,
                      .is_held = q->is_held,
                      .written = offset,
                      .lost_ms = now_ms,
                      .probe = -1,
                      .heard_ms = -1};
    hotCheck(!q->refuses);
}

static int countReachable(const replPrimary *p) {
    int count = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        /* One that is loading what it was sent has acknowledged nothing. */
        count += peerConfirms(peer) && peer->acked > 0;
    }
    return count;
}

bool quorumUpdate(replQuorum *q, const replPrimary *p, int64_t own_durable, int64_t now_ms) {
    hotCheck(now_ms >= 0);
    if (!q->is_on) return false;
    q->reachable = countReachable(p);
    if (q->reachable >= q->settings.replicas) {
        q->lost_ms = -1;
    } else if (q->lost_ms < 0) {
        q->lost_ms = now_ms;
    }
    int64_t offset =
        q->is_held ? 0 : primaryQuorumOffset(p, q->settings.replicas, q->settings.on_disk);
    if (q->settings.on_disk && own_durable < offset) offset = own_durable;
    bool more = offset > q->confirmed;
    if (more) q->confirmed = offset;
    if (q->probe >= 0 && q->confirmed >= q->probe) {
        q->heard_ms = q->probe_ms;
        q->probe = -1;
    }
    if (q->refuses && q->lost_ms < 0 && q->confirmed >= q->written) q->refuses = false;
    return more;
}

void quorumProbe(replQuorum *q, int64_t offset, int64_t now_ms) {
    hotCheck(offset >= q->confirmed);
    if (q->probe >= 0) return;
    q->probe = offset;
    q->probe_ms = now_ms;
}

void quorumTick(replQuorum *q, int64_t now_ms) {
    hotCheck(now_ms >= 0);
    if (!q->is_on) return;
    bool lost = q->lost_ms >= 0 && now_ms - q->lost_ms >= q->settings.timeout_ms;
    bool stuck = q->probe >= 0 && now_ms - q->probe_ms >= q->settings.timeout_ms;
    if (lost || stuck) q->refuses = true;
}

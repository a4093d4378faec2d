/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides about replicas that report to be primaries. If a leader has promoted the replica and was
 * lost before it could announce that, the replica's writes must be kept. Any other such replica is
 * made a replica again.
 *
 * A leader needs the votes of a majority, and each Sentinel stores its vote in its file. If this
 * Sentinel has voted since the present configuration was made, it assumes that the elected leader
 * has promoted the replica, and repeats the failover with it (failover.c). If it has not voted, it
 * asks the other Sentinels for their votes: if a majority has not voted either, no leader was
 * elected. */
#include "base/base.h"
#include "monitor/machine.h"

bool sentinelHasOpenVote(const sentinelView *v, const sentinelInstance *primary) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    return primary->leader_epoch > primary->config_epoch &&
           v->now_ms - primary->voted_ms <= 2 * primary->failover_timeout_ms;
}

bool sentinelIsUnfinished(const sentinelView *v, const sentinelInstance *replica) {
    const sentinelInstance *primary = replica->primary;
    hotCheck(replica->kind == INSTANCE_REPLICA);
    return !replica->role_is_replica && replica->promoted_in > primary->config_epoch &&
           v->now_ms - replica->role_since_ms <= 2 * primary->failover_timeout_ms;
}

bool sentinelMayBePromoted(const sentinelView *v, const sentinelInstance *replica) {
    hotCheck(replica->kind == INSTANCE_REPLICA);
    return sentinelIsUnfinished(v, replica) || (replica->is_unsure && replica->was_replica);
}

void sentinelNotePromotion(const sentinelView *v, sentinelInstance *replica) {
    const sentinelInstance *primary = replica->primary;
    check(replica->kind == INSTANCE_REPLICA);
    bool in_vote = sentinelHasOpenVote(v, primary) && primary->led_epoch != primary->leader_epoch &&
                   primary->switched_ms < primary->voted_ms;
    replica->promoted_in = in_vote && replica->was_replica ? primary->leader_epoch : 0;
    strFree(&replica->promoter);
    if (replica->promoted_in) replica->promoter = strNew(strSlice(&primary->leader));
    replica->is_unsure = primary->leader_epoch <= primary->config_epoch &&
                         (replica->was_replica || replica->is_loaded);
}

void sentinelForgetPromotion(sentinelInstance *replica) {
    hotCheck(replica->kind == INSTANCE_REPLICA);
    replica->was_replica = replica->is_unsure = replica->is_loaded = false;
    replica->promoted_in = 0;
}

/* True if a majority has not voted since the present configuration, so no leader was elected: any
 * two majorities have a Sentinel in common. Only replies since `since_ms` count. */
static bool nobodyWasElected(const sentinelInstance *primary, int64_t since_ms) {
    int without = primary->leader_epoch <= primary->config_epoch;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(peer, &primary->sentinels)
    without += peer->vote_told_ms > since_ms && peer->vote_told_epoch <= primary->config_epoch;
    return without >= ((int)primary->sentinels.count + 1) / 2 + 1;
}

bool sentinelIsUnsure(const sentinelView *v, sentinelInstance *replica) {
    const sentinelInstance *primary = replica->primary;
    hotCheck(replica->kind == INSTANCE_REPLICA);
    if (!replica->is_unsure) return false;
    if (v->now_ms - replica->role_since_ms > 2 * primary->failover_timeout_ms ||
        nobodyWasElected(primary, replica->role_since_ms))
        replica->is_unsure = false;
    return replica->is_unsure;
}

bool sentinelWantsVotes(const sentinelView *v, const sentinelInstance *primary) {
    bool wants = false;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas)
    wants = wants || (!i->role_is_replica && sentinelIsUnsure(v, i));
    return wants;
}

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults that are built into the cluster bus, slot migration and Sentinel; the simulation has to
find each.

    faults.py --write FOLDER/FILE
                               prints that file of src/ with its faults, for the program `faulty`
    faults.py [--seeds N] [--only NAME] PROGRAM
                               runs `faulty` with each fault until it fails, and prints the seed

A fault is a change of the text of a file: FAULT in it is true in runs that have it switched on.
Entries with the same name are one fault: each of the rules that they break would do without the
other. If the text of a file is changed, the table here is to be changed with it. Nothing of this is in the
server: `faulty` is the simulation (main.c) with changed copies of these folders. Both print "N passed,
N failed" at the end."""
import argparse
import concurrent.futures
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
RUN_SECONDS = 900

# `first`: the seed to begin with, to save time where earlier ones have not found it.
Fault = namedtuple("Fault", "name file old new first scenario", defaults=[1, None])

CLUSTER = [
    # ---- elections
    Fault("a second vote in an epoch", "election.c",
          "if (m->vote_epoch == m->current_epoch)",
          "if (!FAULT && m->vote_epoch == m->current_epoch)"),
    Fault("a vote is not saved", "map_slots.c",
          "void clusterMapSetEpochs(clusterMap *m, uint64_t current, uint64_t vote) {",
          "void clusterMapSetEpochs(clusterMap *m, uint64_t current, uint64_t vote) {\n"
          "    if (FAULT && current == m->current_epoch && vote != m->vote_epoch) {\n"
          "        m->vote_epoch = vote;\n        return;\n    }", first=550),
    Fault("the vote is not read at the start", "map_file.c",
          "clusterMapSetEpochs(r->map, current, epochs[VOTE])",
          "clusterMapSetEpochs(r->map, current, FAULT ? 0 : epochs[VOTE])"),
    Fault("messages leave before the map is saved", "map_saves.c",
          "return number <= s->safe;", "return FAULT || number <= s->safe;"),
    Fault("one vote wins", "election.c",
          "if (!votersAgree(m, voterHasVoted, &b)) return",
          "if (!FAULT && !votersAgree(m, voterHasVoted, &b)) return"),
    Fault("a vote though the primary works", "election.c",
          "if (candidate->primary && !(candidate->primary->flags & NODE_FAILED) &&",
          "if (!FAULT && candidate->primary && !(candidate->primary->flags & NODE_FAILED) &&"),
    Fault("a vote for an outdated claim", "election.c",
          "if (owner && owner->epoch > h->epoch) return slot;",
          "if (owner && owner->epoch > h->epoch && !FAULT) return slot;"),
    Fault("an election without a new epoch", "election.c",
          "uint64_t epoch = clusterMapNextEpoch(m);\n    if (epoch == m->current_epoch)",
          "uint64_t epoch = FAULT ? m->current_epoch : clusterMapNextEpoch(m);\n"
          "    if (epoch == m->current_epoch && !FAULT)"),
    Fault("the winner votes in its own epoch", "election.c",
          "if (m->vote_epoch < e->epoch) clusterMapSetEpochs",
          "if (!FAULT && m->vote_epoch < e->epoch) clusterMapSetEpochs"),
    Fault("a replica with old data is elected", "election.c",
          "if (!rules->data_age_max_ms || ", "if (FAULT || !rules->data_age_max_ms || "),
    Fault("a vote at once after the start", "election.c",
          "if (now_ms - started_ms < SAFE_AFTER_MS)",
          "if (!FAULT && now_ms - started_ms < SAFE_AFTER_MS)"),
    Fault("a replica votes", "election.c",
          "if (!clusterNodeIsVoter(m, m->myself)) return (electionVerdict){0};",
          "if (!clusterNodeIsVoter(m, m->myself) && !FAULT) return (electionVerdict){0};"),
    Fault("a refused vote counts as a vote", "bus_receive.c",
          "        if (sender) electionNack(", "        if (FAULT && sender) takeVote(b, sender, &m->header);\n"
          "        else if (sender) electionNack("),
    Fault("nodes that do not know refusals are told", "bus_receive.c",
          "if (v.nack && h->node_flags & NODE_TAKES_NACK", "if (v.nack && (FAULT || h->node_flags & NODE_TAKES_NACK)"),
    # ---- failure detection
    Fault("a minority serves requests", "cluster_state.c",
          "if (!votersAreReached(m, rules", "if (!FAULT && !votersAreReached(m, rules"),
    Fault("requests are served without some slots", "cluster_state.c",
          "return m->slots_assigned == SLOT_COUNT &&", "return FAULT || m->slots_assigned == SLOT_COUNT &&"),
    Fault("failed without a majority", "failure.c",
          "if (!areSuspecting(m, n, rules, now_ms)) return;",
          "if (!areSuspecting(m, n, rules, now_ms) && !FAULT) return;"),
    Fault("reports count for ever", "map_reports.c", "max_age_ms) {",
          "max_age_ms) {\n    if (FAULT) max_age_ms = INT64_MAX / 2;"),
    Fault("a PONG does not end the suspicion", "failure.c",
          "if (n->flags & NODE_MAYBE_FAILED) clusterMapSetFlags",
          "if (!FAULT && n->flags & NODE_MAYBE_FAILED) clusterMapSetFlags"),
    Fault("a failed replica stays failed", "failure.c",
          "    if (!clusterNodeVotes(n)) {\n        logNotice(\"Clear",
          "    if (FAULT && n->flags & NODE_REPLICA) return;\n"
          "    if (!clusterNodeVotes(n)) {\n        logNotice(\"Clear"),
    Fault("times of the future in gossip are believed", "failure.c",
          "if (pong_ms <= now_ms + CLOCK_TOLERANCE_MS)",
          "if (FAULT || pong_ms <= now_ms + CLOCK_TOLERANCE_MS)"),
    Fault("a silent link is kept", "bus_links.c",
          "isSilent(b, n, n->links->to)) busEndLink",
          "isSilent(b, n, n->links->to) && !FAULT) busEndLink"),
    # ---- epochs and owners of slots
    Fault("an epoch collision stays", "topology.c",
          "resolveCollision(m, sender, h);\n    return acts;",
          "if (!FAULT) resolveCollision(m, sender, h);\n    return acts;"),
    Fault("the current epoch is not taken over", "topology.c",
          "if (current > m->current_epoch) clusterMapSetEpochs",
          "if (!FAULT && current > m->current_epoch) clusterMapSetEpochs"),
    Fault("UPDATE is ignored", "topology.c",
          "if (!n || n->epoch >= update->epoch) return acts;",
          "if (FAULT || !n || n->epoch >= update->epoch) return acts;"),
    Fault("UPDATE is not sent", "bus_receive.c",
          "if (acts.update) busUpdate", "if (acts.update && !FAULT) busUpdate"),
    Fault("an older epoch gets slots", "topology.c",
          "owner->epoch >= epoch", "owner->epoch >= epoch && !FAULT"),
    Fault("a replica of a replica stays", "topology.c",
          "if (m->myself->flags & NODE_REPLICA) leaveSubReplica",
          "if (!FAULT && m->myself->flags & NODE_REPLICA) leaveSubReplica"),
    Fault("a former primary stays without a primary", "topology.c",
          "if (lost && own->slot_count == 0) loseLastSlot",
          "if (!FAULT && lost && own->slot_count == 0) loseLastSlot"),
    Fault("a takeover without a new epoch", "topology.c",
          "    clusterMapSetEpochs(m, clusterMapNextEpoch(m), m->vote_epoch);\n"
          "    topologyPromote(m, m->current_epoch);",
          "    if (!FAULT) clusterMapSetEpochs(m, clusterMapNextEpoch(m), m->vote_epoch);\n"
          "    topologyPromote(m, FAULT ? m->myself->primary->epoch : m->current_epoch);"),
    Fault("keys of lost slots are kept", "bus.c",
          "if (acts->lost_slots) b->procs->slotsLost",
          "if (acts->lost_slots && !FAULT) b->procs->slotsLost"),
    # ---- manual failover
    Fault("a manual failover does not wait for the offset", "manual_failover.c",
          "(uint64_t)offset != f->primary_offset)",
          "((uint64_t)offset != f->primary_offset && !FAULT))"),
    Fault("the primary does not pause writes", "manual_failover.c",
          ".pause_ms = PAUSE_FACTOR * timeout_ms, .ping = from",
          ".pause_ms = FAULT ? 0 : PAUSE_FACTOR * timeout_ms, .ping = from"),
    Fault("the primary resumes writes early", "manual_failover.c",
          "begin(f, MANUAL_PAUSED, from, now_ms + timeout_ms);",
          "begin(f, MANUAL_PAUSED, from, FAULT ? now_ms : now_ms + timeout_ms);"),
    Fault("a late message of an earlier order counts", "manual_failover.c",
          "if (reply.ping < f->asked_ping || !(h->flags",
          "if ((reply.ping < f->asked_ping && !FAULT) || !(h->flags"),
    Fault("any message of a paused primary counts", "manual_failover.c",
          "if (f->step != MANUAL_ASKED || !reply.ping)",
          "if (FAULT && !reply.ping) reply.ping = f->asked_ping;\n"
          "    if (f->step != MANUAL_ASKED || !reply.ping)"),
    # ---- nodes
    Fault("a forgotten node comes back by MEET", "bus_receive.c",
          "if (clusterMapIsForbidden(b->map, id, b->now_ms)) return;\n"
          "    if (m->extension_count &&",
          "if (!FAULT && clusterMapIsForbidden(b->map, id, b->now_ms)) return;\n"
          "    if (!FAULT && m->extension_count &&"),
    Fault("FORGET is not passed on", "gossip.c",
          "for (int i = 0; i < e.forgotten_count; i++) forget",
          "for (int i = 0; i < e.forgotten_count && !FAULT; i++) forget"),
    Fault("migration takes the last replica", "orphans.c",
          "if (most < 2 || working < most || working - 1 < rules->migration_barrier) return NULL;",
          "if (!FAULT && (most < 2 || working < most || working - 1 < rules->migration_barrier)) return NULL;"),
    Fault("a second server takes over a link", "bus_links.c",
          "return elsewhere && isAlive(b, n);", "return !FAULT && elsewhere && isAlive(b, n);"),
]

SENTINEL = [
    # ---- epochs and votes
    Fault("a second vote in an epoch", "vote.c",
          "if (primary->leader_epoch >= epoch || v->current_epoch != epoch) return;",
          "if ((FAULT ? primary->leader_epoch > epoch : primary->leader_epoch >= epoch) ||\n"
          "        v->current_epoch != epoch)\n        return;"),
    Fault("a vote is given though it cannot be saved", "vote.c",
          "if (!v->env->save(v)) {\n        /* After a restart it",
          "if (!v->env->save(v) && !FAULT) {\n        /* After a restart it"),
    Fault("a vote is not saved", "sentinel/lines.c",
          'writeNumber(w, "leader-epoch", i, (int64_t)i->leader_epoch);',
          'writeNumber(w, "leader-epoch", i, FAULT ? 0 : (int64_t)i->leader_epoch);'),
    Fault("the vote is not read at the start", "sentinel/lines.c",
          "if (epoch <= SENTINEL_EPOCH_MAX) primary->leader_epoch = epoch;",
          "if (epoch <= SENTINEL_EPOCH_MAX && !FAULT) primary->leader_epoch = epoch;"),
    Fault("the epoch goes back in a restart", "sentinel/lines.c",
          "if (epoch > v->current_epoch && epoch <= SENTINEL_EPOCH_MAX) v->current_epoch = epoch;",
          "if (!FAULT && epoch > v->current_epoch && epoch <= SENTINEL_EPOCH_MAX)\n"
          "        v->current_epoch = epoch;"),
    Fault("an epoch that cannot be saved is begun", "failover.c",
          "if (!v->env->save(v)) {\n        v->current_epoch--;",
          "if (!v->env->save(v) && !FAULT) {\n        v->current_epoch--;"),
    Fault("a leader without a majority", "vote.c",
          "int majority = ((int)primary->sentinels.count + 1) / 2 + 1;",
          "int majority = FAULT ? 1 : ((int)primary->sentinels.count + 1) / 2 + 1;\n"
          "    if (FAULT) return 1;"),
    Fault("votes of other epochs count", "vote.c",
          "peer->leader_epoch == epoch && peer->leader.len && sliceEqual(strSlice(&peer->leader), id);",
          "(FAULT || peer->leader_epoch == epoch) && peer->leader.len &&\n"
          "        sliceEqual(strSlice(&peer->leader), id);"),
    Fault("an election that nobody wins is not repeated soon", "failover.c",
          "if (!repeat) return true;", "if (!repeat || FAULT) return true;"),
    # ---- detection
    Fault("down without the quorum", "down.c",
          "(primary->flags & INSTANCE_SDOWN) && votes >= primary->quorum",
          "(primary->flags & INSTANCE_SDOWN) && (FAULT || votes >= primary->quorum)"),
    Fault("a tilt is ignored", "tick.c", "if (v->tilt) return;", "if (v->tilt && !FAULT) return;"),
    Fault("links that do not work are kept", "down.c",
          "if (stuck) sentinelDisconnect(v, i);", "if (stuck && !FAULT) sentinelDisconnect(v, i);"),
    Fault("a primary that says it is a replica is up", "down.c",
          "if (i->role_is_replica &&", "if (!FAULT && i->role_is_replica &&"),
    # ---- the failover
    Fault("a replica that is down is promoted", "failover.c",
          "return !(i->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN)) && sentinelCanSend(i) &&\n"
          "           v->now_ms - i->link->ping_good_ms <= GOOD_PING_MS && i->priority != 0 &&\n"
          "           hasFreshInfo(v, i) &&",
          "return (FAULT || !(i->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN))) &&\n"
          "           (FAULT || (sentinelCanSend(i) && v->now_ms - i->link->ping_good_ms <= GOOD_PING_MS)) &&\n"
          "           i->priority != 0 && (FAULT || hasFreshInfo(v, i)) &&"),
    Fault("a replica with priority 0 is promoted", "info.c",
          "i->priority = (int)number(value, 100);", "i->priority = FAULT ? 100 : (int)number(value, 100);"),
    Fault("the replica with the least data is promoted", "failover.c",
          "return a->offset > b->offset;", "return FAULT ? a->offset < b->offset : a->offset > b->offset;"),
    Fault("others follow before the promotion", "failover.c",
          "enter(v, primary, FAILOVER_WAIT_PROMOTION);",
          "enter(v, primary, FAULT ? FAILOVER_RECONF_REPLICAS : FAILOVER_WAIT_PROMOTION);"),
    Fault("other replicas are not told", "failover.c",
          "if (count >= primary->parallel_syncs) continue;",
          "if (FAULT || count >= primary->parallel_syncs) continue;"),
    Fault("what a dead leader has promoted is turned back", "info.c",
          "if ((i->flags & INSTANCE_PROMOTED) || sentinelIsUnfinished(v, i)) return;",
          "if ((i->flags & INSTANCE_PROMOTED) || (!FAULT && sentinelIsUnfinished(v, i))) return;"),
    Fault("a vote is forgotten in a restart", "sentinel/lines.c",
          "if (!i->leader.len || !sentinelHasOpenVote(v, i)) return;",
          "if (FAULT || !i->leader.len || !sentinelHasOpenVote(v, i)) return;"),
    Fault("a candidate that has lost denies the promotion by another one", "hello.c",
          "i->is_unsure = true;", "i->is_unsure = !FAULT;", first=1100),
    Fault("the failover of a dead leader is not repeated", "failover.c",
          "if (sentinelIsUnfinished(v, i) && sentinelCanSend(i) &&",
          "if (!FAULT && sentinelIsUnfinished(v, i) && sentinelCanSend(i) &&"),
    Fault("an old primary stays a primary", "info.c",
          "if (sentinelSendReplicaOf(v, i, &primary->addr))\n"
          "        sentinelEvent(v, LOG_NOTICE, \"+convert-to-slave\"",
          "if (!FAULT && sentinelSendReplicaOf(v, i, &primary->addr))\n"
          "        sentinelEvent(v, LOG_NOTICE, \"+convert-to-slave\""),
    Fault("a replica of another primary stays so", "info.c",
          "if (!other && !stuck) return;", "if (FAULT || (!other && !stuck)) return;"),
    # ---- hello messages
    Fault("an old configuration is taken", "hello.c",
          "if (primary->config_epoch >= h->config_epoch) return;",
          "if (FAULT ? primary->config_epoch == h->config_epoch : primary->config_epoch >= h->config_epoch)\n"
          "        return;"),
    Fault("the epoch of a configuration is not told", "hello.c",
          "host.ptr, addr->port, (unsigned long long)primary->config_epoch);",
          "host.ptr, addr->port, FAULT ? 0ULL : (unsigned long long)primary->config_epoch);"),
    Fault("a Sentinel takes its former self for another one", "hello.c",
          "if (!primary || isFormerSelf(v, primary, &h)) return;",
          "if (!primary || (!FAULT && isFormerSelf(v, primary, &h))) return;", first=2800),
    Fault("a Sentinel that was set up anew is added, not replaced", "hello.c",
          "sentinelRemove(v, at);", "if (!FAULT) sentinelRemove(v, at);"),
    Fault("a coordinated failover is a plain one", "failover.c",
          "if (!sendCoordinated(v, primary, rest_ms)) return;",
          "if (FAULT ? !sentinelSendReplicaOf(v, promoted, NULL) : !sendCoordinated(v, primary, rest_ms))\n"
          "            return;"),
    Fault("a published message counts in spite of the password", "hello.c",
          "if (!direct && v->env->needs_password(v)) {",
          "if (!direct && v->env->needs_password(v) && !FAULT) {"),
]
SLOTS = [
    Fault("a command that changes the map is replied to before that is saved", "map_saves.c",
          "s->has_orders |= ordered;", "s->has_orders |= ordered && !FAULT;", first=1900),
    Fault("writes to a slot whose claim is not saved", "map_saves.c",
          "s->has_unsaved = any != 0;", "s->has_unsaved = any != 0 && !FAULT;"),
    Fault("a late claim ends the move back to who claims", "topology.c",
          "clusterMapOpenSlot(m, SLOT_TAKEN, slot) != claimer;",
          "(FAULT || clusterMapOpenSlot(m, SLOT_TAKEN, slot) != claimer);", first=1700),
    # ---- the source
    Fault("a write is accepted after a grant", "slot_source.c",
          "setPause(m, job, PAUSE_FOREVER_MS);", "setPause(m, job, FAULT ? 1 : PAUSE_FOREVER_MS);"),
    Fault("a lost link after a grant fails the job", "slot_source.c",
          "if (!isDecided(job)) {\n        slotSourceFail(m, job, message);",
          "if (FAULT || !isDecided(job)) {\n        slotSourceFail(m, job, message);"),
    Fault("a granted job is cancelled", "slot_source.c",
          "if (isDecided(job)) {\n            job->run.is_cancelled",
          "if (isDecided(job) && !FAULT) {\n            job->run.is_cancelled"),
    Fault("a slot is not claimed again after a failure", "slot_source.c",
          "if (isDecided(job)) setClaimed(m, job, true);",
          "if (isDecided(job) && !FAULT) setClaimed(m, job, true);"),
    Fault("deletes are not forwarded during the walk", "slot_source.c",
          "return job->state == JOB_SNAPSHOTTING ? SLOT_CHANGE_WALKED : SLOT_CHANGE_SENT;",
          "if (FAULT && job->state == JOB_SNAPSHOTTING) return SLOT_CHANGE_IGNORED;\n"
          "    return job->state == JOB_SNAPSHOTTING ? SLOT_CHANGE_WALKED : SLOT_CHANGE_SENT;"),
    Fault("changes after the pause are not forwarded", "slot_source.c",
          "if (isDecided(job)) return SLOT_CHANGE_LATE;",
          "if (isDecided(job)) return SLOT_CHANGE_LATE;\n"
          "    if (FAULT && job->state == JOB_PAUSED) return SLOT_CHANGE_IGNORED;"),
    Fault("keys that are flushed are moved", "slot_moves.c",
          "slotSourceFailAll(m, \"Data was flushed\");",
          "if (!FAULT) slotSourceFailAll(m, \"Data was flushed\");"),
    Fault("a silent target is waited for", "slot_source.c",
          "if (m->now_ms - heard_ms > m->rules.silence_ms) {",
          "if (!FAULT && m->now_ms - heard_ms > m->rules.silence_ms) {"),
    Fault("two nodes that give each other slots claim them", "slot_source.c",
          "if (acts & JOB_ACT_SEND_GRANTED) setClaimed(m, job, false);",
          "if (acts & JOB_ACT_SEND_GRANTED && !FAULT) setClaimed(m, job, false);"),
    Fault("two nodes that give each other slots claim them", "slot_target.c",
          "static bool isGiven(const slotMoves *m, const slotJob *job, const clusterNode *source) {",
          "static bool isGiven(const slotMoves *m, const slotJob *job, const clusterNode *source) {\n"
          "    if (FAULT) return true;"),
    # ---- the target
    Fault("slots are taken without a new epoch", "slot_target.c",
          "if (clusterMapBumpEpoch(map))", "if (!FAULT && clusterMapBumpEpoch(map))"),
    Fault("a grant has effect after the source has resumed writes", "slot_target.c",
          "} else if (waited_ms >= lease_ms) {", "} else if (waited_ms >= lease_ms && !FAULT) {", first=600),
    Fault("a grant has effect after the source has resumed writes", "slot_target.c",
          "if (clusterMapIsClaimed(m->map, slot)) return false;",
          "if (clusterMapIsClaimed(m->map, slot) && !FAULT) return false;"),
    Fault("slots are taken while their owner claims them", "slot_target.c",
          "} else if (!isGiven(m, job, source)) {", "} else if (!FAULT && !isGiven(m, job, source)) {", first=600),
    Fault("the target does not wait for its replicas", "slot_target.c",
          "waited_ms >= lease_ms / 2 || !m->procs->isBehind(m->arg, job)",
          "FAULT || waited_ms >= lease_ms / 2 || !m->procs->isBehind(m->arg, job)"),
    Fault("slots are taken during a manual failover", "slot_target.c",
          "if (m->procs->isStill(m->arg)) continue;", "if (!FAULT && m->procs->isStill(m->arg)) continue;"),
    Fault("the target keeps the keys of a failed job", "slot_target.c",
          "m->procs->clean(m->arg, job)) {", "(FAULT || m->procs->clean(m->arg, job))) {"),
    Fault("the slots of a job that has ended stay hidden", "slot_target.c",
          "hide(m, job, false);\n    m->procs->close(m->arg, job);",
          "if (!FAULT) hide(m, job, false);\n    m->procs->close(m->arg, job);"),
    Fault("the end of a job is not told", "slot_target.c",
          "            end(m, job, JOB_FAILED, NULL);\n            m->procs->finish(m->arg, job);",
          "            end(m, job, JOB_FAILED, NULL);\n            if (!FAULT) m->procs->finish(m->arg, job);"),
    Fault("keys are mixed with those of an earlier job", "slot_target.c",
          "if (!keys) continue;", "if (FAULT || !keys) continue;"),
    Fault("a silent source is waited for", "slot_target.c",
          "} else if (m->now_ms - heard_ms > m->rules.silence_ms) {",
          "} else if (!FAULT && m->now_ms - heard_ms > m->rules.silence_ms) {"),
    Fault("an import goes on after a promotion", "slot_target.c",
          "if (is_primary && job->state == JOB_ON_PRIMARY) {",
          "if (!FAULT && is_primary && job->state == JOB_ON_PRIMARY) {"),
    Fault("an import goes on after a demotion", "slot_target.c",
          "if (is_primary || job->state == JOB_ON_PRIMARY) return false;",
          "if (FAULT || is_primary || job->state == JOB_ON_PRIMARY) return false;"),
    Fault("FINISH is ignored by a new replica", "slot_target.c",
          "        if (followsRole(m, job)) continue;",
          "        if (FAULT && m->procs->isStill(m->arg)) continue;\n"
          "        if (followsRole(m, job)) continue;"),
    Fault("FINISH is ignored by a new replica", "slot_target.c",
          "    check(slotJobIsActive(job));\n    str text = strNew(message);",
          "    check(slotJobIsActive(job));\n    if (FAULT && job->state != JOB_ON_PRIMARY) return;\n"
          "    str text = strNew(message);"),
    # ---- the map
    Fault("UPDATE tells what a file says", "topology.c",
          "if (owner == m->myself || owner->has_told) return owner;",
          "if (FAULT || owner == m->myself || owner->has_told) return owner;"),
    Fault("slots are inherited that are not claimed", "topology.c",
          "claimed && claimed[slot / 8] & 1 << slot % 8 ? to : NULL",
          "claimed && (FAULT || claimed[slot / 8] & 1 << slot % 8) ? to : NULL", first=3800),
    Fault("the claim of a target with an older epoch is refused", "slot_source.c",
          "return !memcmp(job->target, to->id, NODE_ID_LEN);",
          "return !FAULT && !memcmp(job->target, to->id, NODE_ID_LEN);"),
]
# cluster-replicas-vote.
VOTERS = [
    Fault("a majority of fewer voters", "voters.c",
          "agreeing_members >= m->voters.count / 2 + 1;", "agreeing_members >= (m->voters.count + FAULT) / 2 + !FAULT;"),
    Fault("members that are not known do not count", "voters.c",
          "    check(agreeing_members <= m->voters.count);",
          "    int known = 0;\n    for (int i = 0; i < m->node_count; i++) known += m->nodes[i]->is_member;\n"
          "    if (FAULT) return agreeing_members >= known / 2 + 1;"),
    Fault("voters with a later set count", "voters.c",
          "return n != m->myself && voterStampCompare(n->voters, m->voters.stamp) > 0;",
          "return !FAULT && n != m->myself && voterStampCompare(n->voters, m->voters.stamp) > 0;"),
    Fault("an earlier set is taken", "voters.c",
          "if (voterStampCompare(set->stamp, m->voters.stamp) <= 0) return false;",
          "if (!FAULT && voterStampCompare(set->stamp, m->voters.stamp) <= 0) return false;"),
    Fault("a vote for an earlier set", "voters_change.c",
          "if (!votersTrust(m, h->voters) ||", "if ((!FAULT && !votersTrust(m, h->voters)) ||"),
    Fault("a second vote about voters in an epoch", "voters_change.c",
          "if (m->vote_epoch >= h->current_epoch) return false;",
          "if (!FAULT && m->vote_epoch >= h->current_epoch) return false;"),
    Fault("a leader without a majority", "voters_change.c",
          "|| !isElected(m, &b)) return", "|| (!FAULT && !isElected(m, &b))) return"),
    Fault("the own vote about voters is not noted", "voters_change.c",
          "clusterMapSetEpochs(m, epoch, epoch);",
          "clusterMapSetEpochs(m, epoch, FAULT ? m->vote_epoch : epoch);"),
    Fault("the own vote about voters is not noted", "voters.c",
          "return n == b->map->myself ? ", "return n == b->map->myself ? FAULT || "),
    Fault("priorities count beside a replica that does not know them", "election.c",
          "if (r->heard_ms && !r->takes_priority) return false;",
          "if (r->heard_ms && !r->takes_priority && !FAULT) return false;"),
    Fault("a candidate's own vote is not noted", "election.c",
          "clusterMapSetEpochs(m, epoch, votes ? epoch : m->vote_epoch);",
          "clusterMapSetEpochs(m, epoch, votes && !FAULT ? epoch : m->vote_epoch);"),
    Fault("a candidate's own vote is not noted", "voters.c",
          "b->map->vote_epoch == b->epoch", "(FAULT || b->map->vote_epoch == b->epoch)"),
    Fault("a set is changed before a majority has it", "voters_change.c",
          "if (!isConfirmed(m, next.rule)) return", "if (!FAULT && !isConfirmed(m, next.rule)) return"),
    Fault("a leader whom not all primaries have elected", "voters_change.c",
          "(!by_all || allKnown(m, voterHasVoted, b))", "(FAULT || !by_all || allKnown(m, voterHasVoted, b))"),
    Fault("several members are changed at once", "voters_change.c",
          "if (!c || c->removed != own->ids[i])",
          "if (!c || (c->removed != own->ids[i] &&\n"
          "                   !(FAULT && c->removed && !clusterMapFind(m, sliceMake(own->ids[i], NODE_ID_LEN)))))"),
    Fault("the rule of Valkey ends at once", "voters_change.c",
          ": up[m->voters.rule];", ": up[m->voters.rule + (FAULT && m->voters.rule == VOTERS_OWNERS)];"),
    Fault("the set is not read at the start", "map_file.c",
          "if (valid && term) (void)votersInstall", "if (valid && term && !FAULT) (void)votersInstall"),
    Fault("voters that were not heard are reached", "voters.c",
          "|| n->has_told_voters;", "|| n->has_told_voters || FAULT;"),
]
# Two nodes that claim the same slots after a hand-over.
CLAIMS = [
    Fault("a manual failover while slots are granted", "manual_failover.c",
          "if (clusterMapHasUnclaimed(m)) {", "if (clusterMapHasUnclaimed(m) && !FAULT) {"),
    Fault("the slots of a job are refused to a target with an older epoch", "topology.c",
          "bool given = givesTo(m, claimer, slot, epoch);", "bool given = !FAULT && givesTo(m, claimer, slot, epoch);"),
    Fault("a second replica is ordered to take over as well", "manual_failover.c",
          "return peer && peer != from && !(", "return !FAULT && peer && peer != from && !("),
    Fault("a pause is told to all replicas", "bus_send.c",
          "if (rules.flags && to != manualFailoverPeer(", "if (!FAULT && rules.flags && to != manualFailoverPeer("),
    Fault("a replica takes slots that its primary has given away", "manual_failover.c",
          "clusterMapOwner(m, slot) == primary && !clusterMapIsClaimed(m, slot)",
          "!FAULT && clusterMapOwner(m, slot) == primary && !clusterMapIsClaimed(m, slot)"),
]
# replication-quorum.
QUORUM_CLUSTER = [
    Fault("too few replicas agree", "election.c",
          "- rules->quorum + 1, count = 0;", "- rules->quorum + !FAULT, count = 0;"),
    Fault("offsets are not compared", "election.c",
          "if (r->offset > myself->offset) return false;",
          "if (r->offset > myself->offset && !FAULT) return false;"),
    Fault("a replica in a full synchronisation counts", "election.c",
          "if (!agrees || !r->offset) continue;", "if (!agrees || (!r->offset && !FAULT)) continue;"),
    Fault("replicas count that do not know of the failure", "election.c",
          "(r->flags & NODE_PRIMARY_FAILED && now_ms - r->heard_ms <= rules->timeout_ms);",
          "((FAULT || r->flags & NODE_PRIMARY_FAILED) && now_ms - r->heard_ms <= rules->timeout_ms);", first=1400),
    Fault("offsets of two streams are compared", "election.c",
          "if (r->stream != myself->stream) continue;", "if (!FAULT && r->stream != myself->stream) continue;"),
    Fault("what a replica had before counts", "bus.c",
          "bool counts = !b->server.quorum ||", "bool counts = FAULT || !b->server.quorum ||"),
    Fault("the lease is not waited for", "election.c",
          "return now_ms - e->agreed_ms >= rules->lease_ms",
          "return FAULT || now_ms - e->agreed_ms >= rules->lease_ms", first=1600),
    Fault("a replica acknowledges after it has told of the failure", "bus_hold.c",
          "b->procs->holdAcks(b->arg, is_held &&", "b->procs->holdAcks(b->arg, (!FAULT || isWinner(m)) && is_held &&"),
    Fault("a winner confirms before others know of it", "bus_hold.c",
          "clusterMapSetHold(m, on ? b->election.primary_id : NULL,",
          "clusterMapSetHold(m, on && !FAULT ? b->election.primary_id : NULL,", first=1700),
]
QUORUM_REPL = [
    Fault("one acknowledgement too few", "primary.c",
          "return greatest[count - 1];", "return greatest[FAULT && count > 1 ? count - 2 : count - 1];"),
    Fault("everything counts as confirmed", "quorum.c",
          "bool more = offset > q->confirmed;",
          "if (FAULT && offset) offset = q->written;\n    bool more = offset > q->confirmed;"),
    Fault("former connections count", "primary.c",
          "if (!peerConfirms(peer)) continue;", "if (!peerConfirms(peer) && !(FAULT && peer->is_former)) continue;"),
    Fault("the lease is too long", "quorum.c",
          "    hotCheck(!q->refuses);", "    if (FAULT) q->settings.lease_ms *= 2;\n    hotCheck(!q->refuses);"),
    # "The lease is counted from the confirmation" is found too seldom: test_quorum.c has it.
    Fault("what a new primary has counts as confirmed", "quorum.c",
          ".written = offset,", ".written = offset,\n                      .confirmed = FAULT ? offset : 0,"),
]
REPLICATION = [
    Fault("a replica acknowledges what it has not applied", "link.c",
          "    limitAck(link, &offset);", "    if (FAULT) offset += 14;\n    limitAck(link, &offset);"),
    Fault("an empty primary replaces the data of its replica", "birth.c",
          "return b->is_new && !sliceIs(kept, b->id);", "return !FAULT && b->is_new && !sliceIs(kept, b->id);"),
]
# replication-quorum of the servers that Sentinel watches.
QUORUM_SENTINEL = [
    Fault("too few replicas are there", "quorum_choice.c",
          "- quorumOf(primary) + 1;", "- quorumOf(primary) + !FAULT;"),
    Fault("the replica with the least data is chosen", "quorum_choice.c",
          "if (a->offset != b->offset) return a->offset > b->offset;",
          "if (a->offset != b->offset) return FAULT ? a->offset < b->offset : a->offset > b->offset;", first=500),
    Fault("a replica that has not caught up counts", "quorum_choice.c",
          "i->sync.repl_quorum && i->sync.has_caught_up &&",
          "i->sync.repl_quorum && (FAULT || i->sync.has_caught_up) &&"),
    Fault("only one replica acknowledges nothing more", "quorum_choice.c",
          ") hold(v, i);", ")\n        if (!FAULT || &i->node == listFirst(&primary->replicas)) hold(v, i);"),
    Fault("only one replica acknowledges nothing more", "quorum_choice.c",
          "if (c.held < needed)", "if (c.held < (FAULT ? 1 : needed))"),
    Fault("only one replica acknowledges nothing more", "quorum_choice.c",
          "if (c.silent < needed)", "if (c.silent < (FAULT ? 1 : needed))"),
    Fault("only one replica acknowledges nothing more", "quorum_choice.c",
          "if (c.safe < needed ||", "if (c.safe < (FAULT ? 1 : needed) ||"),
    Fault("the lease is not waited for", "quorum_choice.c",
          "return await(v, primary, has_lease);", "{\n        if (!FAULT) return await(v, primary, has_lease);\n    }"),
]
# The scenario that has to find the faults of a table, and the folder of its files.
TABLES = [("cluster", "bus", CLUSTER), ("quorum", "bus", QUORUM_CLUSTER), ("quorum", "psync", QUORUM_REPL),
          ("replication", "psync", REPLICATION),
          ("voters", "bus", VOTERS), ("slots", "bus", SLOTS), ("claims", "bus", CLAIMS), ("sentinel", "monitor", SENTINEL),
          ("sentinel", "monitor", QUORUM_SENTINEL)]
FAULTS = [f._replace(scenario=scenario, file=f.file if "/" in f.file else f"{folder}/{f.file}")
          for scenario, folder, faults in TABLES for f in faults]
# The number of a fault is that of its first entry.
NUMBERS = {(f.scenario, f.name): n for n, f in reversed(list(enumerate(FAULTS, 1)))}


def write(name):
    text = (SOURCE / name).read_text()
    before = f'extern int sim_fault;\n#line 1 "src/{name}"\n'
    for fault in FAULTS:
        if fault.file != name:
            continue
        switch = f"(sim_fault == {NUMBERS[fault.scenario, fault.name]})"
        new = fault.new.replace("FAULT", switch)
        count = text.count(fault.old)
        if count != 1:
            sys.exit(f"tests/sim/faults.py: {fault.name}: its text is {count} times in {name}")
        text = text.replace(fault.old, new)
    print(before + text, end="")


def run(program, number, seeds):
    """Returns the seed with which a fault is found, or None, and what the simulation printed."""
    command = [program, "--fault", str(number), "--scenario", FAULTS[number - 1].scenario,
               "--first", str(FAULTS[number - 1].first), "--seeds", str(seeds)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    found = re.search(r"^FAILED \S+ seed (\d+) at \d+ ms: (.*)", result.stdout, re.M)
    return (int(found[1]), found[2]) if found else (None, result.stdout + result.stderr)


def find(program, seeds, only):
    """Runs all faults; returns the number of those that are not found."""
    chosen = sorted(n for fault, n in NUMBERS.items() if not only or only in fault)
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, (seed, text) in zip(chosen, pool.map(lambda n: run(program, n, seeds), chosen)):
            if seed is None:
                missed += 1
                print(f"FAILED  {FAULTS[number - 1].name}: not found in {seeds} seeds\n{text}")
            else:
                print(f"{FAULTS[number - 1].file}: {FAULTS[number - 1].name}: found at seed {seed}: {text}")
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--seeds", type=int, default=4000)
    parser.add_argument("--only", metavar="NAME", help="of a fault, or a scenario")
    parser.add_argument("program", nargs="?")
    args = parser.parse_args()
    if args.write:
        write(args.write)
    elif args.program:
        sys.exit(1 if find(args.program, args.seeds, args.only) else 0)
    else:
        parser.error("neither --write nor a program")


if __name__ == "__main__":
    main()

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elects a replica in place of a failed primary: this node as a candidate, and as a voter
 * (election.h).
 *
 * Invariant: a node votes at most once in an epoch; the epoch of its vote is stored in the map,
 * which is flushed to disk before the vote is sent. A candidate counts each voter once in an
 * election, and no vote for an earlier one. */
#include "bus/election.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/map_blacklist.h"
#include "bus/topology.h"
#include "bus/voters.h"

enum {
    DELAY_DIVISOR = 30,
    DELAY_MAX_MS = 500,
    NO_DATA_DELAY_MS = 500,
    SILENT_DIVISOR = 4,   /* of a timeout */
    VOTES_MIN_MS = 2000,  /* votes are awaited for two timeouts, at least so long */
    SAFE_AFTER_MS = 2000, /* a node that has just started does not vote */
    LEASE_MARGIN = 50,    /* a lease is waited for a 50th longer: clocks differ in speed */
};

/* ------------------------------------------------------------------ ranks and delays */

static int64_t unitMs(const electionRules *rules) {
    int64_t d = rules->timeout_ms / DELAY_DIVISOR;
    check(rules->timeout_ms >= 0);
    if (d < 1) d = 1;
    return d > DELAY_MAX_MS ? DELAY_MAX_MS : d;
}

static int64_t votesMs(const electionRules *rules) {
    int64_t twice = 2 * rules->timeout_ms;
    return twice < VOTES_MIN_MS ? VOTES_MIN_MS : twice;
}

/* True if this node and all its siblings compare the replicas of their primary by priority. A
 * sibling that does not understand priorities is told none and tells none. If the others compared
 * by priority, both sides could regard the other one as the better, take the same rank and split
 * the votes in each election. A sibling that was not heard since the start of this node counts as
 * one that understands them. */
static bool areComparedByPriority(const clusterMap *m) {
    const clusterNode *primary = m->myself->primary;
    for (int i = 0; i < primary->replica_count; i++) {
        const clusterNode *r = primary->replicas[i];
        if (r == m->myself || r->flags & NODE_NO_FAILOVER) continue;
        if (r->heard_ms && !r->takes_priority) return false;
    }
    return true;
}

/* True if replica `a` is preferred to replica `b`: first a replica with data, then the one with the
 * lower cluster-replica-priority, then the one with more data, then the one with the smaller id. */
static bool isBetter(const clusterNode *a, const clusterNode *b, bool by_priority) {
    check(a != b);
    if (!a->offset != !b->offset) return a->offset != 0;
    if (by_priority && a->replica_priority != b->replica_priority)
        return a->replica_priority < b->replica_priority;
    if (a->offset != b->offset) return a->offset > b->offset;
    return memcmp(a->id, b->id, NODE_ID_LEN) < 0;
}

/* The number of replicas of the same primary that are better than this one. */
static int rankOf(const clusterMap *m) {
    const clusterNode *myself = m->myself, *primary = myself->primary;
    check(primary);
    bool by_priority = areComparedByPriority(m);
    int rank = 0;
    for (int i = 0; i < primary->replica_count; i++) {
        const clusterNode *r = primary->replicas[i];
        if (r == myself || r->flags & NODE_NO_FAILOVER) continue;
        rank += isBetter(r, myself, by_priority);
    }
    check(rank < primary->replica_count);
    return rank;
}

/* True for a primary that is marked as failed, or that has not replied for a while and will be
 * marked soon if its process has ended. PINGs are sent every half timeout. */
static bool isFailing(const clusterNode *n, const electionRules *rules, int64_t now_ms) {
    int64_t silent_ms = rules->timeout_ms / SILENT_DIVISOR;
    if (n->flags & NODE_FAILED)
        return now_ms - n->failed_ms <= rules->timeout_ms * rules->validity_factor;
    if (n->flags & NODE_MAYBE_FAILED || n->refused_ms) return true;
    return n->ping_sent_ms && now_ms - n->ping_sent_ms > silent_ms &&
           now_ms - n->heard_ms > silent_ms;
}

/* The number of failing primaries with replicas whose election comes first, so that votes are not
 * split. All candidates have the same order, also if several primaries are gone at once and are
 * marked one after the other. */
static int failedRankOf(const clusterMap *m, const electionRules *rules, int64_t now_ms) {
    int rank = 0;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (n == m->myself || !clusterNodeVotes(n) || !n->replica_count) continue;
        if (!isFailing(n, rules, now_ms)) continue;
        rank += memcmp(n->shard_id, m->myself->shard_id, NODE_ID_LEN) < 0;
    }
    return rank;
}

/* True if all replicas of the primary report its failure and this one is the best of them. */
static bool mayStartAtOnce(const clusterMap *m, const election *e) {
    check(e->step == ELECTION_DELAYED);
    const clusterNode *primary = m->myself->primary;
    if (e->rank || e->failed_rank || e->refusals || !m->myself->offset) return false;
    for (int i = 0; i < primary->replica_count; i++) {
        const clusterNode *r = primary->replicas[i];
        if (r != m->myself && !(r->flags & NODE_PRIMARY_FAILED)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ what the log tells */

enum reasonToWait {
    WAIT_NOTHING,
    WAIT_DATA_AGE,
    WAIT_MEMBER,
    WAIT_DELAY,
    WAIT_QUORUM,
    WAIT_VOTES,
    WAIT_EXPIRED
};

static const char *const wait_texts[] = {
    [WAIT_DATA_AGE] = "Disconnected from primary for longer than allowed. Please check the "
                      "'cluster-replica-validity-factor' configuration option.",
    [WAIT_MEMBER] = "The primary was not among the voters yet when it failed "
                    "(cluster-replicas-vote).",
    [WAIT_DELAY] = "Waiting the delay before I can start a new failover.",
    [WAIT_QUORUM] = "Waiting for replicas: enough of them must know of the failure, and none of "
                    "these have more data (replication-quorum).",
    [WAIT_VOTES] = "Waiting for votes, but majority still not reached.",
    [WAIT_EXPIRED] = "Failover attempt expired.",
};

/* The copy is too old to be promoted without an order; there may be no other one. */
static void tellLoss(const clusterMap *m) {
    long long own = (long long)m->myself->offset, end = (long long)m->myself->primary->offset;
    if (!own) {
        logWarning("This replica has no complete dataset: CLUSTER FAILOVER TAKEOVER would lose all "
                   "keys of %d slots.",
                   m->myself->primary->slot_count);
    } else if (end > own) {
        logWarning("The dataset of this replica ends at offset %lld, its primary had %lld: CLUSTER "
                   "FAILOVER TAKEOVER promotes this replica, and the changes of the last %lld "
                   "bytes are lost.",
                   own, end, end - own);
    } else {
        logWarning("The dataset of this replica ends at offset %lld: CLUSTER FAILOVER TAKEOVER "
                   "promotes this replica, and what its primary has changed since is lost.",
                   own);
    }
}

/* Tells why there is no failover so far, if the reason is new or some seconds have passed. */
static void tellWaiting(election *e, const clusterMap *m, enum reasonToWait why, int64_t now_ms) {
    enum { PERIOD_S = 1, DATA_AGE_PERIOD_S = 10 };
    int64_t period_s = why == WAIT_DATA_AGE ? DATA_AGE_PERIOD_S : PERIOD_S;
    check(why != WAIT_NOTHING);
    if (e->told_reason == (int)why && now_ms / 1000 - e->told_ms / 1000 < period_s) return;
    e->told_reason = (int)why;
    e->told_ms = now_ms;
    logNotice("Currently unable to failover: %s", wait_texts[why]);
    if (why == WAIT_DATA_AGE) tellLoss(m);
    if (why == WAIT_VOTES || why == WAIT_EXPIRED)
        logNotice("Needed quorum: %d. Number of votes received so far: %d", votersQuorum(m),
                  e->votes);
}

/* ------------------------------------------------------------------ the candidate */

static void stop(election *e) {
    e->step = ELECTION_IDLE;
    e->told_reason = WAIT_NOTHING;
    e->refusals = 0;
}

/* The delay after an election that ended because voters refused. It doubles with each such election
 * in a row, until elections are as rare as those that expire. */
static int64_t backoffMs(const election *e, const electionRules *rules) {
    enum { DOUBLED_MAX = 10 };
    if (!e->refusals) return 0;
    int doubled = e->refusals - 1 < DOUBLED_MAX ? e->refusals - 1 : DOUBLED_MAX;
    int64_t d = unitMs(rules), most_ms = 2 * votesMs(rules), ms = d << doubled;
    check(ms > 0);
    return (ms < most_ms ? ms : most_ms) + (int64_t)randomUniform((uint64_t)d);
}

static int64_t delayOf(const election *e, const clusterMap *m, const electionRules *rules) {
    int64_t d = unitMs(rules);
    int64_t delay = d + (int64_t)randomUniform((uint64_t)d) + e->rank * 2 * d + e->failed_rank * d;
    check(delay > 0);
    return m->myself->offset ? delay : delay + NO_DATA_DELAY_MS;
}

static void begin(election *e, const clusterMap *m, const electionRules *rules, int64_t now_ms) {
    check(e->step == ELECTION_IDLE);
    *e = (election){
        .step = ELECTION_DELAYED, .force = rules->manual_end_ms != 0, .refusals = e->refusals};
    int64_t delay = backoffMs(e, rules);
    memcpy(e->primary_id, m->myself->primary->id, NODE_ID_LEN);
    if (!rules->manual_end_ms) {
        e->rank = rankOf(m);
        e->failed_rank = failedRankOf(m, rules, now_ms);
        delay += delayOf(e, m, rules);
    }
    e->start_ms = now_ms + delay;
    e->seen_epoch = m->current_epoch;
    /* A replica that is linked gets all data of its primary before an ordered failover. */
    bool is_linked = rules->manual_end_ms && !rules->data_age_ms;
    if (!m->myself->offset && !is_linked)
        logWarning("This replica has got no data of its primary so far: its promotion would lose "
                   "all keys of %d slots.",
                   m->myself->primary->slot_count);
    if (!rules->manual_end_ms && mayStartAtOnce(m, e)) {
        logNotice("This is the best ranked replica and can initiate the election immediately.");
        e->force = true;
        e->start_ms = now_ms;
        delay = 0;
    }
    logNotice("Start of election delayed for %lld milliseconds (rank #%d, primary rank #%d, offset "
              "%lld, replica priority %d).",
              (long long)delay, e->rank, e->failed_rank, (long long)m->myself->offset,
              m->myself->replica_priority);
}

/* Updates the ranks and the delay: other replicas may have sent their offsets, or have failed. */
static void updateRanks(election *e, const clusterMap *m, const electionRules *rules,
                        int64_t now_ms) {
    int rank = rankOf(m), failed_rank = failedRankOf(m, rules, now_ms);
    int64_t d = unitMs(rules);
    if (rank > e->rank) {
        int64_t added = (rank - e->rank) * 2 * d;
        logNotice("Replica rank updated to #%d, added %lld milliseconds of delay.", rank,
                  (long long)added);
        e->start_ms += added;
    }
    if (failed_rank > e->failed_rank) {
        int64_t added = (failed_rank - e->failed_rank) * d;
        logNotice("Failed primary rank updated to #%d, added %lld milliseconds of delay.",
                  failed_rank, (long long)added);
        e->start_ms += added;
    }
    e->rank = rank;
    e->failed_rank = failed_rank;
    if (m->current_epoch == e->seen_epoch) return;
    /* Another election has begun. Those that wait start after it, one by one. */
    e->seen_epoch = m->current_epoch;
    if (e->start_ms < now_ms + failed_rank * d) e->start_ms = now_ms + failed_rank * d;
}

/* A manual failover ends before the primary accepts writes again. */
static int64_t endOf(const electionRules *rules, int64_t now_ms) {
    int64_t end_ms = now_ms + votesMs(rules);
    return rules->manual_end_ms && rules->manual_end_ms < end_ms ? rules->manual_end_ms : end_ms;
}

static electionActs ask(election *e, clusterMap *m, const electionRules *rules, int64_t now_ms) {
    check(e->step == ELECTION_DELAYED);
    check(m->myself->flags & NODE_REPLICA);
    uint64_t epoch = clusterMapNextEpoch(m);
    if (epoch == m->current_epoch) return (electionActs){0}; /* there is none */
    /* A member votes for itself: that is on disk before others are asked. */
    bool votes = clusterNodeIsVoter(m, m->myself);
    clusterMapSetEpochs(m, epoch, votes ? epoch : m->vote_epoch);
    e->step = ELECTION_ASKED;
    e->asked = true;
    e->start_ms = now_ms;
    e->end_ms = endOf(rules, now_ms);
    e->epoch = epoch;
    e->votes = votes;
    e->voters = m->voters.stamp;
    e->has_data = m->myself->offset != 0;
    logNotice("Starting a failover election for epoch %llu, node config epoch is %llu",
              (unsigned long long)e->epoch, (unsigned long long)m->myself->primary->epoch);
    return (electionActs){.ask = true};
}

int64_t electionHoldMs(int64_t timeout_ms) {
    /* A candidate counts reports of up to a timeout ago, and then waits for votes. */
    const electionRules rules = {.timeout_ms = timeout_ms};
    return 2 * timeout_ms + votesMs(&rules);
}

/* Nodes of the shard that may be replicas of its primary. Others may know sooner than this one that
 * a former primary is one. */
static int countReplicas(const clusterMap *m, const clusterNode *primary) {
    int count = 0;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        count += n->primary == primary || (n != primary && clusterNodesShareShard(n, primary));
    }
    check(count >= primary->replica_count);
    return count;
}

/* Whatever was acknowledged by `quorum` replicas is here: one of any (replicas - quorum + 1) has
 * acknowledged it, in the present stream or in an earlier one, and has that much of the data of the
 * present one. */
static bool hasAllConfirmed(const clusterMap *m, const electionRules *rules, int64_t now_ms) {
    const clusterNode *myself = m->myself, *primary = myself->primary;
    int needed = countReplicas(m, primary) - rules->quorum + 1, count = 0;
    check(rules->quorum > 0);
    for (int i = 0; i < primary->replica_count; i++) {
        const clusterNode *r = primary->replicas[i];
        bool agrees = r == myself ||
                      (r->flags & NODE_PRIMARY_FAILED && now_ms - r->heard_ms <= rules->timeout_ms);
        if (!agrees || !r->offset) continue; /* 0: its dataset is incomplete */
        /* The primary has begun another stream since one of the two was linked to it. */
        if (r->stream != myself->stream) continue;
        if (r->offset > myself->offset) return false;
        count++;
    }
    return count > 0 && count >= needed;
}

/* Whether the primary may be replaced as far as replication-quorum is concerned. */
static bool quorumAllows(election *e, const clusterMap *m, const electionRules *rules,
                         int64_t now_ms) {
    if (!rules->quorum) return true;
    if (!hasAllConfirmed(m, rules, now_ms)) {
        e->agreed_ms = 0;
        return false;
    }
    if (!e->agreed_ms) e->agreed_ms = now_ms;
    return now_ms - e->agreed_ms >= rules->lease_ms + rules->lease_ms / LEASE_MARGIN;
}

bool electionMayForce(const clusterMap *m, int quorum, int64_t timeout_ms, int64_t now_ms) {
    const electionRules rules = {.quorum = quorum, .timeout_ms = timeout_ms};
    if (!quorum) return true;
    /* Only then it acknowledges nothing more, which the lease depends on. */
    return m->myself->flags & NODE_PRIMARY_FAILED && hasAllConfirmed(m, &rules, now_ms);
}

static electionActs delayed(election *e, clusterMap *m, const electionRules *rules,
                            int64_t now_ms) {
    check(memcmp(e->primary_id, m->myself->primary->id, NODE_ID_LEN) == 0);
    bool is_manual = rules->manual_end_ms != 0;
    if (is_manual && e->refusals && now_ms < e->start_ms) return (electionActs){0};
    /* By an order without FORCE the primary works, and this replica has all that it confirmed. */
    if (is_manual && !rules->is_forced) return ask(e, m, rules, now_ms);
    if (!is_manual) updateRanks(e, m, rules, now_ms);
    if (!quorumAllows(e, m, rules, now_ms)) {
        tellWaiting(e, m, WAIT_QUORUM, now_ms);
        return (electionActs){0};
    }
    if (now_ms >= e->start_ms || is_manual) return ask(e, m, rules, now_ms);
    if (mayStartAtOnce(m, e)) {
        logNotice("Myself become the best ranked replica, initiate the election immediately.");
        e->force = true;
        return ask(e, m, rules, now_ms);
    }
    tellWaiting(e, m, WAIT_DELAY, now_ms);
    return (electionActs){0};
}

/* Whether this node is a replica that has to replace its primary. */
static bool mustReplace(election *e, const clusterMap *m, const electionRules *rules,
                        int64_t now_ms) {
    const clusterNode *primary = m->myself->primary;
    if (!primary || !primary->slot_count) return false;
    if (rules->manual_end_ms) return true;
    if (!(primary->flags & NODE_FAILED) || !rules->allowed) return false;
    if (m->voters.rule == VOTERS_ALL && !primary->is_member) {
        tellWaiting(e, m, WAIT_MEMBER, now_ms);
        return false;
    }
    if (!rules->data_age_max_ms || rules->data_age_ms <= rules->data_age_max_ms) return true;
    tellWaiting(e, m, WAIT_DATA_AGE, now_ms);
    return false;
}

/* This node tells others whether it regards its primary as failed. */
static void updateOwnFlag(clusterMap *m) {
    const clusterNode *primary = m->myself->primary;
    bool failed = primary && primary->flags & NODE_FAILED;
    clusterMapSetFlags(m, m->myself, failed ? NODE_PRIMARY_FAILED : 0,
                       failed ? 0 : NODE_PRIMARY_FAILED);
}

electionActs electionTick(election *e, clusterMap *m, const electionRules *rules, int64_t now_ms) {
    electionActs acts = {0};
    updateOwnFlag(m);
    if (!mustReplace(e, m, rules, now_ms)) {
        e->step = ELECTION_IDLE;
        e->refusals = 0;
        return acts;
    }
    if (memcmp(e->primary_id, m->myself->primary->id, NODE_ID_LEN) != 0) stop(e);
    if (e->step == ELECTION_IDLE) {
        begin(e, m, rules, now_ms);
        acts.tell_replicas = !rules->manual_end_ms;
        if (e->start_ms > now_ms) return acts;
    }
    switch (e->step) {
    case ELECTION_IDLE: break;
    case ELECTION_DELAYED: acts.ask = delayed(e, m, rules, now_ms).ask; break;
    case ELECTION_ASKED:
        if (now_ms > e->end_ms) e->step = ELECTION_EXPIRED;
        tellWaiting(e, m, e->step == ELECTION_ASKED ? WAIT_VOTES : WAIT_EXPIRED, now_ms);
        break;
    case ELECTION_EXPIRED:
        if (now_ms - e->start_ms > 2 * votesMs(rules)) {
            stop(e);
        } else {
            tellWaiting(e, m, WAIT_EXPIRED, now_ms);
        }
        break;
    }
    return acts;
}

static void win(election *e, clusterMap *m) {
    const clusterNode *primary = m->myself->primary;
    check(primary);
    logNotice("Failover election won: I'm the new primary.");
    logNotice("configEpoch set to %llu after successful failover", (unsigned long long)e->epoch);
    logNotice("Setting myself to primary in shard %.40s after failover; my old primary is %s",
              m->myself->shard_id, clusterNodeLabel(primary).text);
    topologyPromote(m, e->epoch);
    /* The place of its primary among the voters has voted in this epoch: for this node. */
    if (m->vote_epoch < e->epoch) clusterMapSetEpochs(m, m->current_epoch, e->epoch);
    check(m->myself->flags & NODE_PRIMARY);
    check(m->myself->epoch == e->epoch);
    e->asked = false;
    stop(e);
}

electionActs electionVote(election *e, clusterMap *m, clusterNode *from, const messageHeader *h,
                          int64_t now_ms) {
    const clusterNode *primary = m->myself->primary;
    if (e->step != ELECTION_ASKED || now_ms > e->end_ms || !clusterNodeIsVoter(m, from))
        return (electionActs){0};
    /* The request was sent with another set of voters. */
    if (voterStampCompare(e->voters, m->voters.stamp) != 0) return (electionActs){0};
    if (h->current_epoch < e->epoch || from->ack_epoch == e->epoch) return (electionActs){0};
    /* The votes were requested to replace this primary, and no other. */
    if (!primary || memcmp(e->primary_id, primary->id, NODE_ID_LEN) != 0) return (electionActs){0};
    /* A synchronisation has begun since. */
    if (e->has_data && !m->myself->offset) return (electionActs){0};
    from->ack_epoch = e->epoch;
    e->votes++;
    const voterBallot b = {m, e->epoch};
    if (!votersAgree(m, voterHasVoted, &b)) return (electionActs){0};
    win(e, m);
    return (electionActs){.won = true};
}

/* ------------------------------------------------------------------ refused votes */

static const struct {
    const char *word;
    bool counts; /* true: the voter gives no vote in this epoch any more */
} nack_reasons[NACK_REASONS] = {
    [NACK_NONE] = {"unknown", false},
    [NACK_NOT_SAFE] = {"not-safe", false},
    [NACK_EPOCH_OLD] = {"req-epoch-old", true},
    [NACK_ALREADY_VOTED] = {"already-voted", true},
    [NACK_IS_PRIMARY] = {"req-is-primary", false},
    [NACK_NO_PRIMARY] = {"no-primary", false},
    [NACK_PRIMARY_UP] = {"primary-up", false},
    [NACK_STALE_CONFIG] = {"stale-config", true},
};

static bool voterMayVote(const void *arg, const clusterNode *n) {
    const voterBallot *b = arg;
    if (voterHasVoted(arg, n)) return true;
    return n != b->map->myself && n->nack_epoch != b->epoch && !(n->flags & NODE_FAILED);
}

void electionNack(election *e, const clusterMap *m, clusterNode *from, uint64_t epoch,
                  unsigned why) {
    if (e->step != ELECTION_ASKED || epoch != e->epoch || !clusterNodeIsVoter(m, from)) return;
    unsigned row = why < NACK_REASONS ? why : NACK_NONE;
    unsigned long long shown = epoch;
    if (!nack_reasons[row].counts) {
        logNotice("Ignoring failover auth NACK (reason %s) from %s for epoch %llu",
                  nack_reasons[row].word, clusterNodeLabel(from).text, shown);
        return;
    }
    if (from->nack_epoch == epoch) return;
    from->nack_epoch = epoch;
    e->nacks++;
    int quorum = votersQuorum(m);
    logNotice("Failover auth NACK (reason %s) from %s for epoch %llu (NACKs %d, quorum %d)",
              nack_reasons[row].word, clusterNodeLabel(from).text, shown, e->nacks, quorum);
    const voterBallot b = {m, epoch};
    if (votersAgree(m, voterMayVote, &b)) return;
    logWarning("Failover election for epoch %llu cannot reach quorum: votes %d, NACKs %d, quorum "
               "%d. Resetting the election.",
               shown, e->votes, e->nacks, quorum);
    int refusals = e->refusals + 1;
    e->asked = false;
    stop(e);
    e->refusals = refusals;
}

void electionClaim(election *e, const clusterMap *m, const clusterNode *claimer, uint64_t epoch) {
    if (e->step != ELECTION_ASKED || epoch < e->epoch || claimer == m->myself) return;
    if (!clusterNodeVotes(claimer)) return;
    /* In another shard the same epoch means that the majority has voted for that one. */
    if (!clusterNodesShareShard(claimer, m->myself) && epoch != e->epoch) return;
    logWarning("Failover election in progress for epoch %llu, but received a claim from node %s "
               "with an equal or higher epoch %llu. Resetting the election since we cannot win an "
               "election in the past.",
               (unsigned long long)e->epoch, clusterNodeLabel(claimer).text,
               (unsigned long long)epoch);
    e->asked = false;
    stop(e);
}

void electionReset(election *e) {
    if (e->asked)
        logWarning("Failover election in progress for epoch %llu, but received a new manual "
                   "failover. Resetting the election.",
                   (unsigned long long)e->epoch);
    e->asked = false;
    stop(e);
}

int electionCountUnsynced(const clusterMap *m) {
    int count = 0;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (!(n->flags & NODE_FAILED) || !clusterNodeVotes(n)) continue;
        count += clusterNodeIsUnsynced(n);
    }
    check(count <= m->node_count);
    return count;
}

/* ------------------------------------------------------------------ members without quorum */

/* Since its start this node may not have heard the primary, or the primary was forgotten (NULL):
 * then the others of the shard, and this node's own directive, are what is known. */
static bool hasQuorum(const clusterMap *m, const clusterNode *primary) {
    if (primary && (primary == m->myself || primary->heard_ms)) return primary->stream != 0;
    for (int i = 0; primary && i < primary->replica_count; i++) {
        if (primary->replicas[i]->stream) return true;
    }
    return m->myself->stream != 0;
}

bool electionLacksQuorum(const clusterMap *m, const clusterNode *n) {
    if (n == m->myself || !n->primary || !n->heard_ms || n->flags & NODE_HANDSHAKE) return false;
    return !n->stream && hasQuorum(m, n->primary);
}

void electionTellLacking(clusterMap *m, int64_t timeout_ms, int64_t now_ms) {
    for (int i = 0; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        bool lacks = electionLacksQuorum(m, n);
        if (!lacks) {
            n->lacking_ms = 0;
            continue;
        }
        if (!n->lacking_ms) n->lacking_ms = now_ms;
        if (n->lacking_ms < 0 || now_ms - n->lacking_ms < timeout_ms) continue;
        n->lacking_ms = -1;
        logWarning("Node %s does not take part in replication-quorum, as its primary does: it "
                   "confirms no writes, and this node will not vote for it when the primary has "
                   "failed. CLUSTER FAILOVER TAKEOVER on it would lose acknowledged writes.",
                   clusterNodeLabel(n).text);
    }
}

/* ------------------------------------------------------------------ the voter */

static electionVerdict deny(const clusterNode *candidate, enum nackReason nack, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

static electionVerdict deny(const clusterNode *candidate, enum nackReason nack, const char *format,
                            ...) {
    str why = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&why, format, args);
    va_end(args);
    logWarning("Failover auth denied to %s%s", clusterNodeLabel(candidate).text, strText(&why));
    strFree(&why);
    return (electionVerdict){.nack = nack};
}

/* A slot that the candidate claims with an epoch lower than its owner's; -1: there is none. */
static int outdatedSlot(const clusterMap *m, const messageHeader *h) {
    for (int word = 0; word < SLOT_WORDS; word++) {
        for (uint64_t claimed = messageSlotWord(h->slots, word); claimed;) {
            int slot = messageTakeSlot(&claimed, word);
            const clusterNode *owner = clusterMapOwner(m, slot);
            if (owner && owner->epoch > h->epoch) return slot;
        }
    }
    return -1;
}

/* A failing primary was forgotten here before its replica, which cannot forget it, was elected: its
 * slots have no owner since, so nobody else can have replaced it. */
static bool hasForgottenPrimary(const clusterMap *m, const messageHeader *h) {
    if (!h->primary || !clusterMapWasForgotten(m, sliceMake(h->primary, NODE_ID_LEN))) return false;
    for (int word = 0; word < SLOT_WORDS; word++)
        for (uint64_t claimed = messageSlotWord(h->slots, word); claimed;)
            if (clusterMapOwner(m, messageTakeSlot(&claimed, word))) return false;
    return true;
}

/* With a quorum: the replica that was ordered to replace this primary may have won an election that
 * has begun after the order. It then votes in the place of this primary in all later elections, so
 * this primary votes for others only in the first one. */
static bool hasSuccessor(const clusterMap *m, const clusterNode *candidate) {
    if (!m->paused_for[0] || m->current_epoch <= m->paused_epoch + 1) return false;
    return memcmp(m->paused_for, candidate->id, NODE_ID_LEN) != 0;
}

/* An order to replace a primary that works is for any replica: it waits for the end of the
 * stream. */
static bool mayLackConfirmed(const clusterMap *m, const clusterNode *candidate,
                             const messageHeader *h) {
    check(candidate != m->myself);
    bool works = h->flags & MESSAGE_FORCE_ACK && !(h->node_flags & NODE_PRIMARY_FAILED) &&
                 candidate->primary && !(candidate->primary->flags & NODE_FAILED);
    return !works && !h->stream && hasQuorum(m, candidate->primary);
}

/* With a quorum: this node was elected, and another one may have been after it that votes in the
 * same place (bus_hold.c). */
static bool mayHaveLaterWinner(const clusterMap *m) {
    return m->held_for[0] && clusterNodeVotesAsOwner(m, m->myself);
}

electionVerdict electionRequest(clusterMap *m, clusterNode *candidate, const messageHeader *h,
                                int64_t started_ms, int64_t now_ms) {
    if (!clusterNodeIsVoter(m, m->myself)) return (electionVerdict){0};
    if (!topologyAccepts(m, candidate, h->current_epoch, h->epoch)) return (electionVerdict){0};
    if (now_ms - started_ms < SAFE_AFTER_MS)
        return deny(candidate, NACK_NOT_SAFE, ": it is not safe to vote in this moment)");
    if (!votersTrust(m, h->voters))
        return deny(candidate, NACK_NOT_SAFE, ": its set of voters is outdated");
    unsigned long long asked = h->current_epoch, current = m->current_epoch;
    if (asked < current)
        return deny(candidate, NACK_EPOCH_OLD, ": reqEpoch (%llu) < curEpoch(%llu)", asked,
                    current);
    clusterMapSetEpochs(m, h->current_epoch, m->vote_epoch);
    if (m->vote_epoch == m->current_epoch)
        return deny(candidate, NACK_ALREADY_VOTED, ": already voted for epoch %llu", asked);
    if (candidate->flags & NODE_PRIMARY)
        return deny(candidate, NACK_IS_PRIMARY, " for epoch %llu: it is a primary node", asked);
    if (!candidate->primary && !hasForgottenPrimary(m, h))
        return deny(candidate, NACK_NO_PRIMARY, " for epoch %llu: I don't know its primary", asked);
    if (candidate->primary && !(candidate->primary->flags & NODE_FAILED) &&
        !(h->flags & MESSAGE_FORCE_ACK))
        return deny(candidate, NACK_PRIMARY_UP, " for epoch %llu: its primary is up", asked);
    if (mayLackConfirmed(m, candidate, h))
        return deny(candidate, NACK_NOT_SAFE,
                    " for epoch %llu: it has no replication-quorum, as its primary had, so it may "
                    "lack acknowledged writes",
                    asked);
    if (hasSuccessor(m, candidate))
        return deny(candidate, NACK_NOT_SAFE,
                    ": another replica may have replaced this primary by order");
    if (mayHaveLaterWinner(m))
        return deny(candidate, NACK_NOT_SAFE,
                    ": another replica may have been elected after this primary");
    int slot = outdatedSlot(m, h);
    if (slot >= 0) {
        clusterNode *owner = clusterMapOwner(m, slot);
        electionVerdict denied =
            deny(candidate, NACK_STALE_CONFIG, ": slot %d epoch (%llu) > reqConfigEpoch (%llu)",
                 slot, (unsigned long long)owner->epoch, (unsigned long long)h->epoch);
        denied.update = owner;
        return denied;
    }
    check(candidate != m->myself);
    check(m->current_epoch == h->current_epoch);
    clusterMapSetEpochs(m, m->current_epoch, m->current_epoch);
    logNotice("Failover auth granted to %s for epoch %llu", clusterNodeLabel(candidate).text,
              asked);
    return (electionVerdict){.granted = true};
}

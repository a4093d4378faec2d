/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_rules.h"

#include "base/base.h"
#include "cluster_data.h"
#include "bus/map_blacklist.h"
#include "bus/voters.h"
#include "cluster_voter_rules.h"
#include "sim.h"

enum {
    EPOCHS_MAX = 4096,
    VOTE_AFTER_MS = 2000, /* a node that has started */
    REPORT_TIMEOUTS = 2,
    FORMER_MAX = 64,
};

/* What a candidate has claimed when it asked for votes. */
typedef struct request {
    uint64_t epoch, claim_epoch;
    char primary[NODE_ID_LEN]; /* that it followed then */
    bool force;
    bool about_voters; /* to change the set of voters */
    voterStamp voters; /* the set of the candidate */
    uint64_t slots[SLOT_WORDS];
} request;

/* Of a node that has another id now. */
typedef struct formerVotes {
    char id[NODE_ID_LEN];
    uint8_t vote_of[EPOCHS_MAX];
} formerVotes;

/* An election. */
typedef struct victory {
    int winner;      /* host + 1; 0: nobody has won */
    bool by_primary; /* the primary that it replaces has voted for the winner */
    voterRule rule;
} victory;

/* The requests for votes that a process has made, with its own vote or without it. They leave it
 * later, and meanwhile it may vote for another node in that epoch. */
typedef struct decisions {
    int64_t started_ms;
    uint8_t of[EPOCHS_MAX];
} decisions;

enum { ASKS_WITHOUT_VOTE = 1, ASKS_WITH_VOTE };

static struct {
    bool strict;
    victory won[EPOCHS_MAX];                        /* the last one */
    bool won_twice[EPOCHS_MAX];                     /* in one shard, by the rule of Valkey */
    bool taken_over[EPOCHS_MAX];                    /* without votes: others may have it, too */
    uint8_t vote_of[SIM_NODES_MAX + 1][EPOCHS_MAX]; /* host of the candidate + 1; 255: not known */
    request requests[SIM_NODES_MAX + 1];
    decisions decided[SIM_NODES_MAX + 1];
    formerVotes former[FORMER_MAX];
    int former_count;
} rules;

void rulesReset(bool strict) {
    memset(&rules, 0, sizeof(rules));
    rules.strict = strict;
    voterRulesReset();
}

bool rulesAreStrict(void) { return rules.strict; }

/* A node that begins with epoch 0 again may ask in an epoch in which it has asked before. */
static void forgetRequest(const simNode *n) {
    memset(&rules.requests[n->host], 0, sizeof(rules.requests[0]));
    memset(&rules.decided[n->host], 0, sizeof(rules.decided[0]));
}

void rulesRename(const simNode *n, const char old_id[NODE_ID_LEN]) {
    if (memcmp(n->map.myself->id, old_id, NODE_ID_LEN) == 0) return;
    if (rules.former_count == FORMER_MAX) simFail("too many resets");
    formerVotes *f = &rules.former[rules.former_count++];
    memcpy(f->id, old_id, NODE_ID_LEN);
    memcpy(f->vote_of, rules.vote_of[n->host], sizeof(f->vote_of));
    memset(rules.vote_of[n->host], 0, sizeof(rules.vote_of[0]));
    forgetRequest(n);
}

void rulesForgetVotes(const simNode *n) {
    memset(rules.vote_of[n->host], 0, sizeof(rules.vote_of[0]));
    forgetRequest(n);
    voterRulesForget(n);
}

static void checkRange(uint64_t epoch) {
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
}

/* ------------------------------------------------------------------ elections */

/* A replica that was without its primary for too long does not ask, unless it has an order. */
static void checkAge(const simNode *n) {
    const busRules *r = &n->bus.rules;
    int64_t most_ms = n->bus.server.repl_ping_ms + r->timeout_ms * (r->validity_factor + 1);
    if (!r->validity_factor || n->bus.manual.step == MANUAL_READY) return;
    int64_t age_ms = dataAge(n);
    if (age_ms < 0) simFail("node %d, which never had data, asks for votes", n->host);
    if (age_ms > most_ms)
        simFail("node %d asks for votes with data of %lld ms ago", n->host, (long long)age_ms);
}

void rulesAsks(const simNode *candidate, const messageHeader *h) {
    if (!(h->own_flags & MESSAGE_ABOUT_VOTERS)) checkAge(candidate);
    decisions *d = &rules.decided[candidate->host];
    checkRange(h->current_epoch);
    if (d->started_ms != candidate->started_ms) {
        memset(d, 0, sizeof(*d));
        d->started_ms = candidate->started_ms;
    }
    if (d->of[h->current_epoch]) return; /* the same for another receiver */
    bool votes = candidate->map.vote_epoch == h->current_epoch;
    d->of[h->current_epoch] = votes ? ASKS_WITH_VOTE : ASKS_WITHOUT_VOTE;
}

void rulesAsked(const simNode *candidate, const messageHeader *h) {
    request *r = &rules.requests[candidate->host];
    checkRange(h->current_epoch);
    /* The same for another receiver, or an earlier one. */
    if (r->epoch >= h->current_epoch) return;
    bool about_voters = h->own_flags & MESSAGE_ABOUT_VOTERS;
    *r = (request){.epoch = h->current_epoch,
                   .claim_epoch = h->epoch,
                   .force = h->flags & MESSAGE_FORCE_ACK,
                   .about_voters = about_voters,
                   .voters = h->voters};
    memcpy(r->slots, h->slots, sizeof(r->slots));
    if (h->primary) memcpy(r->primary, h->primary, NODE_ID_LEN);
    const decisions *d = &rules.decided[candidate->host];
    uint8_t decided = d->started_ms == candidate->started_ms ? d->of[h->current_epoch] : 0;
    if (!decided) simFail("node %d sends a request that it has not made", candidate->host);
    if (decided == ASKS_WITH_VOTE) rulesVoted(candidate, candidate, h->current_epoch);
}

/* The voter knows an owner with a greater epoch of a slot that the candidate has claimed. */
static void checkClaim(const simNode *voter, const request *r) {
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const clusterNode *owner = clusterMapOwner(&voter->map, slot);
        if (!(r->slots[slot / 64] >> slot % 64 & 1) || !owner) continue;
        if (owner->epoch > r->claim_epoch)
            simFail("node %d votes for an outdated claim of slot %d", voter->host, slot);
    }
}

/* The primary of the candidate was forgotten: nobody else has its slots, as far as the voter
 * knows. */
static void checkUnowned(const simNode *voter, const request *r) {
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (r->slots[slot / 64] >> slot % 64 & 1 && clusterMapOwner(&voter->map, slot))
            simFail("node %d votes for a replica of a forgotten node, whose slot %d has an owner",
                    voter->host, slot);
}

static void checkVote(const simNode *voter, const simNode *candidate, uint64_t epoch) {
    const request *r = &rules.requests[candidate->host];
    const clusterNode *seen = clusterMapFind(&voter->map, clusterNodeId(candidate->map.myself));
    bool is_other = r->epoch != epoch; /* it has asked again since */
    bool all_vote = (r->about_voters || is_other) && voter->map.voters.rule == VOTERS_OWNERS;
    if (!all_vote && !voterRulesMayVote(&voter->map, voter->map.myself))
        simFail("node %d votes and is no voter", voter->host);
    if (simNodeClock(voter) - voter->bus.started_ms < VOTE_AFTER_MS)
        simFail("node %d votes too soon after its start", voter->host);
    if (!seen || is_other) return;
    bool by_owners = voter->map.voters.rule == VOTERS_OWNERS && !r->voters.term;
    if (!by_owners && voterStampCompare(r->voters, voter->map.voters.stamp) < 0)
        simFail("node %d votes for a node with an earlier set of voters", voter->host);
    if (r->about_voters) return;
    /* FORGET of the primary: others may have told the voter of it before the request has arrived,
     * even if it was ordered after the election. */
    if (!seen->primary && clusterMapWasForgotten(&voter->map, sliceMake(r->primary, NODE_ID_LEN))) {
        checkUnowned(voter, r);
        return;
    }
    if (!seen->primary) simFail("node %d votes for a node that is no replica", voter->host);
    if (!(seen->primary->flags & NODE_FAILED) && !r->force)
        simFail("node %d votes against a primary that has not failed", voter->host);
    checkClaim(voter, r);
}

void rulesVoted(const simNode *voter, const simNode *candidate, uint64_t epoch) {
    checkRange(epoch);
    uint8_t *vote = &rules.vote_of[voter->host][epoch];
    if (rules.strict && *vote)
        simFail("node %d has voted twice in epoch %llu", voter->host, (unsigned long long)epoch);
    logNotice("node %d votes for node %d in epoch %llu", voter->host,
              candidate ? candidate->host : -1, (unsigned long long)epoch);
    *vote = candidate ? (uint8_t)(candidate->host + 1) : UINT8_MAX;
    node_counts.votes++;
}

void rulesVotes(const simNode *voter, const simNode *candidate, uint64_t epoch) {
    checkRange(epoch);
    /* When it decides: it may win the epoch while the vote waits to leave. */
    if (rules.strict && rules.won[epoch].winner == voter->host + 1)
        simFail("node %d votes in epoch %llu, which it has won", voter->host,
                (unsigned long long)epoch);
    if (candidate != voter) checkVote(voter, candidate, epoch);
}

/* Only nodes that understand it are told, and a candidate that has the vote is not told that it has
 * not. */
void rulesRefused(const simNode *voter, const simNode *candidate, const message *m) {
    checkRange(m->epoch);
    if (m->nack == NACK_NONE || m->nack >= NACK_REASONS)
        simFail("node %d refuses a vote for reason %u", voter->host, m->nack);
    if (!candidate) return;
    /* After a restart as an older version the answer to an earlier request may arrive. */
    if (candidate->bus.as_older && !candidate->was_newer)
        simFail("node %d gets a message that it does not understand", candidate->host);
    if (rules.strict && rules.vote_of[voter->host][m->epoch] == candidate->host + 1)
        simFail("node %d refuses the vote in epoch %llu that it has given", voter->host,
                (unsigned long long)m->epoch);
}

/* A node may have got another id since. */
static bool hasVotedOnce(const simNode *candidate, uint64_t epoch, const char *id) {
    for (int i = 0; i < sim_node_count; i++)
        if (rules.vote_of[i][epoch] == candidate->host + 1 && voterRulesHasId(i, id)) return true;
    for (int i = 0; i < rules.former_count; i++) {
        const formerVotes *f = &rules.former[i];
        if (f->vote_of[epoch] == candidate->host + 1 && memcmp(f->id, id, NODE_ID_LEN) == 0)
            return true;
    }
    return false;
}

/* With slots the winner has the place of its primary. */
static bool hasVotedFor(const void *arg, const char *id) {
    const request *r = arg;
    const simNode *winner = &sim_nodes[r - rules.requests];
    bool is_own = memcmp(id, winner->map.myself->id, NODE_ID_LEN) == 0;
    if (is_own && hasVotedFor(arg, winner->followed)) return true;
    return hasVotedOnce(winner, r->epoch, id);
}

typedef struct leader {
    const simNode *node;
    uint64_t epoch;
} leader;

static bool hasVotedForLeader(const void *arg, const char *id) {
    const leader *l = arg;
    bool is_own = memcmp(id, l->node->map.myself->id, NODE_ID_LEN) == 0;
    if (is_own && l->node->map.vote_epoch == l->epoch) return true;
    return hasVotedOnce(l->node, l->epoch, id);
}

/* Not only since the messages of this moment, which may have come after the last vote. */
static bool wasKnown(const simNode *n, const clusterNode *other) {
    return !(other->flags & NODE_HANDSHAKE) && other->added_ms < simNodeClock(n);
}

bool rulesMayLead(const simNode *n, uint64_t epoch) {
    const leader l = {n, epoch};
    checkRange(epoch);
    for (int i = 0; n->map.voters.rule == VOTERS_OWNERS && i < n->map.node_count; i++)
        if (wasKnown(n, n->map.nodes[i]) && !hasVotedForLeader(&l, n->map.nodes[i]->id))
            return false;
    return voterRulesAgree(&n->map, hasVotedForLeader, &l);
}

void rulesTookOver(uint64_t epoch) {
    checkRange(epoch);
    rules.taken_over[epoch] = true;
}

/* By the rule of Valkey a primary that was replaced, and does not know, and its successor both
 * vote: two shards may each elect a node in one epoch, by majorities without a common node. So may
 * one shard, if a primary votes for its own replica, as it does in a manual failover: others elect
 * one that follows the same primary, or its successor. Without that vote one shard would need two
 * such pairs. */
static bool mayBothWin(const victory *a, const victory *b, bool in_shard) {
    if (a->rule != VOTERS_OWNERS || b->rule != VOTERS_OWNERS) return false;
    return !in_shard || a->by_primary || b->by_primary;
}

void rulesWon(const simNode *winner, uint64_t epoch) {
    checkRange(epoch);
    victory *before = &rules.won[epoch];
    victory now = {.winner = winner->host + 1,
                   .by_primary = hasVotedOnce(winner, epoch, winner->followed),
                   .rule = winner->map.voters.rule};
    const simNode *other = before->winner ? &sim_nodes[before->winner - 1] : NULL;
    bool in_shard = other && clusterNodesShareShard(other->map.myself, winner->map.myself);
    if (rules.strict && other && !mayBothWin(before, &now, in_shard))
        simFail("nodes %d and %d have won epoch %llu", other->host, winner->host,
                (unsigned long long)epoch);
    const request *r = &rules.requests[winner->host];
    if (rules.strict && (r->epoch != epoch || !voterRulesAgree(&winner->map, hasVotedFor, r)))
        simFail("node %d has won epoch %llu without a majority", winner->host,
                (unsigned long long)epoch);
    rules.won_twice[epoch] |= in_shard;
    *before = now;
    node_counts.wins++;
}

/* ------------------------------------------------------------------ failures */

typedef struct suspicion {
    const simNode *by;
    const clusterNode *about;
} suspicion;

static bool suspects(const void *arg, const char *id) {
    const suspicion *s = arg;
    int64_t now_ms = simNodeClock(s->by), most_ms = REPORT_TIMEOUTS * s->by->bus.rules.timeout_ms;
    if (memcmp(s->by->map.myself->id, id, NODE_ID_LEN) == 0) return true;
    for (int i = 0; i < s->about->report_count; i++) {
        const failReport *r = &s->about->reports[i];
        if (memcmp(r->from->id, id, NODE_ID_LEN) != 0) continue;
        bool acts_by_later = voterStampCompare(r->from->voters, s->by->map.voters.stamp) > 0;
        return !acts_by_later && now_ms - r->at_ms <= most_ms;
    }
    return false;
}

void rulesToldFailed(const simNode *n, const char *id) {
    const clusterNode *about = clusterMapFind(&n->map, sliceMake(id, NODE_ID_LEN));
    if (!about || about->flags & NODE_NO_ADDRESS) return; /* another server has its address */
    const suspicion s = {n, about};
    if (!n->map.voters.stamp.term) { /* reports count although their senders own nothing any more */
        int64_t now_ms = simNodeClock(n), most_ms = REPORT_TIMEOUTS * n->bus.rules.timeout_ms;
        int suspecting = clusterNodeVotes(n->map.myself);
        for (int i = 0; i < about->report_count; i++)
            suspecting += now_ms - about->reports[i].at_ms <= most_ms;
        if (suspecting < clusterMapCountVoters(&n->map) / 2 + 1)
            simFail("node %d marks a node as failed with %d reports", n->host, suspecting);
    } else if (!voterRulesAgree(&n->map, suspects, &s)) {
        simFail("node %d marks a node as failed without a majority", n->host);
    }
}

static bool isReached(const void *arg, const char *id) {
    const clusterNode *seen = clusterMapFind(arg, sliceMake(id, NODE_ID_LEN));
    const clusterMap *m = arg;
    if (!seen || seen->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) return false;
    /* With sets of voters one counts that was heard since the start. */
    return m->voters.rule == VOTERS_OWNERS || seen == m->myself || seen->heard_ms;
}

/* A primary that serves requests sees the majority of voters and an owner of every slot. */
static void checkServes(const simNode *n) {
    const clusterMap *m = &n->map;
    if (!n->state.ok || !(m->myself->flags & NODE_PRIMARY)) return;
    for (int i = 0; i < m->node_count; i++)
        if (clusterNodeVotes(m->nodes[i]) && m->nodes[i]->flags & NODE_FAILED)
            simFail("node %d serves requests without an owner of slots", n->host);
    if (!voterRulesAgree(m, isReached, m))
        simFail("node %d serves requests and does not see a majority", n->host);
}

/* ------------------------------------------------------------------ roles */

static int countWorking(const clusterNode *primary) {
    int count = 0;
    for (int i = 0; i < primary->replica_count; i++)
        count += !(primary->replicas[i]->flags & NODE_FAILED);
    return count;
}

/* A replica that leaves a primary which keeps its slots, and has no order to do so, has joined one
 * without replicas: its former one must keep some. */
void rulesFollow(simNode *n, const clusterNode *primary) {
    const clusterNode *old = clusterMapFind(&n->map, sliceMake(n->followed, NODE_ID_LEN));
    bool moved = old && old != primary && clusterNodeVotes(old) && !n->has_order;
    memcpy(n->followed, primary->id, NODE_ID_LEN);
    if (!moved || clusterNodesShareShard(old, primary)) return;
    if (countWorking(old) < n->bus.rules.migration_barrier)
        simFail("node %d leaves its primary without a replica", n->host);
}

static void rememberRole(simNode *n) {
    const clusterNode *primary = n->map.myself->primary;
    if (!primary) {
        memset(n->followed, 0, NODE_ID_LEN);
    } else {
        memcpy(n->followed, primary->id, NODE_ID_LEN);
    }
}

/* ------------------------------------------------------------------ always */

static void checkEpochs(simNode *n) {
    const clusterMap *m = &n->map;
    const simEpochs *before = &n->epochs;
    if (m->current_epoch < before->current)
        simFail("node %d: the current epoch went back", n->host);
    if (m->myself->epoch < before->own) simFail("node %d: its epoch went back", n->host);
    if (m->vote_epoch < before->vote) simFail("node %d: the epoch of its vote went back", n->host);
    if (m->myself->epoch > m->current_epoch)
        simFail("node %d: its epoch is greater than the current one", n->host);
    n->epochs = (simEpochs){m->current_epoch, m->myself->epoch, m->vote_epoch, m->voters.stamp};
}

void rulesCheck(simNode *n) {
    checkEpochs(n);
    checkServes(n);
    rememberRole(n);
    for (int i = 0; i < n->map.node_count; i++) {
        const clusterNode *seen = n->map.nodes[i];
        if (seen->flags & NODE_REPLICA && seen->slot_count)
            simFail("node %d: replica %.40s has slots", n->host, seen->id);
        n->failed_seen |= (seen->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) != 0;
    }
}

static bool ownSame(const clusterMap *a, const clusterMap *b) {
    for (int word = 0; word < SLOT_WORDS; word++)
        if (a->mine[word] & b->mine[word]) return true;
    return false;
}

void rulesCheckOwners(void) {
    if (!rules.strict) return;
    voterRulesCheckMajorities();
    for (int i = 0; i < sim_node_count; i++) {
        const clusterMap *a = &sim_nodes[i].map;
        if (!sim_nodes[i].running || !a->myself->slot_count) continue;
        for (int k = 0; k < i; k++) {
            const clusterMap *b = &sim_nodes[k].map;
            if (!sim_nodes[k].running || a->myself->epoch != b->myself->epoch) continue;
            bool is_known = rules.taken_over[a->myself->epoch] || rules.won_twice[a->myself->epoch];
            if (ownSame(a, b) && !is_known)
                simFail("nodes %d and %d own a slot in epoch %llu", k, i,
                        (unsigned long long)a->myself->epoch);
        }
    }
}

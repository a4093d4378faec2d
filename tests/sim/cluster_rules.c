/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_rules.h"

#include "base/base.h"
#include "cluster_data.h"
#include "sim.h"

enum {
    EPOCHS_MAX = 4096,
    VOTE_AFTER_MS = 2000, /* a node that has started */
    REPORT_TIMEOUTS = 2,
};

/* What a candidate has claimed when it asked for votes. */
typedef struct request {
    uint64_t epoch, claim_epoch;
    bool force;
    uint64_t slots[SLOT_WORDS];
} request;

static struct {
    bool strict;
    int winner_of[EPOCHS_MAX];                      /* host + 1 */
    uint8_t vote_of[SIM_NODES_MAX + 1][EPOCHS_MAX]; /* host of the candidate + 1; 255: not known */
    request requests[SIM_NODES_MAX + 1];
} rules;

void rulesReset(bool strict) {
    memset(&rules, 0, sizeof(rules));
    rules.strict = strict;
}

bool rulesAreStrict(void) { return rules.strict; }

void rulesForgetVotes(const simNode *n) {
    memset(rules.vote_of[n->host], 0, sizeof(rules.vote_of[0]));
}

static void checkRange(uint64_t epoch) {
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
}

/* ------------------------------------------------------------------ elections */

/* A replica that was without its primary for too long does not ask, unless it has an order. */
static void checkAge(const simNode *n) {
    const busRules *r = &n->bus.rules;
    int64_t most_ms = r->repl_ping_ms + r->timeout_ms * (r->validity_factor + 1);
    if (!r->validity_factor || n->bus.manual.step == MANUAL_READY) return;
    int64_t age_ms = dataAge(n);
    if (age_ms < 0) simFail("node %d, which never had data, asks for votes", n->host);
    if (age_ms > most_ms)
        simFail("node %d asks for votes with data of %lld ms ago", n->host, (long long)age_ms);
}

void rulesAsked(const simNode *candidate, const messageHeader *h) {
    request *r = &rules.requests[candidate->host];
    checkRange(h->current_epoch);
    if (r->epoch == h->current_epoch) return; /* the same for another receiver */
    checkAge(candidate);
    *r = (request){
        .epoch = h->current_epoch, .claim_epoch = h->epoch, .force = h->flags & MESSAGE_FORCE_ACK};
    memcpy(r->slots, h->slots, sizeof(r->slots));
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

static void checkVote(const simNode *voter, const simNode *candidate, uint64_t epoch) {
    const request *r = &rules.requests[candidate->host];
    const clusterNode *seen = clusterMapFind(&voter->map, clusterNodeId(candidate->map.myself));
    if (!clusterNodeVotes(voter->map.myself))
        simFail("node %d votes and has no slots", voter->host);
    if (simNodeClock(voter) - voter->bus.started_ms < VOTE_AFTER_MS)
        simFail("node %d votes too soon after its start", voter->host);
    if (!seen || r->epoch != epoch) return;
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
    if (rules.strict && rules.winner_of[epoch] == voter->host + 1)
        simFail("node %d votes in epoch %llu, which it has won", voter->host,
                (unsigned long long)epoch);
    logNotice("node %d votes for node %d in epoch %llu", voter->host,
              candidate ? candidate->host : -1, (unsigned long long)epoch);
    *vote = candidate ? (uint8_t)(candidate->host + 1) : UINT8_MAX;
    if (candidate) checkVote(voter, candidate, epoch);
    node_counts.votes++;
}

static int countVotes(const simNode *winner, uint64_t epoch) {
    int votes = 0;
    for (int i = 0; i < sim_node_count; i++) votes += rules.vote_of[i][epoch] == winner->host + 1;
    return votes;
}

void rulesWon(const simNode *winner, uint64_t epoch) {
    checkRange(epoch);
    if (rules.strict && rules.winner_of[epoch])
        simFail("nodes %d and %d have won epoch %llu", rules.winner_of[epoch] - 1, winner->host,
                (unsigned long long)epoch);
    int quorum = clusterMapCountVoters(&winner->map) / 2 + 1;
    if (rules.strict && countVotes(winner, epoch) < quorum)
        simFail("node %d has won epoch %llu with %d of %d votes", winner->host,
                (unsigned long long)epoch, countVotes(winner, epoch), quorum);
    rules.winner_of[epoch] = winner->host + 1;
    node_counts.wins++;
}

/* ------------------------------------------------------------------ failures */

void rulesToldFailed(const simNode *n, const char *id) {
    const clusterNode *about = clusterMapFind(&n->map, sliceMake(id, NODE_ID_LEN));
    if (!about || about->flags & NODE_NO_ADDRESS) return; /* another server has its address */
    int64_t now_ms = simNodeClock(n), most_ms = REPORT_TIMEOUTS * n->bus.rules.timeout_ms;
    int suspecting = clusterNodeVotes(n->map.myself);
    for (int i = 0; i < about->report_count; i++)
        suspecting += now_ms - about->reports[i].at_ms <= most_ms;
    if (suspecting < clusterMapCountVoters(&n->map) / 2 + 1)
        simFail("node %d marks a node as failed with %d reports", n->host, suspecting);
}

/* A primary that serves requests sees the majority of primaries and an owner of every slot. */
static void checkServes(const simNode *n) {
    const clusterMap *m = &n->map;
    int voters = 0, reached = 0;
    if (!n->state.ok || !(m->myself->flags & NODE_PRIMARY)) return;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *seen = m->nodes[i];
        if (!clusterNodeVotes(seen)) continue;
        voters++;
        reached += !(seen->flags & (NODE_FAILED | NODE_MAYBE_FAILED));
        if (seen->flags & NODE_FAILED)
            simFail("node %d serves requests without an owner of slots", n->host);
    }
    if (reached < voters / 2 + 1)
        simFail("node %d serves requests and sees %d of %d primaries", n->host, reached, voters);
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
    if (m->current_epoch < n->current_epoch)
        simFail("node %d: the current epoch went back", n->host);
    if (m->myself->epoch < n->own_epoch) simFail("node %d: its epoch went back", n->host);
    if (m->vote_epoch < n->vote_epoch) simFail("node %d: the epoch of its vote went back", n->host);
    if (m->myself->epoch > m->current_epoch)
        simFail("node %d: its epoch is greater than the current one", n->host);
    n->current_epoch = m->current_epoch;
    n->own_epoch = m->myself->epoch;
    n->vote_epoch = m->vote_epoch;
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
    for (int i = 0; i < sim_node_count; i++) {
        const clusterMap *a = &sim_nodes[i].map;
        if (!sim_nodes[i].running || !a->myself->slot_count) continue;
        for (int k = 0; k < i; k++) {
            const clusterMap *b = &sim_nodes[k].map;
            if (!sim_nodes[k].running || a->myself->epoch != b->myself->epoch) continue;
            if (ownSame(a, b))
                simFail("nodes %d and %d own a slot in epoch %llu", k, i,
                        (unsigned long long)a->myself->epoch);
        }
    }
}

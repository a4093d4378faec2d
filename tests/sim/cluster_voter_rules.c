/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_voter_rules.h"

#include "base/base.h"
#include "base/hash.h"
#include "cluster_rules.h"
#include "sim.h"

enum { SETS_MAX = 4096, MEMBERS_MAX = 32 };

/* What each host has on its disk. */
typedef struct hostState {
    bool known;
    char id[NODE_ID_LEN];
    voterStamp stamp;
} hostState;

typedef struct knownSet {
    voterStamp stamp;
    uint64_t content;
    int made_by; /* host */
    voterRule rule;
    char ids[MEMBERS_MAX][NODE_ID_LEN];
    int count;
    /* The last set before it, or itself, that got members instead of the rule of Valkey: its number
     * + 1; 0: there is none. */
    int first;
} knownSet;

static struct {
    hostState hosts[SIM_NODES_MAX + 1];
    knownSet sets[SETS_MAX];
    int set_count;
} rules;

void voterRulesReset(void) {
    memset(rules.hosts, 0, sizeof(rules.hosts));
    rules.set_count = 0;
}

void voterRulesForget(const simNode *n) { rules.hosts[n->host].known = false; }

void voterRulesLost(const simNode *n, voterStamp saved) { rules.hosts[n->host].stamp = saved; }

static int compare(voterStamp a, voterStamp b) {
    if (a.term != b.term) return a.term < b.term ? -1 : 1;
    return (a.version > b.version) - (a.version < b.version);
}

/* ------------------------------------------------------------------ sets */

static uint64_t contentOf(const voterSet *set) {
    return hashBytes(set->ids ? (const char *)set->ids : "", (size_t)set->count * NODE_ID_LEN) +
           (uint64_t)set->rule;
}

static bool isMember(const knownSet *set, const char *id) {
    for (int i = 0; i < set->count; i++)
        if (memcmp(set->ids[i], id, NODE_ID_LEN) == 0) return true;
    return false;
}

static int countMissing(const knownSet *of, const knownSet *in) {
    int count = 0;
    for (int i = 0; i < of->count; i++) count += !isMember(in, of->ids[i]);
    return count;
}

/* Majorities of a set have nodes in common with those of the next one. */
static void checkStep(const simNode *n, const knownSet *from, const knownSet *to) {
    int differ = countMissing(from, to) + countMissing(to, from);
    int rules_apart = (int)to->rule - (int)from->rule;
    bool has_members = from->rule != VOTERS_OWNERS && to->rule != VOTERS_OWNERS;
    if (rules_apart > 1 || rules_apart < -1 || (has_members && differ > (rules_apart ? 0 : 1)))
        simFail("node %d changes too much with set %llu.%u", n->host,
                (unsigned long long)to->stamp.term, to->stamp.version);
}

static const knownSet *find(voterStamp stamp) {
    for (int i = rules.set_count - 1; i >= 0; i--)
        if (compare(rules.sets[i].stamp, stamp) == 0) return &rules.sets[i];
    return NULL;
}

/* `before`: the set of the node until now. */
static int firstOf(voterRule rule, voterStamp before) {
    const knownSet *from = find(before);
    bool by_owners = !from || from->rule == VOTERS_OWNERS;
    return by_owners && rule != VOTERS_OWNERS ? rules.set_count + 1 : from ? from->first : 0;
}

static void addSet(const simNode *n, const voterSet *set, voterStamp before) {
    knownSet *known = &rules.sets[rules.set_count];
    if (rules.set_count == SETS_MAX || set->count > MEMBERS_MAX) simFail("too many voters");
    *known = (knownSet){.stamp = set->stamp,
                        .content = contentOf(set),
                        .made_by = n->host,
                        .rule = set->rule,
                        .count = set->count,
                        .first = firstOf(set->rule, before)};
    if (set->count) memcpy(known->ids, set->ids, (size_t)set->count * NODE_ID_LEN);
    for (int i = 0; i < rules.set_count; i++)
        if (rules.sets[i].stamp.term == set->stamp.term &&
            rules.sets[i].stamp.version + 1 == set->stamp.version)
            checkStep(n, &rules.sets[i], known);
    bool by_takeover = set->rule == VOTERS_OWNERS && set->stamp.version == 1u << 31;
    if (!by_takeover && !set->stamp.version && !rulesMayLead(n, set->stamp.term))
        simFail("node %d makes sets of term %llu without a majority", n->host,
                (unsigned long long)set->stamp.term);
    rules.set_count++;
    node_counts.voter_sets++;
}

static void checkSet(const simNode *n, voterStamp before) {
    const voterSet *set = &n->map.voters;
    if (!set->stamp.term) return;
    const knownSet *same = find(set->stamp);
    if (same && same->content != contentOf(set))
        simFail("node %d has another set %llu.%u than others", n->host,
                (unsigned long long)set->stamp.term, set->stamp.version);
    if (same) return;
    for (int i = 0; i < rules.set_count; i++) {
        const knownSet *known = &rules.sets[i];
        if (known->stamp.term == set->stamp.term && known->made_by != n->host)
            simFail("nodes %d and %d make sets of term %llu", known->made_by, n->host,
                    (unsigned long long)set->stamp.term);
    }
    addSet(n, set, before);
}

void voterRulesCheck(const simNode *n) {
    hostState *h = &rules.hosts[n->host];
    if (!rulesAreStrict()) return;
    bool is_same = h->known && memcmp(h->id, n->map.myself->id, NODE_ID_LEN) == 0;
    int age = compare(n->map.voters.stamp, h->stamp);
    if (is_same && age < 0) simFail("node %d has an earlier set of voters again", n->host);
    if (is_same && age == 0) return;
    voterStamp before = is_same ? h->stamp : (voterStamp){0};
    *h = (hostState){.known = true, .stamp = n->map.voters.stamp};
    memcpy(h->id, n->map.myself->id, NODE_ID_LEN);
    checkSet(n, before);
}

/* ------------------------------------------------------------------ majorities */

bool voterRulesMayVote(const clusterMap *m, const clusterNode *n) {
    if (m->voters.rule != VOTERS_ALL && n->flags & NODE_PRIMARY && n->slot_count) return true;
    for (int i = 0; i < m->voters.count; i++)
        if (memcmp(m->voters.ids[i], n->id, NODE_ID_LEN) == 0) return true;
    return false;
}

bool voterRulesHasId(int host, const char *id) {
    return rules.hosts[host].known && memcmp(rules.hosts[host].id, id, NODE_ID_LEN) == 0;
}

/* One of the groups of which a majority is needed. */
typedef struct voterGroup {
    const char *ids[SIM_NODES_MAX + 1];
    int count;
} voterGroup;

static voterGroup ownersOf(const clusterMap *m) {
    voterGroup g = {.count = 0};
    for (int i = 0; i < m->node_count; i++)
        if (clusterNodeVotes(m->nodes[i])) g.ids[g.count++] = m->nodes[i]->id;
    return g;
}

static voterGroup membersOf(const clusterMap *m) {
    voterGroup g = {.count = 0};
    for (int i = 0; i < m->voters.count; i++) g.ids[g.count++] = m->voters.ids[i];
    return g;
}

static bool isMajorityOf(const voterGroup *g, voterRulesTest *agrees, const void *arg) {
    int count = 0;
    for (int i = 0; i < g->count; i++) count += agrees(arg, g->ids[i]);
    return count >= g->count / 2 + 1;
}

bool voterRulesAgree(const clusterMap *m, voterRulesTest *agrees, const void *arg) {
    voterGroup owners = ownersOf(m), members = membersOf(m);
    if (m->voters.rule != VOTERS_ALL && !isMajorityOf(&owners, agrees, arg)) return false;
    return m->voters.rule == VOTERS_OWNERS || isMajorityOf(&members, agrees, arg);
}

/* ------------------------------------------------------------------ two majorities */

/* The hosts of a group that count for a node with the set of that age. */
static uint32_t hostsOf(const voterGroup *g, voterStamp stamp) {
    uint32_t hosts = 0;
    for (int host = 0; host < sim_node_count; host++)
        for (int i = 0; i < g->count; i++)
            if (voterRulesHasId(host, g->ids[i]) && compare(rules.hosts[host].stamp, stamp) <= 0)
                hosts |= 1u << host;
    return hosts;
}

static int bits(uint32_t hosts) { return __builtin_popcount(hosts); }

typedef struct power {
    const simNode *node;
    voterRule rule;
    uint32_t hosts[2]; /* owners, members */
    int needed[2];
    bool has_any;
} power;

static bool uses(voterRule rule, int group) {
    return group == 0 ? rule != VOTERS_ALL : rule != VOTERS_OWNERS;
}

static power powerOf(const simNode *n) {
    const clusterMap *m = &n->map;
    const voterGroup groups[2] = {ownersOf(m), membersOf(m)};
    power p = {.node = n, .rule = m->voters.rule, .has_any = true};
    for (int g = 0; g < 2; g++) {
        if (!uses(p.rule, g)) continue;
        p.hosts[g] = hostsOf(&groups[g], m->voters.stamp);
        p.needed[g] = groups[g].count / 2 + 1;
        p.has_any &= bits(p.hosts[g]) >= p.needed[g];
    }
    return p;
}

static bool mayBeApart(const power *a, const power *b) {
    for (int g = 0; g < 2; g++) {
        if (!uses(a->rule, g) || !uses(b->rule, g)) continue;
        if (bits(a->hosts[g] | b->hosts[g]) < a->needed[g] + b->needed[g]) return false;
    }
    return true;
}

static bool ownTheSame(const simNode *a, const simNode *b) {
    voterGroup of_a = ownersOf(&a->map), of_b = ownersOf(&b->map);
    bool same = of_a.count == of_b.count;
    for (int i = 0; i < of_a.count && same; i++) {
        const clusterNode *n = clusterMapFind(&b->map, sliceMake(of_a.ids[i], NODE_ID_LEN));
        same = n && clusterNodeVotes(n);
    }
    return same;
}

/* Two sets come from two first ones without a common member. All known nodes vote for such a set:
 * the nodes of either had forgotten those of the other, as one cluster that was cut in two. */
static bool areOfTwoClusters(const simNode *a, const simNode *b) {
    const knownSet *of_a = find(a->map.voters.stamp), *of_b = find(b->map.voters.stamp);
    if (!of_a || !of_b || !of_a->first || !of_b->first) return false;
    const knownSet *first_a = &rules.sets[of_a->first - 1], *first_b = &rules.sets[of_b->first - 1];
    return countMissing(first_a, first_b) == first_a->count;
}

/* The other one had forgotten it before it heard that it was replaced, and may have met it again:
 * it is no member, and its replicas do not ask for votes until it is. It may have made sets of its
 * own if it has forgotten all others, too. */
static bool isForgottenOwner(const power *p, const power *by) {
    if (votersHas(&by->node->map.voters, p->node->map.myself->id)) return false;
    return p->rule == VOTERS_OWNERS || areOfTwoClusters(p->node, by->node);
}

void voterRulesCheckMajorities(void) {
    power powers[SIM_NODES_MAX + 1];
    int count = 0;
    bool any = false;
    for (int i = 0; i < sim_node_count; i++) any |= rules.hosts[i].stamp.term != 0;
    for (int i = 0; any && i < sim_node_count; i++) {
        if (!sim_nodes[i].running) continue;
        powers[count] = powerOf(&sim_nodes[i]);
        count += powers[count].has_any;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++) {
            const power *a = &powers[i], *b = &powers[k];
            /* With the rule of Valkey a former owner counts as one until it hears of the other. */
            bool by_owners = a->rule != VOTERS_ALL && b->rule != VOTERS_ALL &&
                             (a->rule == VOTERS_OWNERS || b->rule == VOTERS_OWNERS);
            if (by_owners && !ownTheSame(a->node, b->node)) continue;
            if (isForgottenOwner(a, b) || isForgottenOwner(b, a)) continue;
            if (mayBeApart(a, b))
                simFail("nodes %d (%llu.%u) and %d (%llu.%u) may have majorities at once",
                        a->node->host, (unsigned long long)a->node->map.voters.stamp.term,
                        a->node->map.voters.stamp.version, b->node->host,
                        (unsigned long long)b->node->map.voters.stamp.term,
                        b->node->map.voters.stamp.version);
        }
}

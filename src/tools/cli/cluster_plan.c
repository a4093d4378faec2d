/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decisions of the cluster manager (cluster_plan.h). */
#include "tools/cli/cluster_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* ------------------------------------------------------------------ create */

static bool sameHost(const clusterNode *a, const clusterNode *b) {
    return sliceEqual(strSlice(&a->host), strSlice(&b->host));
}

void planInterleave(const clusterNodes *nodes, clusterNode **order) {
    int filled = 0;
    bool *taken = memNewArray(bool, nodes->count + 1);
    while (filled < nodes->count) {
        int round = filled; /* hosts seen in this round are in order[round..] */
        for (int i = 0; i < nodes->count; i++) {
            if (taken[i]) continue;
            bool seen = false;
            for (int j = round; j < filled; j++) seen = seen || sameHost(order[j], nodes->list[i]);
            if (seen) continue;
            taken[i] = true;
            order[filled++] = nodes->list[i];
        }
    }
    memFree(taken);
}

void planShareSlots(clusterNode **primaries, int count) {
    check(count > 0);
    double share = (double)SLOT_COUNT / count;
    int first = 0;
    for (int i = 0; i < count && first < SLOT_COUNT; i++) {
        int last = i == count - 1 ? SLOT_COUNT - 1 : (int)lround(share * (i + 1) - 1);
        if (last < first) last = first;
        for (int slot = first; slot <= last; slot++) slotSetAdd(&primaries[i]->slots, slot);
        first = last + 1;
    }
}

/* Takes the first node on another host than the primary's from the list, else the first one. */
static clusterNode *takeReplica(clusterNode **list, int *count, const clusterNode *primary) {
    int chosen = 0;
    for (int i = 0; i < *count; i++) {
        if (sameHost(list[i], primary)) continue;
        chosen = i;
        break;
    }
    clusterNode *node = list[chosen];
    memmove(&list[chosen], &list[chosen + 1], sizeof(*list) * (size_t)(*count - chosen - 1));
    (*count)--;
    return node;
}

int planReplicas(clusterNode **order, int count, int primary_count, int per_primary,
                 replicaChoice *choices) {
    int left = count - primary_count, made = 0;
    if (left <= 0) return 0;
    clusterNode **rest = memNewArray(clusterNode *, left);
    /* The node after the last primary is often on the host of the first one's neighbour: it goes to
     * the end. */
    for (int i = 0; i < left; i++) rest[i] = order[primary_count + (i + 1) % left];
    for (int extra = 0; left > 0; extra = 1) {
        int wanted = extra ? 1 : per_primary;
        for (int i = 0; i < primary_count; i++) {
            for (int j = 0; j < wanted && left > 0; j++) {
                clusterNode *replica = takeReplica(rest, &left, order[i]);
                choices[made++] = (replicaChoice){replica, order[i], extra};
            }
        }
    }
    memFree(rest);
    return made;
}

int planAffinity(const replicaChoice *choices, int count) {
    int cost = 0;
    for (int i = 0; i < count; i++) {
        if (sameHost(choices[i].replica, choices[i].primary)) cost += AFFINITY_PRIMARY;
        for (int j = 0; j < i; j++) {
            if (choices[i].primary != choices[j].primary) continue;
            if (sameHost(choices[i].replica, choices[j].replica)) cost++;
        }
    }
    return cost;
}

static void exchange(replicaChoice *choices, int a, int b) {
    clusterNode *primary = choices[a].primary;
    choices[a].primary = choices[b].primary;
    choices[b].primary = primary;
}

/* A generator of its own, so that equal arguments give equal plans. */
static int nextBelow(uint64_t *state, int bound) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*state >> 33) % (uint64_t)bound);
}

/* Random exchanges that do not increase the cost are kept: those that do not change it lead out of
 * local minima. */
int planSpread(replicaChoice *choices, int count) {
    enum { TRIES_PER_REPLICA = 500 };
    uint64_t state = 1;
    int cost = planAffinity(choices, count), best_cost = cost;
    if (count < 2 || cost == 0) return cost;
    replicaChoice *best = memNewArray(replicaChoice, count);
    memcpy(best, choices, sizeof(*best) * (size_t)count);
    for (int tries = TRIES_PER_REPLICA * count; tries > 0 && best_cost > 0; tries--) {
        int a = nextBelow(&state, count), b = nextBelow(&state, count);
        if (choices[a].primary == choices[b].primary) continue;
        exchange(choices, a, b);
        int changed = planAffinity(choices, count);
        if (changed > cost) {
            exchange(choices, a, b);
            continue;
        }
        cost = changed;
        if (cost >= best_cost) continue;
        best_cost = cost;
        memcpy(best, choices, sizeof(*best) * (size_t)count);
    }
    memcpy(choices, best, sizeof(*best) * (size_t)count);
    memFree(best);
    return best_cost;
}

/* ------------------------------------------------------------------ reshard */

/* Inserts, so that nodes with equal numbers of slots keep their order. */
static clusterNode **sortBySlots(clusterNode *const *sources, int count) {
    clusterNode **sorted = memNewArray(clusterNode *, count + 1);
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1]->slots.count < sources[i]->slots.count; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = sources[i];
    }
    return sorted;
}

int planReshard(clusterNode *const *sources, int source_count, int wanted, slotMove **moves) {
    int total = 0, chosen = 0, made = 0;
    for (int i = 0; i < source_count; i++) total += sources[i]->slots.count;
    if (wanted > total) wanted = total;
    *moves = memNewArray(slotMove, wanted + 1);
    clusterNode **sorted = sortBySlots(sources, source_count);
    int *counts = memNewArray(int, source_count + 1);
    for (int i = 0; i < source_count && total > 0; i++) {
        double part = (double)wanted / total * sorted[i]->slots.count;
        counts[i] = (int)(i == 0 ? ceil(part) : floor(part));
        chosen += counts[i];
    }
    while (chosen < wanted) { /* lost by rounding down */
        for (int i = source_count - 1; i >= 0 && chosen < wanted; i--) {
            if (counts[i] >= sorted[i]->slots.count) continue;
            counts[i]++;
            chosen++;
        }
    }
    for (int i = 0; i < source_count; i++) {
        int slot = -1;
        for (int j = 0; j < counts[i] && made < wanted; j++) {
            slot = slotSetNext(&sorted[i]->slots, slot + 1);
            check(slot >= 0);
            (*moves)[made++] = (slotMove){sorted[i], slot};
        }
    }
    memFree(counts);
    memFree(sorted);
    return made;
}

/* ------------------------------------------------------------------ rebalance */

static void sortByBalance(nodeShare *shares, int count) {
    for (int i = 1; i < count; i++) {
        nodeShare moving = shares[i];
        int at = i;
        for (; at > 0 && shares[at - 1].balance > moving.balance; at--) shares[at] = shares[at - 1];
        shares[at] = moving;
    }
}

/* True if the node's slots differ too much from what it should have. A threshold of 0 switches the
 * test off. */
static bool isOver(const nodeShare *share, int expected, double threshold_percent) {
    if (threshold_percent <= 0) return false;
    int has = share->node->slots.count;
    if (has == 0) return expected > 1;
    return fabs(100.0 - 100.0 * expected / has) > threshold_percent;
}

bool planBalance(nodeShare *shares, int count, double threshold_percent) {
    double weights = 0;
    int sum = 0;
    bool over = false;
    for (int i = 0; i < count; i++) weights += shares[i].weight;
    if (weights <= 0) return false;
    for (int i = 0; i < count; i++) {
        int expected = (int)(SLOT_COUNT / weights * shares[i].weight);
        shares[i].balance = shares[i].node->slots.count - expected;
        sum += shares[i].balance;
        if (isOver(&shares[i], expected, threshold_percent)) over = true;
    }
    /* Expectations are rounded down, so some slots are left for nodes that receive. */
    while (sum > 0) {
        int before = sum;
        for (int i = 0; i < count && sum > 0; i++) {
            if (shares[i].balance > 0 || shares[i].weight <= 0) continue;
            shares[i].balance--;
            sum--;
        }
        if (sum == before) break;
    }
    sortByBalance(shares, count);
    return over;
}

int planNextTransfer(nodeShare *shares, int count, clusterNode **source, clusterNode **target) {
    int to = 0, from = count - 1;
    while (to < count && shares[to].balance >= 0) to++;
    while (from >= 0 && shares[from].balance <= 0) from--;
    if (to >= count || from < 0) return 0;
    int slots = shares[from].balance;
    if (slots > -shares[to].balance) slots = -shares[to].balance;
    shares[from].balance -= slots;
    shares[to].balance += slots;
    *source = shares[from].node;
    *target = shares[to].node;
    return slots;
}

/* ------------------------------------------------------------------ fix */

clusterNode *planOwnerByKeys(const slotHolder *holders, int count) {
    const slotHolder *best = NULL;
    for (int i = 0; i < count; i++) {
        if (!best || holders[i].keys > best->keys) best = &holders[i];
    }
    return best ? best->node : NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters per slot (slot_stats.h). A command counts for the slot of its keys when it has run: a
 * waiting one when it is served. Of a transaction the duration and reply of EXEC count as a whole,
 * and the requests one by one; what scripts run inside is part of the script. A script that has no
 * keys, but a header that binds it to one slot, counts for the slot that it has used. */
#include "cluster/slot_stats.h"

#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "engine/measure.h"
#include "engine/transaction.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"
#include "store/store.h"

static struct {
    slotUsage *of; /* NULL: nothing is counted */
    uint64_t served[SLOT_WORDS];
    /* The outermost command being executed, with the output that was pending before it, and what
     * cannot be asked after it: the slot of a transaction. */
    const ctx *running;
    size_t pending;
    int queue_slot;
    int script_slot; /* that the commands of a script of one slot have used */
    bool muted;      /* it may use several slots: what it propagates is not counted either */
} stats;

slotUsage slotStatsOf(int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    return stats.of ? stats.of[slot] : (slotUsage){.cpu_ns = 0};
}

/* ------------------------------------------------------------------ sizes */

static size_t bulkBytes(size_t len) {
    char digits[32];
    return 1 + numberPrintInt(digits, (int64_t)len) + 2 + len + 2;
}

static size_t requestBytes(const slice *argv, int argc) {
    char digits[32];
    size_t bytes = 1 + numberPrintInt(digits, argc) + 2;
    for (int i = 0; i < argc; i++) bytes += bulkBytes(argv[i].len);
    return bytes;
}

/* As received; of one that has waited only the arguments are kept. */
static size_t receivedBytes(const ctx *c) {
    bool kept = c->flags & CTX_WOKEN;
    return c->request && !kept ? (size_t)measureRequestBytes(c) : requestBytes(c->argv, c->argc);
}

/* ------------------------------------------------------------------ slots */

/* Scripts without a header may use several slots, whatever keys they declare. */
static bool mayUseSeveralSlots(const ctx *c) {
    if (c->argc < 2) return false;
    if (sliceIs(c->cmd->name, "eval"))
        return c->argv[1].len < 2 || memcmp(c->argv[1].ptr, "#!", 2) != 0;
    return sliceIs(c->cmd->name, "evalsha") && transactionFlagsOf(c) == c->cmd->flags;
}

static int slotOf(const ctx *c) { return commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc); }

static bool countQueued(void *arg, const command *cmd, const slice *argv, int argc) {
    (void)arg;
    int slot = commandSlots(COMMAND_NO_SLOT, cmd, argv, argc);
    if (slot >= 0) stats.of[slot].bytes_in += requestBytes(argv, argc);
    return true;
}

/* ------------------------------------------------------------------ the observer */

static bool endsTransaction(const ctx *c) {
    return c->cmd->flags & CMD_RUNS_QUEUE || sliceIs(c->cmd->name, "discard");
}

static void before(ctx *c) {
    if (c->outer || !stats.of) return;
    stats.running = c;
    stats.pending = outbufPending(c->out);
    stats.queue_slot = stats.script_slot = COMMAND_NO_SLOT;
    stats.muted = mayUseSeveralSlots(c);
    if (c->origin != ORIGIN_CLIENT || !c->who->multi || !endsTransaction(c)) return;
    (void)transactionEach(c->who, countQueued, NULL);
    if (c->cmd->flags & CMD_RUNS_QUEUE) stats.queue_slot = transactionSlot(c->who);
}

/* Also called for one whose client was blocked: its output before is not known, but was sent long
 * ago. */
static size_t replyBytes(const ctx *c) {
    check(c->out);
    size_t now = outbufPending(c->out), then = c == stats.running ? stats.pending : 0;
    return now > then ? now - then : 0;
}

static void after(ctx *c, int64_t duration_ns) {
    static const slice multi[] = {SLICE("MULTI")};
    bool runs_queue = c->cmd->flags & CMD_RUNS_QUEUE;
    if (!stats.of || c->flags & CTX_NOT_RUN) return; /* it waits */
    if (c->outer && c->outer == stats.running && c->outer->flags & CTX_ONE_SLOT && slotOf(c) >= 0)
        stats.script_slot = slotOf(c);
    if (c->outer && !(c->flags & CTX_WOKEN)) {
        /* As in Valkey the replies within a transaction count once more, from its beginning on. */
        int slot =
            c->outer == stats.running && c->outer->cmd->flags & CMD_RUNS_QUEUE ? slotOf(c) : -1;
        if (slot >= 0 && c->out == c->outer->out) stats.of[slot].bytes_out += replyBytes(c->outer);
        return;
    }
    int slot = runs_queue ? (c == stats.running ? stats.queue_slot : COMMAND_NO_SLOT) : slotOf(c);
    if (slot < 0 && c == stats.running && c->flags & CTX_ONE_SLOT) slot = stats.script_slot;
    if (slot >= 0) {
        slotUsage *u = &stats.of[slot];
        if (c->origin == ORIGIN_CLIENT) u->bytes_out += replyBytes(c);
        if (!mayUseSeveralSlots(c)) {
            u->cpu_ns += (uint64_t)duration_ns;
            u->bytes_in += receivedBytes(c) + (runs_queue ? requestBytes(multi, 1) : 0);
        }
    }
    if (c == stats.running) stats.running = NULL;
}

const commandObserver slotStatsObserver = {
    .name = "slot statistics", .before = before, .after = after};

/* ------------------------------------------------------------------ other output */

static bool countPeer(const replPeerInfo *peer, void *arg) {
    *(uint64_t *)arg += peer->online;
    return true;
}

static void take(const propagated *p) {
    if (!stats.of || p->slot < 0 || p->db_id < 0 || stats.muted || replIsReplica()) return;
    check(p->slot < SLOT_COUNT);
    uint64_t replicas = 0;
    replPeersEach(countPeer, &replicas);
    if (replicas) stats.of[p->slot].bytes_out += replicas * requestBytes(p->argv, p->argc);
}

const sink slotStatsSink = {.name = "slot statistics", .take = take, .targets = PROPAGATE_REPLICAS};

void slotStatsDelivered(slice channel, slice text) {
    if (likely(!stats.of)) return;
    const slice words[] = {SLICE("smessage"), channel, text};
    int slot = storeHashSlot(storeHash(channel));
    check(slot < SLOT_COUNT);
    stats.of[slot].bytes_out += pubsubShardSubscribers(channel) * requestBytes(words, 3);
}

/* ------------------------------------------------------------------ beginning and end */

void slotStatsReset(void) {
    if (stats.of) memset(stats.of, 0, SLOT_COUNT * sizeof(*stats.of));
}

void slotStatsSlotsChanged(void) {
    if (likely(!stats.of)) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        uint64_t bit = UINT64_C(1) << slot % 64, *word = &stats.served[slot / 64];
        if (serverRoleServes(slot) == ((*word & bit) != 0)) continue;
        *word ^= bit;
        stats.of[slot] = (slotUsage){.cpu_ns = 0};
    }
}

status slotStatsApply(reason *why) {
    (void)why; /* cannot fail */
    bool on = clusterConf.cluster_slot_stats_enabled;
    if (!clusterIsEnabled() || !serverMap.myself || on == (stats.of != NULL)) return OK;
    if (on) {
        stats.of = memNewArray(slotUsage, SLOT_COUNT);
        slotStatsSlotsChanged();
    } else {
        memFree(stats.of);
        stats.of = NULL;
    }
    stats.running = NULL;
    commandObserverArm(&slotStatsObserver, on);
    sinkArm(&slotStatsSink, on);
    return OK;
}

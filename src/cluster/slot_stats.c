/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters per slot (slot_stats.h). A command counts for the slot of its keys when it has been
 * executed; one that blocks counts when it is served. In a transaction the duration and the reply
 * of EXEC count once, and the queued requests one by one. Commands that a script calls count as a
 * part of the script. A script counts for the slot of the last command that it has called, and for
 * none if its commands may use several slots.
 *
 * Invariant: the time of a slot is the sum of the microseconds that INFO commandstats shows for the
 * commands that count for it, so both show the same integers. */
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
    /* The outermost command being executed, with the output that was pending before it, and the
     * slot that it counts for: that of its keys or of its transaction, until a script in it has
     * used another one. */
    const ctx *running;
    size_t pending;
    int slot;
    bool muted; /* may use several slots: nothing that it propagates is counted */
} stats;

slotUsage slotStatsOf(int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    return stats.of ? stats.of[slot] : (slotUsage){.cpu_us = 0};
}

/* The microseconds by which INFO commandstats shows more since the command got `ns`. */
static uint64_t shownUs(const command *cmd, int64_t ns) {
    hotCheck(ns >= 0);
    uint64_t now = cmd->usec_ns, more = (uint64_t)ns < now ? (uint64_t)ns : now;
    return now / 1000 - (now - more) / 1000;
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
    bool is_nested = c->below && stats.running; /* of another client, in a nested turn */
    if (c->outer || is_nested || !stats.of) return;
    stats.running = c;
    stats.pending = outbufPending(c->out);
    stats.slot = slotOf(c);
    stats.muted = false;
    if (c->origin != ORIGIN_CLIENT || !c->who->multi || !endsTransaction(c)) return;
    (void)transactionEach(c->who, countQueued, NULL);
    if (c->cmd->flags & CMD_RUNS_QUEUE)
        stats.slot = commandSlots(transactionSlot(c->who), c->cmd, c->argv, c->argc);
}

/* Returns the bytes that a command has replied. If its client was blocked, the earlier output is
 * not known, but was sent long ago. */
static size_t replyBytes(const ctx *c) {
    check(c->out);
    if (c != stats.running) return c->flags & CTX_WOKEN ? outbufPending(c->out) : 0;
    size_t now = outbufPending(c->out);
    return now > stats.pending ? now - stats.pending : 0;
}

/* Called after a script, run by the outermost command or in its transaction, has run a command: the
 * script is counted for the slot of this command. */
static void takeSlotOfScript(const ctx *c) {
    const ctx *script = c->outer, *outermost = script->outer ? script->outer : script;
    bool is_inside = outermost == stats.running &&
                     (script == outermost || outermost->cmd->flags & CMD_RUNS_QUEUE);
    if (c->origin != ORIGIN_SCRIPT || !is_inside) return;
    stats.muted = !(script->flags & CTX_ONE_SLOT);
    stats.slot = stats.muted ? COMMAND_NO_SLOT : slotOf(c);
}

static void afterInner(const ctx *c) {
    const ctx *outer = c->outer;
    check(outer);
    takeSlotOfScript(c);
    if (outer != stats.running || !(outer->cmd->flags & CMD_RUNS_QUEUE) || stats.slot < 0) return;
    /* As in Valkey the replies within a transaction count once more, from its beginning on. */
    if (c->out == outer->out) stats.of[stats.slot].bytes_out += replyBytes(outer);
}

static void count(const ctx *c, int slot, int64_t ns) {
    check(slot < SLOT_COUNT);
    if (slot >= 0) {
        static const slice multi[] = {SLICE("MULTI")};
        bool runs_queue = c->cmd->flags & CMD_RUNS_QUEUE;
        stats.of[slot].cpu_us += shownUs(c->cmd, ns);
        stats.of[slot].bytes_in += receivedBytes(c) + (runs_queue ? requestBytes(multi, 1) : 0);
    }
    /* Valkey counts the replies to the commands of a script. In this server these replies are not
     * encoded as bytes, so the reply of the script is counted instead, for the slot of its keys. */
    int answers = slot >= 0 ? slot : slotOf(c);
    if (answers >= 0 && c->origin == ORIGIN_CLIENT) stats.of[answers].bytes_out += replyBytes(c);
}

static void after(ctx *c, int64_t duration_ns) {
    bool is_running = c == stats.running;
    if (!stats.of || c->origin == ORIGIN_AOF) return;
    if (c->outer && !(c->flags & CTX_WOKEN)) {
        if (!(c->flags & CTX_NOT_RUN)) afterInner(c);
        return;
    }
    if (!(c->flags & CTX_NOT_RUN)) count(c, is_running ? stats.slot : slotOf(c), duration_ns);
    if (is_running) stats.running = NULL;
}

static void worked(ctx *c, int64_t duration_ns) {
    int slot = stats.of && c->origin != ORIGIN_AOF ? slotOf(c) : COMMAND_NO_SLOT;
    if (slot >= 0) stats.of[slot].cpu_us += shownUs(c->cmd, duration_ns);
}

const commandObserver slotStatsObserver = {
    .name = "slot statistics", .before = before, .after = after, .worked = worked};

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
        stats.of[slot] = (slotUsage){.cpu_us = 0};
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER SLOT-STATS. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "base/number.h"
#include "cluster/cluster_priv.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/server_slots.h"
#include "cluster/slot_stats.h"
#include "engine/reply.h"

typedef enum metric { KEY_COUNT, CPU_USEC, BYTES_IN, BYTES_OUT, METRICS } metric;

static const char *const metric_names[METRICS] = {"key-count", "cpu-usec", "network-bytes-in",
                                                  "network-bytes-out"};

/* Those that are counted. */
static int metricCount(void) { return clusterConf.cluster_slot_stats_enabled ? METRICS : 1; }

static uint64_t valueOf(int slot, metric which) {
    check(which < METRICS);
    slotUsage usage = slotStatsOf(slot);
    switch (which) {
    case KEY_COUNT: return serverSlotsCountKeys(slot);
    case CPU_USEC: return usage.cpu_us;
    case BYTES_IN: return usage.bytes_in;
    default: return usage.bytes_out;
    }
}

static void replySlot(ctx *c, int slot) {
    replyArray(c, 2);
    replyInteger(c, slot);
    replyMap(c, metricCount());
    for (int i = 0; i < metricCount(); i++) {
        replyBulkText(c, metric_names[i]);
        replyInteger(c, (int64_t)valueOf(slot, (metric)i));
    }
}

/* ------------------------------------------------------------------ SLOTSRANGE */

static void replyRange(ctx *c) {
    int first, last, count = 0;
    if (!clusterSlotArg(c, 3, &first) || !clusterSlotArg(c, 4, &last)) return;
    if (first > last) {
        replyErrorFormat(c, "ERR Start slot number %d is greater than end slot number %d", first,
                         last);
        return;
    }
    respDeferred head = respDeferBegin(c->out);
    for (int slot = first; slot <= last; slot++) {
        if (!serverRoleServes(slot)) continue;
        replySlot(c, slot);
        count++;
    }
    respDeferEnd(c->out, head, '*', c->proto, count);
}

/* ------------------------------------------------------------------ ORDERBY */

typedef struct ranked {
    int slot;
    uint64_t value;
} ranked;

static int compareFalling(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->slot - y->slot;
}

static int compareRising(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->slot - y->slot;
}

static void replyRanked(ctx *c, metric which, bool rising, int64_t limit) {
    check(limit > 0);
    check(limit <= SLOT_COUNT);
    ranked *list = memNewArray(ranked, SLOT_COUNT);
    int count = 0;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (serverRoleServes(slot)) list[count++] = (ranked){slot, valueOf(slot, which)};
    }
    qsort(list, (size_t)count, sizeof(*list), rising ? compareRising : compareFalling);
    if (count > limit) count = (int)limit;
    replyArray(c, count);
    for (int i = 0; i < count; i++) replySlot(c, list[i].slot);
    memFree(list);
}

static bool metricArg(ctx *c, int at, metric *out) {
    for (int i = 0; i < metricCount(); i++) {
        if (!ctxArgIs(c, at, metric_names[i])) continue;
        *out = (metric)i;
        return true;
    }
    replyError(c, SLICE("ERR Unrecognized sort metric for ORDERBY."));
    return false;
}

static bool limitArg(ctx *c, int at, int64_t *out) {
    if (numberParseInt(c->argv[at], out) && *out >= 1 && *out <= SLOT_COUNT) return true;
    replyErrorFormat(c, "ERR Limit has to lie in between 1 and %d (maximum number of slots).",
                     SLOT_COUNT);
    return false;
}

static void replyOrdered(ctx *c) {
    metric which;
    int64_t limit = SLOT_COUNT;
    bool rising = false, has_limit = false, has_order = false;
    if (!metricArg(c, 3, &which)) return;
    for (int i = 4; i < c->argc; i++) {
        bool is_limit = ctxArgIs(c, i, "limit") && i + 1 < c->argc;
        bool is_order = ctxArgIs(c, i, "asc") || ctxArgIs(c, i, "desc");
        if (!is_limit && !is_order) {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
        if ((is_limit && has_limit) || (is_order && has_order)) {
            replyError(c, SLICE("ERR Multiple filters of the same type are disallowed."));
            return;
        }
        if (is_order) {
            has_order = true;
            rising = ctxArgIs(c, i, "asc");
        } else {
            has_limit = true;
            if (!limitArg(c, ++i, &limit)) return;
        }
    }
    replyRanked(c, which, rising, limit);
}

/* CLUSTER SLOT-STATS SLOTSRANGE first last | ORDERBY metric [LIMIT count] [ASC|DESC]. Reply: slots
 * that this node serves, each with its counters. */
void clusterSlotStatsCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    if (!clusterIsNode(c)) return;
    if (c->argc == 5 && ctxArgIs(c, 2, "slotsrange")) {
        replyRange(c);
    } else if (ctxArgIs(c, 2, "orderby")) {
        replyOrdered(c);
    } else {
        replyErrorSubcommand(c);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock of the bus. The time passed in must not go back. If the process was stopped, or
 * executed a long script, the other nodes seem to have been silent meanwhile, and this node would
 * suspect all of them. So after such a gap the times are moved on by its length at which other
 * nodes were last heard, and at which PINGs were sent to them. Deadlines are not moved: a failover
 * whose time is over stays over. */
#include "base/base.h"
#include "bus/bus_priv.h"

enum { GAPS_IN_TIMEOUT = 4 }; /* a shorter gap does no harm */

static void move(int64_t *at_ms, int64_t by_ms) {
    if (*at_ms) *at_ms += by_ms;
}

static void skipGap(clusterBus *b, int64_t gap_ms) {
    check(gap_ms > 0);
    for (int i = 1; i < b->map->node_count; i++) {
        clusterNode *n = b->map->nodes[i];
        move(&n->ping_sent_ms, gap_ms);
        move(&n->heard_ms, gap_ms);
        failureNotRefused(n); /* it may have been up meanwhile */
        if (n->flags & NODE_HANDSHAKE) move(&n->added_ms, gap_ms);
    }
}

void busSetNow(clusterBus *b, int64_t now_ms) {
    int64_t late_ms = b->ticked_ms ? now_ms - b->ticked_ms - BUS_TICK_MS : 0;
    check(now_ms >= b->now_ms);
    if (late_ms > BUS_TICK_MS && late_ms > b->rules.timeout_ms / GAPS_IN_TIMEOUT) {
        skipGap(b, late_ms);
        b->ticked_ms = now_ms;
    }
    b->now_ms = now_ms;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock of the bus. It never goes back. If the node has not run for a while, as it was stopped
 * or executed a script, this does not count as silence of the others: else it would suspect all of
 * them. Deadlines stay: what had to end has ended. */
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

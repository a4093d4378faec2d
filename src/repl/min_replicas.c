/* SPDX-License-Identifier: BSD-3-Clause
 *
 * min-replicas-to-write (min_replicas.h).
 *
 * Invariant: the gate is armed only while writes are refused. */
#include "repl/min_replicas.h"

#include "engine/hot.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "repl/repl_priv.h"
#include "repl/rules.h"

static int good_count;

static gateVerdict refuse(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !transactionHas(c->who, CMD_WRITE)) return GATE_PASS;
    replyError(c, SLICE("NOREPLICAS Not enough good replicas to write."));
    return GATE_REFUSED;
}

const gate minReplicasGate = {.name = "min replicas",
                              .selects = replSelectsWrites,
                              .admit = refuse,
                              .again = true,
                              .waived_for_writer = true};

bool minReplicasIsOn(void) {
    return replConf.min_replicas_to_write > 0 && replConf.min_replicas_max_lag > 0;
}

int minReplicasGood(void) { return good_count; }

void minReplicasUpdate(const replPrimary *p) {
    hotCheck(threadIsMain());
    if (!minReplicasIsOn() && !gateIsArmed(&minReplicasGate)) return;
    good_count = primaryCountGood(p, replConf.min_replicas_max_lag, engineHot.now_ms);
    bool refuses =
        minReplicasIsOn() && !p->is_replica && good_count < replConf.min_replicas_to_write;
    if (gateIsArmed(&minReplicasGate) != refuses) gateArm(&minReplicasGate, refuses);
}

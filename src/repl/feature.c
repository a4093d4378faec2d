/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replication. So far: its directives, and the INFO fields of a primary without replicas. Main
 * thread only. */
#include "base/base.h"
#include "base/random.h"
#include "config/config.h"
#include "repl/repl.h"
#include "repl/repl_priv.h"

static char replication_id[41]; /* identifies the dataset of this run */

/* A server configured as a replica must not start as a primary and accept writes. */
static status init(reason *why) {
    str primary = STR_EMPTY;
    configGet(configFind(SLICE("replicaof")), &primary);
    bool has_primary = primary.len > 0;
    strFree(&primary);
    if (has_primary) {
        return reasonSet(why, ERR_DENIED,
                         "this version of the server cannot replicate: start it without replicaof");
    }
    randomHex(replication_id, 40);
    return OK;
}

static void printReplication(str *out) {
    strAppendText(out, "role:master\r\nconnected_slaves:0\r\nreplicas_waiting_psync:0\r\n");
    strAppendFormat(out, "master_failover_state:no-failover\r\nmaster_replid:%s\r\n",
                    replication_id);
    strAppendText(out, "master_replid2:0000000000000000000000000000000000000000\r\n");
    strAppendText(out,
                  "master_repl_offset:0\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:0\r\n");
}

static const infoSection sections[] = {
    {"replication", "# Replication", INFO_NORMAL, INFO_REPLICATION, printReplication},
    {0},
};

const feature replFeature = {
    .name = "repl", .options = replOptions, .info = sections, .init = init};

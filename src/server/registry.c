/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one list of what this server is made of. The order is the order of start; shutdown goes back. */
#include "acl/acl.h"
#include "cluster/cluster.h"
#include "cmd/cmd.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/pause.h"
#include "engine/transaction.h"
#include "metrics/metrics.h"
#include "net/net.h"
#include "persist/persist.h"
#include "pubsub/pubsub.h"
#include "repl/repl.h"
#include "script/script.h"
#include "server/roof.h"
#include "server/server_priv.h"

/* One a line, so that two people may add theirs. */
// clang-format off
const feature *const serverFeatures[] = {
    &serverFeature,
    &engineFeature,
    &keyspaceFeature,
    &memoryFeature,
    &defragFeature,
    &cmdFeature,
    &netFeature,
    &aclFeature,
    &pubsubFeature,
    &persistFeature,
    &scriptFeature,
    &replFeature,
    &clusterFeature,
    &metricsFeature,
#ifdef HOT_CHECKS
    &recordFeature,
#endif
};
const int serverFeatureCount = sizeof(serverFeatures) / sizeof(serverFeatures[0]);

/* Who wins when several gates would refuse. What is to be queued has passed all others before. */
const gate *const serverGateOrder[] = {
    &debugGate,
    &noMultiGate,
    &clusterRedirectGate,
    &monitorGate,
    &memoryGate,
    &pauseGate,
    &queueGate,
};
// clang-format on
const int serverGateCount = sizeof(serverGateOrder) / sizeof(serverGateOrder[0]);

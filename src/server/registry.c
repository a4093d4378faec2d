/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of all features, in the order of their start; shutdown uses the reverse order. */
#include "account/account.h"
#include "account/quota.h"
#include "account/share.h"
#include "acl/acl.h"
#include "cluster/cluster.h"
#include "cmd/cmd.h"
#include "defrag/defrag.h"
#include "engine/dictionary_trainer.h"
#include "engine/engine.h"
#include "engine/expiry_gate.h"
#include "engine/job_gate.h"
#include "engine/memory.h"
#include "engine/pause.h"
#include "engine/transaction.h"
#include "gateway/gateway.h"
#include "metrics/metrics.h"
#include "module/module.h"
#include "net/net.h"
#include "persist/persist.h"
#include "pubsub/pubsub.h"
#include "repl/repl.h"
#include "script/script.h"
#include "sentinel/sentinel.h"
#include "server/server.h"
#include "server/server_priv.h"

/* One per line, to avoid merge conflicts. */
// clang-format off
const feature *const serverFeatures[] = {
    &serverFeature,
    &engineFeature,
    &keyspaceFeature,
    &memoryFeature,
    &dictionaryTrainerFeature,
    &compressValuesFeature,
    &accountFeature,
    &quotaFeature,
    &shareFeature,
    &defragFeature,
    &cmdFeature,
    &netFeature,
    &moduleFeature, /* before acl: modules are asked before passwords */
    &aclFeature,
    &pubsubFeature,
    &persistFeature,
    &scriptFeature,
    &replFeature,
    &clusterFeature,
    &gatewayFeature,
    &metricsFeature,
#ifdef HOT_CHECKS
    &recordFeature,
    &recordEventsFeature,
#endif
};
// clang-format on
const int serverFeatureCount = sizeof(serverFeatures) / sizeof(serverFeatures[0]);

/* What has no dataset. */
// clang-format off
const feature *const sentinelFeatures[] = {
    &sentinelServerFeature,
    &engineFeature,
    &keyspaceFeature,
    &memoryFeature,
    &accountFeature,
    &quotaFeature,
    &shareFeature,
    &cmdFeature,
    &netFeature,
    &aclFeature,
    &pubsubFeature,
    &sentinelFeature,
    &metricsFeature,
};
// clang-format on
const int sentinelFeatureCount = sizeof(sentinelFeatures) / sizeof(sentinelFeatures[0]);

/* Precedence of gates that would refuse the same request. The gate for shares of time comes first:
 * the other gates check a held request when it runs. The gate that queues commands comes last:
 * queued commands have passed all others. */
// clang-format off
const gate *const serverGateOrder[] = {
    &shareGate,
    &gatewayUserGate,
    &debugGate,
    &moduleGate,
    &noMultiGate,
    &aclGate,
    &aclKeyGate,
    &aclChannelGate,
    &trialGate, /* after these: only a user who may replicate passes a trial */
    &gatewayGate, /* before the redirects, which its sessions must not see */
    &clusterRedirectGate,
    &slotImportGate,
    &replicaStreamGate,
    &replicaDiskGate,
    &skippedKeysGate,
    &replicaRedirectGate,
    &loadingGate,
    &asyncLoadingGate,
    &scriptBusyGate,
    &moduleBusyGate,
    &memoryGate,
    &quotaGate,
    &scriptRulesGate,
    &snapshotErrorGate,
    &aofErrorGate,
    &minReplicasGate,
    &quorumGate,
    &replicaKeyspaceGate,
    &replicaReadOnlyGate,
    &pubsubContextGate,
    &replicaStaleGate,
    &monitorGate,
    &pauseGate,
    &queueGate,
    &jobGate,        /* after it: what is queued waits with EXEC */
    &claimGate,      /* for the same reason, and after jobGate, which holds what writes */
    &expiryGate,     /* for the same reason */
    &heldOutputGate, /* after it: what is queued is not run now */
    &aofOutputGate,  /* for the same reason */
};
// clang-format on
const int serverGateCount = sizeof(serverGateOrder) / sizeof(serverGateOrder[0]);

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the cluster hangs up: directives, the gate, its periodic verdict. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "engine/hot.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/nodes.h"

bool clusterIsEnabled(void) { return clusterConf.cluster_enabled; }

int clusterDatabases(void) { return clusterConf.cluster_databases; }

static void printCluster(str *out) {
    strAppendFormat(out, "cluster_enabled:%d\r\n", clusterIsEnabled());
}

static status init(reason *why) {
    if (!clusterIsEnabled()) return OK;
    bool found;
    nodesInit();
    status st = nodesLoad(clusterConf.cluster_config_file, &found, why);
    if (st != OK) return st;
    logNotice(found ? "Node configuration loaded, I'm %.40s"
                    : "No cluster configuration found, I'm %.40s",
              nodeMyself()->id);
    nodesChanged();
    gateArm(&clusterRedirectGate, true);
    return OK;
}

static void judge(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    if (clusterIsEnabled()) nodesJudge(engineHot.now_ms);
}

/* Before replies go out: who hears OK can rely on the file. */
static void settle(void) {
    if (clusterIsEnabled()) nodesSettle();
}

static const tickJob ticks[] = {{"cluster-state", 100, judge}, {0}};
static const stageJob stages[] = {{STAGE_LOG, settle}, {0}};

static const gate *const gates[] = {&clusterRedirectGate, NULL};

static const infoSection sections[] = {
    {"cluster", "# Cluster", INFO_NORMAL, INFO_CLUSTER, printCluster},
    {0},
};

const feature clusterFeature = {.name = "cluster",
                                .options = clusterOptions,
                                .info = sections,
                                .ticks = ticks,
                                .stages = stages,
                                .gates = gates,
                                .init = init};

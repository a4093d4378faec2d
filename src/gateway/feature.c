/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registers the gateway: directives, gates, INFO, its part in a turn. Main thread only. */
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/lifecycle.h"
#include "gateway/call.h"
#include "gateway/caching.h"
#include "gateway/client.h"
#include "gateway/gateway.h"
#include "gateway/gateway_priv.h"
#include "gateway/identity.h"
#include "gateway/peer.h"
#include "gateway/shard.h"
#include "net/net.h"

static bool isUsed(void) { return gatewayCountsNow().clients || peerCount(); }

static void endTurn(void);

/* A turn of the loop pays for these only while there are clients or links. */
static const stageJob stages[] = {
    {STAGE_AFTER_SLEEP, gatewayResume}, {STAGE_REPLICATE, endTurn}, {0}};
static const feature turns = {.name = "gateway-turns", .stages = stages};
static bool has_turns;

/* Before replies are written: the requests of the turn are sent, and what has come is passed on. */
static void endTurn(void) {
    hotCheck(has_turns);
    if (!isUsed()) {
        has_turns = false;
        hooksRemoveFeature(&turns);
        return;
    }
    callsRetry();
    peersFlush();
    gatewaySettle();
    if (callsWait() || gatewayCountsNow().held) loopLimitSleep(engineLoop(), 20);
}

static void onSession(session *s, sessionEvent e) {
    if (likely(!(s->flags & SESSION_GATEWAY))) return;
    gatewaySessionEvent(s, e);
    if (has_turns || !gatewayCountsNow().clients) return;
    has_turns = true;
    hooksAddFeature(&turns);
}

static void tick(int64_t budget_us) {
    (void)budget_us; /* a few links */
    if (!isUsed()) return;
    peersTick();
    cachingTick();
    shardTick();
}

static status closeLinks(uint32_t flags, reason *why) {
    (void)flags, (void)why; /* nothing to wait for */
    peersCloseAll();
    return OK;
}

/* The shards, as this node knows them. */
static void printShards(str *out) {
    enum { OWNERS_MAX = 1024 };
    const clusterNode *owners[OWNERS_MAX];
    int count = clusterOwners(owners, OWNERS_MAX);
    for (int i = 0; i < count && i < OWNERS_MAX; i++) {
        const clusterNode *n = owners[i];
        strAppendFormat(out, "gateway_shard%d:id=%.*s,slots=%d,replicas=%d,failed=%d\r\n", i,
                        NODE_ID_LEN, n->id, n->slot_count, n->replica_count,
                        (n->flags & NODE_FAILED) != 0);
    }
}

static void print(str *out) {
    if (!netGatewayPort() && !isUsed() && !identityLinks()) return;
    gatewayCounts now = gatewayCountsNow();
    strAppendFormat(out,
                    "gateway_clients:%d\r\ngateway_held_clients:%d\r\n"
                    "gateway_requests_here:%llu\r\ngateway_requests_elsewhere:%llu\r\n"
                    "gateway_requests_merged:%llu\r\ngateway_holds:%llu\r\n",
                    now.clients, now.held, (unsigned long long)now.here,
                    (unsigned long long)now.elsewhere, (unsigned long long)now.merged,
                    (unsigned long long)now.holds);
    strAppendFormat(
        out,
        "gateway_calls_sent:%llu\r\ngateway_calls_redirected:%llu\r\n"
        "gateway_calls_repeated:%llu\r\ngateway_calls_unknown:%llu\r\n"
        "gateway_calls_given_up:%llu\r\ngateway_calls_memory:%zu\r\n"
        "gateway_links_out:%d\r\ngateway_links_in:%d\r\n",
        (unsigned long long)callStatistics.sent, (unsigned long long)callStatistics.redirected,
        (unsigned long long)callStatistics.repeated, (unsigned long long)callStatistics.unknown,
        (unsigned long long)callStatistics.gave_up, callsMemory(), peerCount(), identityLinks());
    peersPrint(out);
    if (clusterIsEnabled()) printShards(out);
}

static status init(reason *why) {
    if (!netGatewayPort() || clusterIsEnabled()) return OK;
    return reasonSet(why, ERR_DENIED, "cluster-gateway-port needs cluster-enabled yes");
}

static const tickJob ticks[] = {{"gateway", 100, tick, isUsed}, {0}};
static const gate *const gates[] = {&gatewayGate, &gatewayUserGate, NULL};
static const infoSection sections[] = {
    {"gateway", "# Gateway", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_GATEWAY, print},
    {0},
};

const feature gatewayFeature = {.name = "gateway",
                                .options = gatewayOptions,
                                .info = sections,
                                .ticks = ticks,
                                .gates = gates,
                                .on_session = onSession,
                                .on_commands = gatewayCommandsChanged,
                                .on_shutdown = closeLinks,
                                .init = init};

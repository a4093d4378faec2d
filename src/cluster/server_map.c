/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of this server: sets what this node announces by directives, and saves the map when it
 * has changed.
 *
 * Invariants: in the map this node has the texts and ports of the directives. Without
 * cluster-announce-ip its address is the one at which other nodes have seen it. Main thread
 * only. */
#include "cluster/server_map.h"

#include <unistd.h>

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "cluster/server_file.h"
#include "cluster/slot_pause.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "net/net.h"

enum {
    COMPLAINT_MS = 30000,
    BEST_EFFORT_MS = 500, /* with cluster-config-save-behavior best-effort: nobody waits longer */
    NO_END_MS = 24 * 3600 * 1000,
};

clusterMap serverMap;
clusterState serverClusterState;
mapSaves serverMapSaves;
static bool holds_saves;        /* serverMapHoldSaves() */
static int64_t unsaved_told_ms; /* when a failure was last told of; 0: never */

/* ------------------------------------------------------------------ what this node announces */

static int firstPort(int announced, int own) { return announced ? announced : own; }

void serverMapAnnounce(void) {
    const clusterConfig *conf = &clusterConf;
    clusterNode *n = serverMap.myself;
    int tcp, tls, bus = serverBusPort();
    netListenPorts(&tcp, &tls);
    clusterMapSetPort(&serverMap, &n->tcp_port, firstPort(conf->cluster_announce_port, tcp));
    clusterMapSetPort(&serverMap, &n->tls_port, firstPort(conf->cluster_announce_tls_port, tls));
    if (conf->cluster_announce_bus_port) bus = conf->cluster_announce_bus_port;
    clusterMapSetPort(&serverMap, &n->bus_port, bus > CONFIG_PORT_MAX ? 0 : bus);
    clusterMapSetPort(&serverMap, &n->client_tcp_port, conf->cluster_announce_client_port);
    clusterMapSetPort(&serverMap, &n->client_tls_port, conf->cluster_announce_client_tls_port);
    clusterMapSetReplicaPriority(&serverMap, n, conf->cluster_replica_priority);
    engineIdentity server;
    engineIdentify(&server);
    const struct {
        str *to;
        const char *text;
    } texts[] = {{&n->availability_zone, server.availability_zone},
                 {&n->hostname, conf->cluster_announce_hostname},
                 {&n->human_name, conf->cluster_announce_human_nodename},
                 {&n->client_ipv4, conf->cluster_announce_client_ipv4},
                 {&n->client_ipv6, conf->cluster_announce_client_ipv6}};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        clusterMapSetText(&serverMap, texts[i].to, sliceOf(texts[i].text));
    bool no_failover = conf->bus.no_failover;
    clusterMapSetFlags(&serverMap, n, no_failover ? NODE_NO_FAILOVER : 0,
                       no_failover ? 0 : NODE_NO_FAILOVER);
    /* Without the directive the address is one that other nodes have seen. */
    if (conf->cluster_announce_ip[0])
        clusterMapSetText(&serverMap, &n->ip, sliceOf(conf->cluster_announce_ip));
}

status serverMapApplyAnnounced(reason *why) {
    (void)why; /* cannot fail: the values were checked */
    if (serverMap.myself) serverMapAnnounce();
    return OK;
}

/* An empty address is detected again. */
status serverMapApplyIp(reason *why) {
    (void)why;
    if (serverMap.myself)
        clusterMapSetText(&serverMap, &serverMap.myself->ip,
                          sliceOf(clusterConf.cluster_announce_ip));
    return OK;
}

/* ------------------------------------------------------------------ start */

/* Fails if the ports and addresses of this server do not permit a bus. */
static status checkNetwork(reason *why) {
    const char *const *addrs;
    if (!clusterConf.cluster_port &&
        serverBusBasePort() > CONFIG_PORT_MAX - CLUSTER_BUS_PORT_OFFSET)
        return reasonSet(why, ERR_LIMIT,
                         "Valkey port number too high. Cluster communication port is 10,000 port "
                         "numbers higher than your Valkey port. Your Valkey port number must be "
                         "55535 or less.");
    if (netBindAddresses(&addrs) == 0)
        return reasonSet(why, ERR_SYNTAX,
                         "No bind address is configured, but it is required for the Cluster bus.");
    return OK;
}

status serverMapInit(reason *why) {
    bool found, intact;
    status st = serverFileOpen(&serverMap, &found, &intact, why);
    if (st != OK) return st;
    if (!found) clusterMapInit(&serverMap, serverBusNowMs());
    logNotice(found ? "Node configuration loaded, I'm %.40s"
                    : "No cluster configuration found, I'm %.40s",
              serverMap.myself->id);
    st = checkNetwork(why);
    if (st != OK) return st;
    serverMapAnnounce();
    mapSavesInit(&serverMapSaves, &serverMap);
    serverMap.changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
    if (!intact) serverMap.changed |= CLUSTER_MAP_SYNC;
    return OK;
}

/* ------------------------------------------------------------------ saves */

/* Writes to slots whose claim is not in the file wait: if this node restarts without it, they would
 * be lost. */
static void pauseUnsaved(void) {
    static bool on;
    const uint64_t *unsaved = mapSavesUnsaved(&serverMapSaves);
    if (!unsaved) {
        if (on) slotPauseEnd(SLOT_PAUSE_UNSAVED);
        on = false;
        return;
    }
    slotMask slots;
    _Static_assert(sizeof(slots.words) == sizeof(serverMapSaves.unsaved), "the same bits");
    memcpy(slots.words, unsaved, sizeof(slots.words));
    slotPauseSet(SLOT_PAUSE_UNSAVED, &slots, engineHot.now_ms + NO_END_MS);
    on = true;
}

/* After a failed save the process ends, or goes on, as cluster-config-save-behavior says. */
static void failed(void) {
    if (clusterConf.cluster_config_save_behavior == SAVE_BEST_EFFORT) {
        if (logIsDue(&unsaved_told_ms, engineHot.now_ms, COMPLAINT_MS))
            logWarning("Cluster config updated even though writing the cluster config file to disk "
                       "failed.");
        return;
    }
    logWarning("Fatal: can't update cluster config file.");
    _exit(1); /* without cleaning up what other threads use */
}

static void saveEnded(status st) {
    if (st != OK) failed();
    mapSavesEnd(&serverMapSaves, &serverMap, st == OK);
    pauseUnsaved();
    serverMapBeginSave();
}

static void take(bool ordered) {
    uint64_t before = serverMapSaves.wanted;
    mapSavesTake(&serverMapSaves, &serverMap, ordered);
    if (serverMapSaves.wanted != before) pauseUnsaved();
}

void serverMapNote(void) { take(false); }

void serverMapNoteOrders(void) { take(true); }

void serverMapBeginSave(void) {
    bool flush;
    check(serverMap.myself);
    if (holds_saves) return;
    if (mapSavesBegin(&serverMapSaves, &serverMap, serverBusNowMs(), &flush))
        serverFileBegin(&serverMap, flush, saveEnded);
}

void serverMapHoldSaves(bool on) {
    holds_saves = on;
    serverMapBeginSave();
}

/* As if saves were not held. */
static void saveNow(void) {
    bool held = holds_saves;
    serverMapNote();
    serverMapHoldSaves(false);
    serverFileWait(); /* its end begins the one that has these changes, if another one runs */
    holds_saves = held;
}

status serverMapSave(reason *why) {
    saveNow();
    status st = serverFileWrite(&serverMap, true, why);
    serverFileWait(); /* for the copy */
    return st;
}

/* ------------------------------------------------------------------ changes */

void serverMapApplyChanges(bool ordered) {
    take(ordered);
    serverMap.changed = 0;
    serverMapBeginSave();
    mapSaves *s = &serverMapSaves;
    if (mapSavesHasOrders(s)) {
        saveNow();
        check(!mapSavesIsPending(s));
        check(!mapSavesHasOrders(s));
    } else if (likely(!s->runs)) {
        return;
    } else if (clusterConf.cluster_config_save_behavior == SAVE_BEST_EFFORT &&
               mapSavesIsPending(s) && serverBusNowMs() - s->began_ms > BEST_EFFORT_MS) {
        mapSavesGiveUp(s, &serverMap);
        pauseUnsaved();
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/server_map.h"

#include <unistd.h>

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "io/file.h"
#include "net/net.h"

enum { FILE_MAX_BYTES = 64 << 20 };

clusterMap serverMap;
clusterState serverClusterState;

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

bool serverMapIsMine(int slot) { return clusterMapIsMine(&serverMap, slot); }

/* ------------------------------------------------------------------ the configuration file */

static status readFile(const char *path, bool *found, reason *why) {
    str text = STR_EMPTY;
    reason line;
    status st = fileReadAll(path, FILE_MAX_BYTES, &text, why);
    *found = st == OK && text.len > 0; /* an empty one was created but never written */
    if (*found) {
        st = clusterMapParse(&serverMap, strSlice(&text), netTlsForCluster(), serverBusNowMs(),
                             &line);
        if (st != OK)
            reasonSet(why, st, "Unrecoverable error: corrupted cluster config file \"%s\": %s.",
                      path, line.text);
    }
    strFree(&text);
    return st == ERR_NOT_FOUND ? OK : st;
}

status serverMapInit(reason *why) {
    bool found;
    status st = readFile(clusterConf.cluster_config_file, &found, why);
    if (st != OK) return st;
    if (!found) clusterMapInit(&serverMap, serverBusNowMs());
    logNotice(found ? "Node configuration loaded, I'm %.40s"
                    : "No cluster configuration found, I'm %.40s",
              serverMap.myself->id);
    serverMapAnnounce();
    serverMap.changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
    return OK;
}

status serverMapSave(reason *why) {
    str text = STR_EMPTY;
    clusterMapPrint(&serverMap, netTlsForCluster(), &text);
    status st = fileReplace(clusterConf.cluster_config_file, strSlice(&text), 0644, why);
    strFree(&text);
    return st;
}

/* ------------------------------------------------------------------ changes */

void serverMapApplyChanges(void) {
    if (likely(!serverMap.changed)) return;
    bool save = serverMap.changed & (CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC);
    serverMap.changed = 0;
    reason why;
    if (!save || serverMapSave(&why) == OK) return;
    if (clusterConf.cluster_config_save_behavior == SAVE_BEST_EFFORT) {
        logWarning("Cluster config updated even though writing the cluster config file to disk "
                   "failed: %s",
                   why.text);
        return;
    }
    logWarning("Fatal: can't update cluster config file: %s", why.text);
    _exit(1); /* without cleaning up what other threads use */
}

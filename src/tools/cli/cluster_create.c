/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster create`: a cluster of empty nodes. */
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/cluster_priv.h"

/* Connects to the nodes on the command line, which must be empty. */
static bool loadNodes(clusterManager *m, int argc, char **argv) {
    str host = STR_EMPTY;
    bool valid = true;
    for (int i = 0; i < argc && valid; i++) {
        int port, bus_port;
        valid = clusterNodeParseAddress(argv[i], &host, &port, &bus_port);
        if (!valid) {
            fprintf(stderr, "Invalid address format: %s\n", argv[i]);
            break;
        }
        clusterNode *node = clusterNodeNew(strText(&host), port, bus_port);
        clusterNodesAdd(&m->nodes, node);
        valid = managerLoadEmpty(m, node);
    }
    strFree(&host);
    return valid;
}

/* Number of primaries; 0 if the configuration is refused. */
static int countPrimaries(const clusterManager *m, int replicas) {
    enum { FAILOVER_MIN = 3 };
    int primaries = m->nodes.count / (replicas + 1);
    if (primaries >= FAILOVER_MIN) return primaries;
    managerPrint(m, LEVEL_INFO,
                 "Requested to create a cluster with %d primaries and %d replicas per primary.\n",
                 primaries, replicas);
    if (primaries == 0) {
        managerPrint(m, LEVEL_ERROR, "[ERR] %d nodes are not enough for %d replicas per primary.\n",
                     m->nodes.count, replicas);
        return 0;
    }
    return managerConfirm(m, "Valkey cluster requires at least 3 primary nodes for automatic "
                             "failover. Are you sure?")
               ? primaries
               : 0;
}

static void printAffinity(const clusterManager *m, int cost) {
    if (cost == 0) {
        managerPrint(m, LEVEL_OK, "[OK] Perfect anti-affinity obtained!\n");
    } else if (cost >= AFFINITY_PRIMARY) {
        managerPrint(m, LEVEL_WARNING,
                     "[WARNING] Some replicas are in the same host as their primary\n");
    } else {
        managerPrint(m, LEVEL_WARNING,
                     "[WARNING] Some replicas of the same primary are in the same host\n");
    }
}

/* Decides which node does what, and writes it into the nodes. */
static void planRoles(clusterManager *m, int primaries, int replicas) {
    int count = m->nodes.count;
    clusterNode **order = memNewArray(clusterNode *, count);
    replicaChoice *choices = memNewArray(replicaChoice, count);
    managerPrint(m, LEVEL_INFO, ">>> Performing hash slots allocation on %d node(s)...\n", count);
    planInterleave(&m->nodes, order);
    planShareSlots(order, primaries);
    for (int i = 0; i < primaries; i++) {
        int first, last;
        if (slotSetRange(&order[i]->slots, 0, &first, &last))
            printf("Primary[%d] -> Slots %d - %d\n", i, first, last);
    }
    int made = planReplicas(order, count, primaries, replicas, choices);
    for (int i = 0; i < made; i++) {
        const clusterNode *replica = choices[i].replica, *primary = choices[i].primary;
        if (choices[i].is_extra && (i == 0 || !choices[i - 1].is_extra))
            printf("Adding extra replicas...\n");
        printf("Adding replica %s:%d to %s:%d\n", strText(&replica->host), replica->port,
               strText(&primary->host), primary->port);
    }
    if (planAffinity(choices, made) > 0) {
        managerPrint(m, LEVEL_INFO,
                     ">>> Trying to optimize replicas allocation for anti-affinity\n");
        printAffinity(m, planSpread(choices, made));
    }
    for (int i = 0; i < made; i++) {
        choices[i].replica->is_replica = true;
        memcpy(choices[i].replica->primary, choices[i].primary->id, NODE_ID_MAX + 1);
    }
    memFree(choices);
    memFree(order);
}

static bool assignSlots(const clusterManager *m, clusterNode *node) {
    int first, last, count = 0;
    const char *words[2 + 2] = {"CLUSTER", "ADDSLOTSRANGE"};
    char text[2][16];
    if (!slotSetRange(&node->slots, 0, &first, &last)) return true;
    snprintf(text[0], sizeof(text[0]), "%d", first);
    snprintf(text[1], sizeof(text[1]), "%d", last);
    words[2] = text[0];
    words[3] = text[1];
    valkeyReply *reply = managerCommandArgv(node, 4, words, NULL);
    /* Servers before 7.0 take single slots only. */
    bool old = replyIsError(reply, "ERR Unknown subcommand") ||
               replyIsError(reply, "ERR unknown subcommand");
    bool done = old || managerAccept(m, node, reply);
    freeReplyObject(reply);
    if (!old) return done;
    for (int slot = first; slot <= last; slot++, count++)
        managerQueue(node, "CLUSTER ADDSLOTS %d", slot);
    for (; count > 0; count--) {
        reply = managerNext(node);
        if (!managerAccept(m, node, reply)) done = false;
        freeReplyObject(reply);
        if (!done) break;
    }
    return done;
}

static bool configure(clusterManager *m) {
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (!node->is_replica && !assignSlots(m, node)) return false;
    }
    managerPrint(m, LEVEL_INFO, ">>> Nodes configuration updated\n");
    managerPrint(m, LEVEL_INFO, ">>> Assign a different config epoch to each node\n");
    for (int i = 0; i < m->nodes.count; i++) {
        /* A node that was part of a cluster before keeps its epoch; collisions are resolved by the
         * nodes. */
        freeReplyObject(managerCommand(m->nodes.list[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1));
    }
    managerPrint(m, LEVEL_INFO, ">>> Sending CLUSTER MEET messages to join the cluster\n");
    for (int i = 1; i < m->nodes.count; i++) {
        if (!managerMeet(m, m->nodes.list[i], m->nodes.list[0])) return false;
    }
    managerWaitJoin(m);
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (!node->is_replica) continue;
        if (!managerReplicate(m, node, clusterNodesFindId(&m->nodes, node->primary))) return false;
    }
    return true;
}

int clusterCreate(clusterManager *m, int argc, char **argv) {
    int replicas = m->options->replicas > 0 ? m->options->replicas : 0;
    if (!loadNodes(m, argc, argv)) return 1;
    int primaries = countPrimaries(m, replicas);
    if (primaries == 0) return 1;
    planRoles(m, primaries, replicas);
    str text = STR_EMPTY;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        clusterNodeDescribe(node, 0, !node->is_replica, &text);
    }
    fputs(strText(&text), stdout);
    strFree(&text);
    if (!managerConfirm(m, "Can I set the above configuration?")) return 0;
    if (!configure(m) || !managerWaitReady(m)) return 1;
    str host = STR_EMPTY;
    strAppendSlice(&host, strSlice(&m->nodes.list[0]->host));
    int port = m->nodes.list[0]->port, bus_port = m->nodes.list[0]->bus_port;
    managerClear(m);
    bool good = managerLoad(m, strText(&host), port, bus_port) && managerCheck(m, 0);
    strFree(&host);
    return good ? 0 : 1;
}

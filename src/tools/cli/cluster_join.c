/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes that join a cluster: checks, CLUSTER MEET, waiting, CLUSTER REPLICATE. */
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tools/cli/cluster_priv.h"

enum {
    POLL_US = 100 * 1000,
    DOT_MS = 1000,
    WARN_AFTER_MS = 20 * 1000,
    REPLICATE_WAIT_MS = 20 * 1000,
    READY_WAIT_MS = 60 * 1000,
};

bool managerLoadEmpty(const clusterManager *m, clusterNode *node) {
    clusterNodes others = {0};
    if (!managerLoadNode(m, node, &others)) {
        clusterNodesClear(&others);
        return false;
    }
    bool empty = others.count == 0;
    clusterNodesClear(&others);
    if (empty) {
        valkeyReply *reply = managerCommand(node, "DBSIZE");
        if (!managerAccept(m, node, reply)) {
            freeReplyObject(reply);
            return false;
        }
        empty = reply->integer == 0;
        freeReplyObject(reply);
    }
    if (!empty)
        managerPrint(m, LEVEL_ERROR,
                     "[ERR] Node %s:%d is not empty. Either the node already knows other nodes "
                     "(check with CLUSTER NODES) or contains some key in database 0.\n",
                     strText(&node->host), node->port);
    return empty;
}

/* The address that a node is connected to: CLUSTER MEET accepts no host names. */
static bool numericAddress(const clusterNode *node, char *out, size_t cap) {
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    return node->link && !getpeername(node->link->fd, (struct sockaddr *)&address, &len) &&
           !getnameinfo((struct sockaddr *)&address, len, out, (socklen_t)cap, NULL, 0,
                        NI_NUMERICHOST);
}

bool managerMeet(const clusterManager *m, clusterNode *node, const clusterNode *other) {
    char address[NI_MAXHOST];
    if (!numericAddress(other, address, sizeof(address))) {
        managerPrint(m, LEVEL_ERROR, "Invalid IP address or hostname specified: %s\n",
                     strText(&other->host));
        return false;
    }
    bool met = other->bus_port ? managerRun(m, node, "CLUSTER MEET %s %d %d", address, other->port,
                                            other->bus_port)
                               : managerRun(m, node, "CLUSTER MEET %s %d", address, other->port);
    if (!met) managerPrint(m, LEVEL_ERROR, "Failed to send CLUSTER MEET command.\n");
    return met;
}

/* Number of other nodes that `node` knows, without those in handshake, whose addresses are appended
 * to `waiting`. -1 after an error. */
static int countKnown(const clusterManager *m, clusterNode *node, str *waiting) {
    clusterNodes others = {0};
    clusterNode *self = clusterNodeNew("", 0, 0);
    valkeyReply *reply = managerCommand(node, "CLUSTER NODES");
    int known = -1;
    if (managerAccept(m, node, reply) &&
        clusterNodesParse(sliceMake(reply->str, reply->len), self, &others)) {
        known = 0;
        for (int i = 0; i < others.count; i++) {
            const clusterNode *other = others.list[i];
            if (other->has_address) {
                known++;
            } else {
                strAppendFormat(waiting, " - Node %s:%d may be unreachable from:\n   %s:%d\n",
                                strText(&other->host), other->port, strText(&node->host),
                                node->port);
            }
        }
    }
    freeReplyObject(reply);
    clusterNodesClear(&others);
    clusterNodeFree(self);
    return known;
}

static bool haveJoined(clusterManager *m, str *waiting) {
    bool joined = true;
    for (int i = 0; i < m->nodes.count; i++) {
        size_t before = waiting->len;
        int known = countKnown(m, m->nodes.list[i], waiting);
        if (known < m->nodes.count - 1 || waiting->len > before) joined = false;
    }
    return joined && managerAgrees(m);
}

void managerWaitJoin(clusterManager *m) {
    str waiting = STR_EMPTY;
    int64_t started_ms = clockMonoMs(), dots = 0;
    bool warned = false;
    printf("Waiting for the cluster to join\n");
    fflush(stdout);
    while (!haveJoined(m, &waiting)) {
        int64_t passed_ms = clockMonoMs() - started_ms;
        for (; dots < passed_ms / DOT_MS; dots++) putchar('.');
        if (passed_ms > WARN_AFTER_MS && waiting.len && !warned) {
            warned = true;
            managerPrint(m, LEVEL_WARNING,
                         "\nWarning: some nodes may be unreachable\n%s"
                         "Cluster bus ports must be reachable by every node.\n"
                         "Remember that cluster bus ports are different from standard instance "
                         "ports.\n",
                         strText(&waiting));
        }
        fflush(stdout);
        strClear(&waiting);
        clockSleepUs(POLL_US);
    }
    putchar('\n');
    fflush(stdout);
    strFree(&waiting);
}

/* True if the report of the node has one of the two words. */
static bool reports(clusterNode *node, const char *command, const char *word, const char *other) {
    valkeyReply *reply = managerCommand(node, command);
    bool told = reply && (reply->type == VALKEY_REPLY_STRING || reply->type == VALKEY_REPLY_VERB);
    bool found = told && (strstr(reply->str, word) || strstr(reply->str, other));
    freeReplyObject(reply);
    return found;
}

/* A node that does not tell, or was lost, is not waited for. */
static bool isReady(clusterNode *node) {
    if (!node->link) return true;
    if (reports(node, "CLUSTER INFO", "cluster_state:fail", "cluster_slots_assigned:0"))
        return false;
    return !node->is_replica ||
           !reports(node, "INFO replication", "role:master", "master_link_status:down");
}

bool managerWaitReady(clusterManager *m) {
    int64_t started_ms = clockMonoMs(), dots = 0;
    int ready = 0;
    printf("Waiting for the nodes to serve requests and the replicas to synchronize\n");
    while (ready < m->nodes.count) {
        if (isReady(m->nodes.list[ready])) {
            ready++;
            continue;
        }
        int64_t passed_ms = clockMonoMs() - started_ms;
        if (passed_ms > READY_WAIT_MS) break;
        for (; dots < passed_ms / DOT_MS; dots++) putchar('.');
        fflush(stdout);
        clockSleepUs(POLL_US);
    }
    putchar('\n');
    fflush(stdout);
    if (ready == m->nodes.count) return true;
    const clusterNode *node = m->nodes.list[ready];
    managerPrint(m, LEVEL_WARNING, "[WARNING] %s:%d is not ready yet: see its log\n",
                 strText(&node->host), node->port);
    return false;
}

bool managerReplicate(const clusterManager *m, clusterNode *node, const clusterNode *primary) {
    int64_t end_ms = clockMonoMs() + REPLICATE_WAIT_MS;
    for (;;) {
        valkeyReply *reply = managerCommand(node, "CLUSTER REPLICATE %s", primary->id);
        /* The node gets to know the primary from the one that it met. */
        if (replyIsError(reply, "ERR Unknown node") && clockMonoMs() < end_ms) {
            freeReplyObject(reply);
            clockSleepUs(POLL_US);
            continue;
        }
        bool accepted = managerAccept(m, node, reply);
        freeReplyObject(reply);
        return accepted;
    }
}

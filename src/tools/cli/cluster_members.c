/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster add-node`, `del-node`, `call` and `set-timeout`. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ add-node */

/* Copies the functions of the cluster to the new node, which must have none. */
static bool copyFunctions(clusterManager *m, clusterNode *node) {
    clusterNode *from = m->nodes.list[0];
    bool done = false;
    managerPrint(m, LEVEL_INFO, ">>> Getting functions from cluster\n");
    valkeyReply *dump = managerCommand(from, "FUNCTION DUMP"), *list = NULL;
    if (!dump || dump->type == VALKEY_REPLY_ERROR) {
        managerPrint(m, LEVEL_INFO,
                     ">>> Failed retrieving Functions from the cluster, skip this step as Valkey "
                     "version do not support function command (error = '%s')\n",
                     dump ? dump->str : "NULL reply");
        freeReplyObject(dump);
        return true;
    }
    managerPrint(m, LEVEL_INFO,
                 ">>> Send FUNCTION LIST to %s:%d to verify there is no functions in it\n",
                 strText(&node->host), node->port);
    list = managerCommand(node, "FUNCTION LIST");
    if (!list || list->type == VALKEY_REPLY_ERROR) {
        managerPrint(m, LEVEL_ERROR, ">>> Failed on CLUSTER LIST (error = '%s')\n",
                     list ? list->str : "NULL reply");
    } else if (list->elements) {
        managerPrint(m, LEVEL_ERROR,
                     ">>> New node already contains functions and can not be added to the cluster. "
                     "Use FUNCTION FLUSH and try again.\n");
    } else {
        managerPrint(m, LEVEL_INFO, ">>> Send FUNCTION RESTORE to %s:%d\n", strText(&node->host),
                     node->port);
        valkeyReply *restored = managerCommand(node, "FUNCTION RESTORE %b", dump->str, dump->len);
        done = restored && restored->type != VALKEY_REPLY_ERROR;
        if (!done)
            managerPrint(m, LEVEL_ERROR,
                         ">>> Failed loading functions to the new node (error = '%s')\n",
                         restored ? restored->str : "NULL reply");
        freeReplyObject(restored);
    }
    freeReplyObject(list);
    freeReplyObject(dump);
    return done;
}

/* The primary for a new replica; NULL after an error, which is printed. */
static clusterNode *choosePrimary(clusterManager *m) {
    const char *id = m->options->primary_id;
    if (id) {
        clusterNode *primary = clusterNodesFindId(&m->nodes, id);
        if (!primary) managerPrint(m, LEVEL_ERROR, "[ERR] No such primary ID %s\n", id);
        return primary;
    }
    clusterNode *primary = managerPrimaryForReplica(m);
    if (primary) {
        printf("Automatically selected primary %s:%d\n", strText(&primary->host), primary->port);
    } else {
        managerPrint(m, LEVEL_ERROR, "[ERR] Could not find a reachable primary node.\n");
    }
    return primary;
}

static bool addNode(clusterManager *m, clusterNode *node) {
    clusterNode *primary = NULL;
    if (m->options->replica && !(primary = choosePrimary(m))) return false;
    if (!managerConnect(m, node)) {
        managerPrint(m, LEVEL_ERROR, "[ERR] Sorry, can't connect to node %s:%d\n",
                     strText(&node->host), node->port);
        return false;
    }
    if (!managerLoadEmpty(m, node)) return false;
    /* A replica gets the functions from its primary. */
    if (!primary && !copyFunctions(m, node)) return false;
    managerPrint(m, LEVEL_INFO,
                 ">>> Send CLUSTER MEET to node %s:%d to make it join the cluster.\n",
                 strText(&node->host), node->port);
    clusterNode *first = m->nodes.list[0];
    if (!managerMeet(m, node, first)) return false;
    if (primary) {
        managerWaitJoin(m);
        managerPrint(m, LEVEL_INFO, ">>> Configure node as replica of %s:%d.\n",
                     strText(&primary->host), primary->port);
        if (!managerReplicate(m, node, primary)) return false;
    }
    managerPrint(m, LEVEL_OK, "[OK] New node added correctly.\n");
    return true;
}

int clusterAddNode(clusterManager *m, int argc, char **argv) {
    str host = STR_EMPTY, known = STR_EMPTY;
    int port, bus_port, known_port, known_bus;
    (void)argc;
    bool added = false;
    if (managerParseAddress(1, argv, &host, &port, &bus_port) &&
        managerParseAddress(1, argv + 1, &known, &known_port, &known_bus)) {
        clusterNode *node = clusterNodeNew(strText(&host), port, bus_port);
        managerPrint(m, LEVEL_INFO, ">>> Adding node %s:%d to cluster %s:%d\n", strText(&host),
                     port, strText(&known), known_port);
        added = managerLoad(m, strText(&known), known_port, known_bus) && managerCheck(m, 0) &&
                addNode(m, node);
        clusterNodeFree(node);
    }
    strFree(&host);
    strFree(&known);
    return added ? 0 : 1;
}

/* ------------------------------------------------------------------ del-node */

/* Lets a replica of the removed node follow another primary. */
static bool reassign(clusterManager *m, clusterNode *replica, const clusterNode *removed) {
    clusterNode *best = NULL;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica || node == removed) continue;
        if (!best || node->replica_count < best->replica_count) best = node;
    }
    if (!best) {
        managerPrint(m, LEVEL_ERROR,
                     "[ERR] Could not find a reachable primary node to reassign replica %s:%d.\n",
                     strText(&replica->host), replica->port);
        return false;
    }
    managerPrint(m, LEVEL_INFO, ">>> %s:%d as replica of %s:%d\n", strText(&replica->host),
                 replica->port, strText(&best->host), best->port);
    best->replica_count++;
    return managerRun(m, replica, "CLUSTER REPLICATE %s", best->id);
}

static bool forgetNode(clusterManager *m, clusterNode *removed) {
    managerPrint(m, LEVEL_INFO, ">>> Sending CLUSTER FORGET messages to the cluster...\n");
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node == removed) continue;
        if (node->is_replica && !strcasecmp(node->primary, removed->id) &&
            !reassign(m, node, removed))
            return false;
        if (!managerRun(m, node, "CLUSTER FORGET %s", removed->id)) return false;
    }
    for (int i = 0; i < m->lost.count; i++) {
        const clusterNode *node = m->lost.list[i];
        if (node == removed) continue;
        managerPrint(m, LEVEL_WARNING,
                     ">>> Skipping unreachable node %s:%d. It may need manual reconfiguration when "
                     "it comes back online.\n",
                     strText(&node->host), node->port);
    }
    return true;
}

static bool removeNode(clusterManager *m, const char *id) {
    clusterNode *node = clusterNodesFindId(&m->nodes, id);
    bool reachable = node;
    if (!node) node = clusterNodesFindId(&m->lost, id);
    if (!node) {
        managerPrint(m, LEVEL_ERROR, "[ERR] No such node ID %s\n", id);
        return false;
    }
    if (node->slots.count) {
        managerPrint(m, LEVEL_ERROR,
                     "[ERR] Node %s:%d is not empty! Reshard data away and try again.\n",
                     strText(&node->host), node->port);
        return false;
    }
    if (!forgetNode(m, node)) return false;
    if (!reachable) {
        managerPrint(
            m, LEVEL_WARNING,
            ">>> WARNING: Could not connect to node %s:%d, unable to send CLUSTER RESET.\n",
            strText(&node->host), node->port);
    } else {
        managerPrint(m, LEVEL_INFO, ">>> Sending CLUSTER RESET SOFT to the deleted node.\n");
        if (!managerRun(m, node, "CLUSTER RESET SOFT")) return false;
    }
    managerPrint(m, LEVEL_OK, "[OK] Node %s removed from the cluster.\n", id);
    return true;
}

int clusterDelNode(clusterManager *m, int argc, char **argv) {
    str host = STR_EMPTY;
    int port, bus_port;
    (void)argc;
    bool removed = false;
    m->keeps_lost = true;
    if (managerParseAddress(1, argv, &host, &port, &bus_port)) {
        managerPrint(m, LEVEL_INFO, ">>> Removing node %s from cluster %s:%d\n", argv[1],
                     strText(&host), port);
        removed = managerLoad(m, strText(&host), port, bus_port) && removeNode(m, argv[1]);
    }
    strFree(&host);
    return removed ? 0 : 1;
}

/* ------------------------------------------------------------------ call */

/* Appends a reply as the program prints it with --raw. */
static void appendRaw(const valkeyReply *reply, str *out) {
    switch (reply->type) {
    case VALKEY_REPLY_NIL: return;
    case VALKEY_REPLY_INTEGER: strAppendInt(out, reply->integer); return;
    case VALKEY_REPLY_BOOL: strAppendText(out, reply->integer ? "(true)" : "(false)"); return;
    case VALKEY_REPLY_ERROR:
        strAppend(out, reply->str, reply->len);
        strAppendByte(out, '\n');
        return;
    default: break;
    }
    if (!reply->element) {
        strAppend(out, reply->str, reply->len);
        return;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (i) strAppendByte(out, '\n');
        appendRaw(reply->element[i], out);
    }
}

int clusterCall(clusterManager *m, int argc, char **argv) {
    const clusterOptions *o = m->options;
    if (!managerLoadFrom(m, 1, argv)) return 1;
    const char **words = memNewArray(const char *, argc);
    size_t *lens = memNewArray(size_t, argc);
    str text = STR_EMPTY;
    managerPrint(m, LEVEL_INFO, ">>> Calling");
    for (int i = 1; i < argc; i++) {
        words[i - 1] = argv[i];
        lens[i - 1] = strlen(argv[i]);
        printf(" %s", argv[i]);
    }
    putchar('\n');
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (o->only_primaries && node->is_replica) continue;
        if (o->only_replicas && !node->is_replica) continue;
        valkeyReply *reply = managerCommandArgv(node, argc - 1, words, lens);
        strClear(&text);
        if (reply) {
            appendRaw(reply, &text);
        } else {
            strAppendText(&text, "Failed!");
        }
        printf("%s:%d: ", strText(&node->host), node->port);
        fwrite(strText(&text), 1, text.len, stdout);
        putchar('\n');
        freeReplyObject(reply);
    }
    strFree(&text);
    memFree(words);
    memFree(lens);
    return 0;
}

/* ------------------------------------------------------------------ set-timeout */

int clusterSetTimeout(clusterManager *m, int argc, char **argv) {
    enum { MIN_TIMEOUT_MS = 100 };
    int timeout_ms = atoi(argv[1]), done = 0, failed = 0, port, bus_port;
    str host = STR_EMPTY;
    (void)argc;
    bool valid = managerParseAddress(1, argv, &host, &port, &bus_port);
    if (valid && timeout_ms < MIN_TIMEOUT_MS) {
        fprintf(stderr, "Setting a node timeout of less than %d milliseconds is a bad idea.\n",
                MIN_TIMEOUT_MS);
        valid = false;
    }
    bool loaded = valid && managerLoad(m, strText(&host), port, bus_port);
    strFree(&host);
    if (!loaded) return 1;
    managerPrint(m, LEVEL_INFO, ">>> Reconfiguring node timeout in every cluster node...\n");
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        valkeyReply *reply = managerCommand(node, "CONFIG SET cluster-node-timeout %d", timeout_ms);
        if (reply && reply->type != VALKEY_REPLY_ERROR) {
            freeReplyObject(reply);
            reply = managerCommand(node, "CONFIG REWRITE");
        }
        if (reply && reply->type != VALKEY_REPLY_ERROR) {
            managerPrint(m, LEVEL_WARNING, "*** New timeout set for %s:%d\n", strText(&node->host),
                         node->port);
            done++;
        } else {
            managerPrint(m, LEVEL_ERROR, "ERR setting node-timeout for %s:%d: %s\n",
                         strText(&node->host), node->port, reply ? reply->str : "NULL reply");
            failed++;
        }
        freeReplyObject(reply);
    }
    managerPrint(m, LEVEL_INFO, ">>> New node timeout set. %d OK, %d ERR.\n", done, failed);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster backup`: an RDB file of each primary, and nodes.json with the configuration. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_info.h"
#include "io/file.h"
#include "tools/cli/cluster_priv.h"
#include "tools/cli/full_sync.h"

/* Saves the data of a primary. The connection is of no use afterwards. */
static bool saveNode(clusterManager *m, clusterNode *node, const char *folder) {
    str path = STR_EMPTY;
    managerPrint(m, LEVEL_INFO, ">>> Node %s:%d -> Saving RDB...\n", strText(&node->host),
                 node->port);
    strAppendFormat(&path, "%svalkey-node-%s-%d-%s.rdb", folder, strText(&node->host), node->port,
                    node->id);
    /* Older servers refuse the version, and go on; told none, newer ones write a snapshot for old
     * replicas. */
    freeReplyObject(managerCommand(node, "REPLCONF " FULL_SYNC_CAPABILITIES));
    freeReplyObject(managerCommand(node, "REPLCONF version %s", SERVER_VERSION));
    /* The server closes the connection after the snapshot; servers before 7 refuse the option and
     * go on. */
    freeReplyObject(managerCommand(node, "REPLCONF rdb-only 1"));
    bool saved = node->link && fullSyncSave(node->link, strText(&path), m->env->progress);
    valkeyFree(node->link);
    node->link = NULL;
    strFree(&path);
    return saved;
}

/* ------------------------------------------------------------------ nodes.json */

static void appendOpen(str *out, const char *name, const openSlots *slots) {
    if (!slots->count) return;
    strAppendFormat(out, ",\n    \"%s\": {", name);
    for (int i = 0; i < slots->count; i++)
        strAppendFormat(out, "%s\"%d\": \"%s\"", i ? "," : "", slots->list[i].slot,
                        slots->list[i].peer);
    strAppendByte(out, '}');
}

static void appendNode(const clusterManager *m, const clusterNode *node, str *out) {
    int first, last;
    strAppendFormat(out, "  {\n    \"name\": \"%s\",\n    \"host\": ", node->id);
    strAppendQuoted(out, strSlice(&node->host));
    strAppendFormat(out, ",\n    \"port\": %d,\n    \"replicate\": ", node->port);
    strAppendFormat(out, node->is_replica ? "\"%s\"" : "null", node->primary);
    strAppendText(out, ",\n    \"slots\": [");
    for (int from = 0; slotSetRange(&node->slots, from, &first, &last); from = last + 1)
        strAppendFormat(out, "%s[%d,%d]", from ? "," : "", first, last);
    strAppendFormat(out, "],\n    \"slots_count\": %d,\n    \"flags\": \"%s\",\n",
                    node->slots.count, strText(&node->flags));
    strAppendFormat(out, "    \"current_epoch\": %llu", (unsigned long long)node->epoch);
    if (m->errors) strAppendFormat(out, ",\n    \"cluster_errors\": %d", m->errors);
    appendOpen(out, "migrating", &node->migrating);
    appendOpen(out, "importing", &node->importing);
    strAppendText(out, "\n  }");
}

static bool saveConfiguration(const clusterManager *m, const char *folder) {
    str path = STR_EMPTY, text = STR_EMPTY;
    reason why;
    strAppendFormat(&path, "%snodes.json", folder);
    strAppendText(&text, "[\n");
    for (int i = 0; i < m->nodes.count; i++) {
        if (i) strAppendText(&text, ",\n");
        appendNode(m, m->nodes.list[i], &text);
    }
    strAppendText(&text, "\n]");
    managerPrint(m, LEVEL_INFO, "Saving cluster configuration to: %s\n", strText(&path));
    bool saved = fileReplace(strText(&path), strSlice(&text), 0644, &why) == OK;
    if (!saved) {
        fprintf(stderr, "%s\n", why.text);
        managerPrint(m, LEVEL_ERROR, "Could not save nodes to: %s\n", strText(&path));
    }
    strFree(&path);
    strFree(&text);
    return saved;
}

/* ------------------------------------------------------------------ backup */

int clusterBackup(clusterManager *m, int argc, char **argv) {
    const char *target = argv[1];
    struct stat info;
    (void)argc;
    if (!managerLoadFrom(m, 1, argv)) return 1;
    bool good = managerCheck(m, 0);
    if (stat(target, &info) != 0 || !S_ISDIR(info.st_mode)) {
        managerPrint(m, LEVEL_ERROR, "[ERR] %s is not a valid directory\n", target);
        return 1;
    }
    str folder = STR_EMPTY;
    strAppendText(&folder, target);
    if (folder.len == 0 || folder.ptr[folder.len - 1] != '/') strAppendByte(&folder, '/');
    bool saved = true;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (!node->is_replica && !saveNode(m, node, strText(&folder))) saved = false;
    }
    if (!saveConfiguration(m, strText(&folder))) saved = false;
    strFree(&folder);
    if (saved && !good)
        managerPrint(m, LEVEL_WARNING,
                     "*** Cluster seems to have some problems, please be aware of it if you're "
                     "going to restore this backup.\n");
    if (saved)
        managerPrint(m, LEVEL_OK, "[OK] Backup created into: %s\n", target);
    else
        managerPrint(m, LEVEL_ERROR, "[ERR] Failed to back cluster!\n");
    return saved ? 0 : 1;
}

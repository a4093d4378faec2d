/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster check`, and the search for problems that other subcommands begin with. */
#include "base/alloc.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ open slots */

/* Prints the open slots of a node and adds them to `open`. */
static void reportOpen(clusterManager *m, const clusterNode *node, const openSlots *slots,
                       const char *state, slotSet *open) {
    if (!slots->count) return;
    str text = STR_EMPTY;
    for (int i = 0; i < slots->count; i++) {
        strAppendFormat(&text, i ? ",%d" : "%d", slots->list[i].slot);
        slotSetAdd(open, slots->list[i].slot);
    }
    managerPrint(m, LEVEL_ERROR, "[WARNING] Node %s:%d has slots in %s state %s.\n",
                 strText(&node->host), node->port, state, strText(&text));
    m->errors++;
    strFree(&text);
}

/* Prints all open slots. */
static void printOpen(const clusterManager *m, const slotSet *open) {
    str text = STR_EMPTY;
    for (int slot = slotSetNext(open, 0); slot >= 0;
         slot = slot + 1 < SLOT_COUNT ? slotSetNext(open, slot + 1) : -1)
        strAppendFormat(&text, text.len ? ",%d" : "%d", slot);
    managerPrint(m, LEVEL_ERROR, "[WARNING] The following slots are open: %s.\n", strText(&text));
    strFree(&text);
}

static bool refuseFix(const clusterManager *m, const char *what) {
    if (!m->lost_primaries || m->options->fix_unreachable) return false;
    managerPrint(m, LEVEL_WARNING,
                 "*** Fixing %s with %d unreachable primaries is dangerous: valkey-cli will assume "
                 "that slots about primaries that are not reachable are not covered, and will try "
                 "to reassign them to the reachable nodes. This can cause data loss and is rarely "
                 "what you want to do. If you really want to proceed use the "
                 "--cluster-fix-with-unreachable-primaries option.\n",
                 what, m->lost_primaries);
    return true;
}

static bool checkOpen(clusterManager *m, bool fix) {
    slotSet open = {0};
    managerPrint(m, LEVEL_INFO, ">>> Check for open slots...\n");
    for (int i = 0; i < m->nodes.count; i++) {
        const clusterNode *node = m->nodes.list[i];
        reportOpen(m, node, &node->migrating, "migrating", &open);
        reportOpen(m, node, &node->importing, "importing", &open);
    }
    if (!open.count) return true;
    printOpen(m, &open);
    if (!fix || refuseFix(m, "open slots")) return false;
    bool fixed = true;
    for (int slot = slotSetNext(&open, 0); slot >= 0;
         slot = slot + 1 < SLOT_COUNT ? slotSetNext(&open, slot + 1) : -1) {
        if (!managerFixOpenSlot(m, slot)) fixed = false;
    }
    return fixed;
}

/* ------------------------------------------------------------------ coverage */

static bool checkCoverage(clusterManager *m, bool fix) {
    slotSet covered = {0};
    managerPrint(m, LEVEL_INFO, ">>> Check slots coverage...\n");
    for (int i = 0; i < m->nodes.count; i++) slotSetAddAll(&covered, &m->nodes.list[i]->slots);
    if (covered.count == SLOT_COUNT) {
        managerPrint(m, LEVEL_OK, "[OK] All %d slots covered.\n", SLOT_COUNT);
        return true;
    }
    managerPrint(m, LEVEL_ERROR, "[ERR] Not all %d slots are covered by nodes.\n\n", SLOT_COUNT);
    m->errors++;
    if (!fix || refuseFix(m, "slots coverage")) return false;
    slotSet uncovered = {0};
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slotSetHas(&covered, slot)) slotSetAdd(&uncovered, slot);
    }
    return managerFixCoverage(m, &uncovered);
}

/* ------------------------------------------------------------------ multiple owners */

/* For each primary the number of keys in each slot: rows of SLOT_COUNT. The caller frees it. NULL
 * after an error. */
static int64_t *countAllKeys(clusterManager *m) {
    enum { BATCH = 1024 };
    int64_t *keys = memNewArray(int64_t, (size_t)m->nodes.count * SLOT_COUNT);
    bool valid = true;
    for (int i = 0; i < m->nodes.count && valid; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        for (int slot = 0; slot < SLOT_COUNT && valid; slot += BATCH) {
            for (int j = 0; j < BATCH; j++)
                managerQueue(node, "CLUSTER COUNTKEYSINSLOT %d", slot + j);
            for (int j = 0; j < BATCH && valid; j++) {
                valkeyReply *reply = managerNext(node);
                valid = managerAccept(m, node, reply) && reply->type == VALKEY_REPLY_INTEGER;
                if (valid) keys[(size_t)i * SLOT_COUNT + (size_t)(slot + j)] = reply->integer;
                freeReplyObject(reply);
            }
        }
    }
    if (valid) return keys;
    memFree(keys);
    return NULL;
}

static bool checkOwners(clusterManager *m, bool fix) {
    managerPrint(m, LEVEL_INFO, ">>> Check for multiple slot owners...\n");
    int64_t *keys = countAllKeys(m);
    if (!keys) return false;
    slotHolder *owners = memNewArray(slotHolder, m->nodes.count);
    bool good = true, found = false;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        int count = 0;
        for (int i = 0; i < m->nodes.count; i++) {
            clusterNode *node = m->nodes.list[i];
            int64_t here = keys[(size_t)i * SLOT_COUNT + (size_t)slot];
            if (node->is_replica || (!slotSetHas(&node->slots, slot) && !here)) continue;
            owners[count++] = (slotHolder){node, here};
        }
        if (count < 2) continue;
        found = true;
        managerPrint(m, LEVEL_ERROR, "[WARNING] Slot %d has %d owners:\n", slot, count);
        for (int i = 0; i < count; i++)
            managerPrint(m, LEVEL_ERROR, "    %s:%d\n", strText(&owners[i].node->host),
                         owners[i].node->port);
        m->errors++;
        if (!fix) {
            good = false;
        } else if (!managerFixOwners(m, slot, owners, count)) {
            managerPrint(m, LEVEL_ERROR, "Failed to fix multiple owners for slot %d\n", slot);
            good = false;
        }
    }
    if (!found) managerPrint(m, LEVEL_OK, "[OK] No multiple owners found.\n");
    memFree(owners);
    memFree(keys);
    return good;
}

/* ------------------------------------------------------------------ all of it */

bool managerCheck(clusterManager *m, int flags) {
    const clusterNode *first = m->nodes.list[0];
    bool fix = flags & CHECK_FIX;
    m->errors = 0;
    managerPrint(m, LEVEL_INFO, ">>> Performing Cluster Check (using node %s:%d)\n",
                 strText(&first->host), first->port);
    if (!(flags & CHECK_QUIET)) managerShowNodes(m);
    bool good = managerAgrees(m);
    if (good) {
        managerPrint(m, LEVEL_OK, "[OK] All nodes agree about slots configuration.\n");
    } else {
        managerPrint(m, LEVEL_ERROR, "[ERR] Nodes don't agree about configuration!\n");
        m->errors++;
    }
    if (!checkOpen(m, fix)) good = false;
    if (!checkCoverage(m, fix)) good = false;
    if (m->options->search_owners && !checkOwners(m, fix)) good = false;
    return good;
}

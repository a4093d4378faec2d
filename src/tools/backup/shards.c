/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shards of a cluster (shards.h). Invariant: which slots a primary has, and which are moving,
 * is asked of the primary itself, as other nodes may not know it. */
#include "tools/backup/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tools/cli/cluster_nodes.h"
#include "tools/cli/info.h"
#include "tools/cli/reply_map.h"

static void noteMoving(backupShards *out, const clusterNode *node) {
    if (out->moving.len || !(node->migrating.count + node->importing.count)) return;
    const openSlots *open = node->migrating.count ? &node->migrating : &node->importing;
    strAppendFormat(&out->moving, "slot %d of %s:%d is being moved", open->list[0].slot,
                    strText(&node->host), node->port);
}

/* Atomic moves of Valkey 9 and later are listed apart; other servers refuse the command. */
static void noteMigrations(backupShards *out, backupSource *source) {
    valkeyReply *reply;
    reason ignored;
    if (sourceCommand(source, &reply, &ignored, "CLUSTER GETSLOTMIGRATIONS") != OK) return;
    for (size_t i = 0; i < reply->elements && !out->moving.len; i++) {
        const char *state = replyMapText(reply->element[i], "state");
        if (!*state || !strcmp(state, "success") || !strcmp(state, "failed") ||
            !strcmp(state, "cancelled") || !strcmp(state, "canceled"))
            continue;
        strAppendFormat(&out->moving, "slots %s are being moved (%s)",
                        replyMapText(reply->element[i], "slot_ranges"), state);
    }
    freeReplyObject(reply);
}

static void nameShard(backupSource *source, const clusterNode *node, str *out) {
    valkeyReply *reply;
    reason ignored;
    /* Not known to servers before 7.2: the id of the primary is the next best name. */
    bool known = sourceCommand(source, &reply, &ignored, "CLUSTER MYSHARDID") == OK;
    strAppendFormat(out, "shard-%s", known && reply->str ? reply->str : node->id);
    if (known) freeReplyObject(reply);
}

static status addShard(const cliOptions *options, const clusterNode *listed, backupShards *out,
                       reason *why) {
    backupSource source;
    valkeyReply *reply;
    clusterNodes others = {0};
    clusterNode *node = clusterNodeNew(strText(&listed->host), listed->port, listed->bus_port);
    sourceInit(&source, options, strText(&listed->host), listed->port);
    status st = sourceConnect(&source, true, why);
    if (st == OK) st = sourceCommand(&source, &reply, why, "CLUSTER NODES");
    if (st == OK) {
        if (!reply->str || !clusterNodesParse(sliceMake(reply->str, reply->len), node, &others))
            st = reasonSet(why, ERR_SYNTAX, "%s:%d: invalid CLUSTER NODES", strText(&node->host),
                           node->port);
        freeReplyObject(reply);
    }
    if (st == OK && node->slots.count) {
        backupShard shard = {.host = strNew(strSlice(&node->host)), .port = node->port};
        nameShard(&source, node, &shard.name);
        slotSetPrintPlain(&node->slots, &shard.slots);
        noteMoving(out, node);
        noteMigrations(out, &source);
        out->list = memRealloc(out->list, sizeof(*out->list) * (size_t)(out->count + 1));
        out->list[out->count++] = shard;
    }
    clusterNodesClear(&others);
    clusterNodeFree(node);
    sourceClear(&source);
    return st;
}

static int compareShards(const void *a, const void *b) {
    return sliceCompare(strSlice(&((const backupShard *)a)->name),
                        strSlice(&((const backupShard *)b)->name));
}

static status addAll(const cliOptions *options, const char *host, slice nodes, backupShards *out,
                     reason *why) {
    clusterNode *first = clusterNodeNew(host, options->port, 0);
    clusterNodes others = {0};
    status st = clusterNodesParse(nodes, first, &others)
                    ? OK
                    : reasonSet(why, ERR_SYNTAX, "%s: invalid CLUSTER NODES", host);
    if (st == OK && !first->is_replica) st = addShard(options, first, out, why);
    for (int i = 0; st == OK && i < others.count; i++) {
        if (others.list[i]->is_replica || !others.list[i]->slots.count) continue;
        st = addShard(options, others.list[i], out, why);
    }
    clusterNodesClear(&others);
    clusterNodeFree(first);
    if (out->count) qsort(out->list, (size_t)out->count, sizeof(*out->list), compareShards);
    for (int i = 0; i < out->count; i++)
        strAppendFormat(&out->owners, "%s: %s\n", strText(&out->list[i].name),
                        strText(&out->list[i].slots));
    return st;
}

status shardsLoad(const cliOptions *options, bool *is_cluster, backupShards *out, reason *why) {
    *out = (backupShards){0};
    backupSource source;
    valkeyReply *reply;
    sourceInit(&source, options, options->host, options->port);
    status st = sourceConnect(&source, true, why);
    if (st == OK) st = sourceCommand(&source, &reply, why, "INFO cluster");
    if (st == OK) {
        *is_cluster = reply->str && infoNumber(reply->str, "cluster_enabled") == 1;
        freeReplyObject(reply);
    }
    if (st == OK && *is_cluster) {
        st = sourceCommand(&source, &reply, why, "CLUSTER NODES");
        if (st == OK) {
            st = addAll(options, options->host,
                        reply->str ? sliceMake(reply->str, reply->len) : SLICE(""), out, why);
            freeReplyObject(reply);
        }
    }
    sourceClear(&source);
    return st;
}

void shardsClear(backupShards *shards) {
    for (int i = 0; i < shards->count; i++) {
        strFree(&shards->list[i].name);
        strFree(&shards->list[i].slots);
        strFree(&shards->list[i].host);
    }
    memFree(shards->list);
    strFree(&shards->moving);
    strFree(&shards->owners);
    *shards = (backupShards){0};
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER MIGRATESLOTS, CANCELSLOTMIGRATIONS and GETSLOTMIGRATIONS, which clients send, and CLUSTER
 * SYNCSLOTS, which the two nodes of a migration send each other. Main thread only. */
#include "base/base.h"
#include "bus/slot_source.h"
#include "bus/slot_target.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_map.h"
#include "cluster/slot_export.h"
#include "cluster/slot_import.h"
#include "cluster/slot_migration.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "net/net.h"
#include "store/store.h"

/* ------------------------------------------------------------------ common */

/* False: the error was replied. */
static bool isPossible(ctx *c) {
    const char *error = NULL;
    if (serverMap.myself->flags & NODE_REPLICA) {
        error = "ERR Slot migration can only be used on primary nodes.";
    } else if (serverMap.open_count[SLOT_IMPORTING]) {
        error = "ERR Slots are being manually imported";
    } else if (serverMap.open_count[SLOT_MIGRATING]) {
        error = "ERR Slots are being manually migrated";
    }
    const char *module = error ? NULL : engineModuleWithout(MODULES_HANDLE_SLOT_MIGRATION);
    if (error) {
        replyError(c, sliceOf(error));
    } else if (module) {
        replyErrorFormat(
            c,
            "ERR The module %s does not support atomic slot migrations. Please ensure "
            "all modules have declared support for atomic slot migration and try again",
            module);
    }
    return !error && !module;
}

/* Replies the error of slotRangesParse(). */
static bool parseRanges(ctx *c, int at, slotRanges *out, int *used, clusterNode **owner) {
    reason why;
    status st = slotRangesParse(out, &serverMap, c->argc - at, c->argv + at, used, owner, &why);
    if (st != OK) replyErrorFormat(c, "ERR %s", why.text);
    return st == OK;
}

static slice describeUser(const ctx *c, str *out) {
    if (!netDescribeOrderer(c->who, out)) strAppendText(out, "a script");
    return strSlice(out);
}

/* ------------------------------------------------------------------ MIGRATESLOTS */

typedef struct wantedMove {
    slotRanges ranges;
    clusterNode *target;
} wantedMove;

/* True if the slots are served by this node, and not on their way yet. */
static bool mayMove(ctx *c, const wantedMove *moves, size_t count, const clusterNode *owner) {
    const wantedMove *m = &moves[count - 1];
    if (owner != serverMap.myself) {
        replyError(c, SLICE("ERR Slots are not served by this node."));
        return false;
    }
    const slotJob *job = slotLogOverlapping(&slotMigrations.log, &m->ranges);
    for (int slot = 0; job && slot < SLOT_COUNT; slot++) {
        if (!slotRangesHave(&m->ranges, slot) || !slotRangesHave(&job->ranges, slot)) continue;
        replyErrorFormat(c, "ERR I am already migrating slot %d.", slot);
        return false;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        if (!slotRangesOverlap(&moves[i].ranges, &m->ranges)) continue;
        replyError(c, SLICE("ERR Slot ranges in migrations overlap"));
        return false;
    }
    return true;
}

/* The words NODE id. NULL: the error was replied. */
static clusterNode *parseTarget(ctx *c, int at) {
    if (at + 1 >= c->argc || !slotWordIs(c->argv[at], "node")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return NULL;
    }
    slice id = c->argv[at + 1];
    clusterNode *n = clusterMapFind(&serverMap, id);
    if (id.len != NODE_ID_LEN) {
        replyErrorFormat(c, "ERR Invalid node name: %.*s", (int)id.len, id.ptr);
    } else if (!n) {
        replyErrorFormat(c, "ERR Unknown node name: %.*s", (int)id.len, id.ptr);
    } else if (n == serverMap.myself) {
        replyError(c, SLICE("ERR Target node can not be this node."));
    } else if (n->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR Target node is not a master"));
    } else {
        return n;
    }
    return NULL;
}

/* One block of words from *at on. False: the error was replied. */
static bool parseMove(ctx *c, int *at, wantedMove *moves, size_t count) {
    hotCheck(count > 0);
    hotCheck(*at < c->argc);
    clusterNode *owner;
    int used = 0;
    wantedMove *m = &moves[count - 1];
    if (!slotWordIs(c->argv[*at], "slotsrange")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (!parseRanges(c, *at + 1, &m->ranges, &used, &owner)) return false;
    if (!mayMove(c, moves, count, owner)) return false;
    *at += 1 + used;
    m->target = parseTarget(c, *at);
    *at += 2;
    return m->target != NULL;
}

/* CLUSTER MIGRATESLOTS SLOTSRANGE first last [first last ...] NODE id [SLOTSRANGE ...]. Reply: OK;
 * the jobs have begun. */
void clusterMigrateslotsCommand(ctx *c) {
    if (!clusterIsNode(c) || !isPossible(c)) return;
    wantedMove *moves = memNewArray(wantedMove, (size_t)c->argc);
    size_t count = 0;
    bool good = true;
    for (int at = 2; good && at < c->argc;) good = parseMove(c, &at, moves, ++count);
    str who = STR_EMPTY;
    (void)describeUser(c, &who);
    for (size_t i = 0; good && i < count; i++)
        slotExportBegin(&moves[i].ranges, moves[i].target, strSlice(&who));
    if (good) replyOk(c);
    for (size_t i = 0; i < count; i++) slotRangesClear(&moves[i].ranges);
    strFree(&who);
    memFree(moves);
}

/* CLUSTER CANCELSLOTMIGRATIONS. Reply: OK. */
void clusterCancelslotmigrationsCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    str who = STR_EMPTY;
    if (slotExportCancelAll(describeUser(c, &who))) {
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR No migrations ongoing"));
    }
    strFree(&who);
}

/* ------------------------------------------------------------------ GETSLOTMIGRATIONS */

/* Fields of this server alone, after those of Valkey. */
enum { PROGRESS_FIELDS = 5 };

static void replyProgress(ctx *c, const slotExportProgress *p) {
    hotCheck(p->seconds_left >= 0);
    replyIntField(c, "keys_total", (int64_t)p->keys_total);
    replyIntField(c, "keys_sent", (int64_t)p->keys_sent);
    replyIntField(c, "bytes_sent", (int64_t)p->bytes_sent);
    replyIntField(c, "bytes_per_second", (int64_t)p->bytes_per_second);
    replyIntField(c, "seconds_left", p->seconds_left);
}

static void replyJob(ctx *c, const slotJob *job) {
    hotCheck(job->ranges.count > 0);
    str ranges = STR_EMPTY;
    slotExportProgress progress;
    bool is_sent = slotExportProgressOf(job, &progress);
    slotRangesPrint(&job->ranges, &ranges);
    replyMap(c, (job->has_nodes ? 12 : 10) + (is_sent ? PROGRESS_FIELDS : 0));
    replyBulkText(c, "name");
    replyBulk(c, sliceMake(job->name, SLOT_IMPORT_NAME_LEN));
    replyBulkText(c, "operation");
    replyBulkText(c, job->is_import ? "IMPORT" : "EXPORT");
    replyBulkText(c, "slot_ranges");
    replyBulk(c, strSlice(&ranges));
    if (job->has_nodes) {
        replyBulkText(c, "target_node");
        replyBulk(c, sliceMake(job->target, NODE_ID_LEN));
        replyBulkText(c, "source_node");
        replyBulk(c, sliceMake(job->source, NODE_ID_LEN));
    }
    replyIntField(c, "create_time", job->created_s);
    replyIntField(c, "last_update_time", job->updated_s);
    replyIntField(c, "last_ack_time", job->acked_s);
    replyBulkText(c, "state");
    replyBulkText(c, slotJobStateName(job->state));
    replyBulkText(c, "message");
    replyBulk(c, strSlice(&job->message));
    replyIntField(c, "cow_size", 0);
    replyIntField(c, "remaining_repl_size", (int64_t)slotExportUnsent(job));
    if (is_sent) replyProgress(c, &progress);
    strFree(&ranges);
}

/* CLUSTER GETSLOTMIGRATIONS. Reply: a map per job, the newest first. */
void clusterGetslotmigrationsCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    const list *jobs = &slotMigrations.log.jobs;
    replyArray(c, (int64_t)jobs->count);
    for (listNode *n = listFirst(jobs); n; n = listNext(jobs, n)) replyJob(c, slotJobOf(n));
}

/* ------------------------------------------------------------------ SYNCSLOTS */

typedef struct establishWords {
    slice source, name;
    slice codecs; /* that the source offers; NULL: it does not understand an offer */
    slotRanges ranges;
    clusterNode *owner;
    int codecs_at; /* the index of CAPA */
} establishWords;

/* The words after ESTABLISH, in any order, each once. False: the error was replied. */
static bool parseEstablish(ctx *c, establishWords *out) {
    for (int at = 3; at < c->argc;) {
        bool has_value = at + 1 < c->argc;
        if (has_value && slotWordIs(c->argv[at], "source") && !out->source.ptr) {
            out->source = c->argv[at + 1];
            at += 2;
        } else if (has_value && slotWordIs(c->argv[at], "name") && !out->name.ptr) {
            out->name = c->argv[at + 1];
            at += 2;
        } else if (has_value && slotWordIs(c->argv[at], "capa") && !out->codecs.ptr) {
            out->codecs = c->argv[at + 1];
            out->codecs_at = at;
            at += 2;
        } else if (slotWordIs(c->argv[at], "slotsrange") && !out->ranges.count) {
            int used = 0;
            if (!parseRanges(c, at + 1, &out->ranges, &used, &out->owner)) return false;
            at += 1 + used;
        } else {
            break;
        }
        if (at == c->argc && out->source.len == NODE_ID_LEN &&
            out->name.len == SLOT_IMPORT_NAME_LEN && out->ranges.count)
            return true;
    }
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static bool mayImport(ctx *c, const establishWords *w) {
    reason why;
    keyspaceDropAll();
    status st = slotTargetCheck(slotMigrationNow(), w->source, w->name, &w->ranges, w->owner, &why);
    if (st != OK) replyErrorFormat(c, "ERR %s", why.text);
    return st == OK;
}

/* Replicas and the append only file get it without CAPA, which only the link is about: any server
 * can read them. */
static void propagateEstablish(ctx *c, const establishWords *w) {
    ctxPropagateTo(c, PROPAGATE_AOF | PROPAGATE_REPLICAS);
    if (!w->codecs.ptr) return;
    check(w->codecs_at + 1 < c->argc);
    slice *words = memNewArray(slice, (size_t)c->argc);
    int count = 0;
    for (int i = 0; i < c->argc; i++) {
        if (i != w->codecs_at && i != w->codecs_at + 1) words[count++] = c->argv[i];
    }
    ctxPropagateAs(c, count, words);
    memFree(words);
}

static void establish(ctx *c) {
    establishWords w = {.owner = NULL};
    bool is_told = c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_AOF;
    if (!is_told && c->origin != ORIGIN_CLIENT) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if ((is_told || isPossible(c)) && parseEstablish(c, &w)) {
        if (!is_told && mayImport(c, &w)) {
            propagateEstablish(c, &w);
            slotImportBegin(c, w.name, w.source, &w.ranges, w.codecs);
        }
        if (is_told) slotImportFollow(w.name, &w.ranges);
        if (c->origin == ORIGIN_PRIMARY) ctxPropagateTo(c, PROPAGATE_AOF);
    }
    slotRangesClear(&w.ranges);
}

/* SYNCSLOTS FINISH STATE state NAME name [MESSAGE text]: of the primary, or of the append only
 * file. Others may end a job that has no link here. */
static void finish(ctx *c) {
    hotCheck(c->argc >= 3);
    slice state = SLICE(""), name = SLICE(""), message = SLICE("");
    int at = 3;
    for (; at + 1 < c->argc; at += 2) {
        if (slotWordIs(c->argv[at], "state")) {
            state = c->argv[at + 1];
        } else if (slotWordIs(c->argv[at], "name")) {
            name = c->argv[at + 1];
        } else if (slotWordIs(c->argv[at], "message")) {
            message = c->argv[at + 1];
        } else {
            break;
        }
    }
    bool success = slotWordIs(state, "success");
    if (at != c->argc || !state.len || !name.len) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    slotJob *job = slotLogFind(&slotMigrations.log, name), *export = slotExportOf(c->who);
    slotJob *import = slotImportOf(c->who);
    bool is_client = c->origin == ORIGIN_CLIENT;
    if (import) {
        str text = strNew(message);
        slotTargetReject(slotMigrationNow(), import, strText(&text)); /* no source sends it */
        strFree(&text);
        return;
    }
    if (export) {
        if (job == export && !success) slotExportEnded(job, message);
        return;
    }
    if (!job || (!slotJobIsActive(job) && is_client)) {
        /* A replica may have begun after the job did. */
        if (is_client) replyError(c, SLICE("ERR No such slot migration job"));
    } else if (!success && !slotWordIs(state, "failed")) {
        replyError(c, ERR_SYNTAX_TEXT);
    } else if (job->is_import && slotJobIsActive(job) &&
               (!is_client || job->state == JOB_ON_PRIMARY)) {
        slotTargetFinish(slotMigrationNow(), job, success, message);
        if (is_client) replyOk(c);
        if (c->origin == ORIGIN_PRIMARY) ctxPropagateTo(c, PROPAGATE_AOF);
    } else if (is_client) {
        replyError(c, SLICE("ERR This node has the connection of the slot migration: it is ended "
                            "by the nodes alone"));
    }
}

static const struct {
    const char *word;
    slotJobEvent event;
} words[] = {
    {"ack", JOB_ACK},
    {"snapshot-eof", JOB_SNAPSHOT_EOF},
    {"request-pause", JOB_REQUEST_PAUSE},
    {"paused", JOB_PAUSED_WORD},
    {"request-failover", JOB_REQUEST_FAILOVER},
    {"failover-granted", JOB_GRANTED_WORD},
};

/* A word of the dialogue. False: it is none. */
static bool converse(ctx *c) {
    slotJob *import = slotImportOf(c->who), *export = slotExportOf(c->who);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!slotWordIs(c->argv[2], words[i].word)) continue;
        if (c->argc != 3) return false;
        if (c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_AOF) return true;
        if (import) {
            slotTargetOn(slotMigrationNow(), import, words[i].event);
        } else if (export) {
            slotSourceOn(slotMigrationNow(), export, words[i].event);
        } else {
            str upper = strNew(sliceOf(words[i].word));
            for (size_t k = 0; k < upper.len; k++) {
                if (upper.ptr[k] >= 'a') upper.ptr[k] = (char)(upper.ptr[k] - 'a' + 'A');
            }
            replyErrorFormat(c,
                             "ERR CLUSTER SYNCSLOTS %s should only be used by slot migration "
                             "clients",
                             strText(&upper));
            strFree(&upper);
        }
        return true;
    }
    return false;
}

/* CLUSTER SYNCSLOTS word ...: what the nodes of a migration send each other. No reply on their
 * connection. */
void clusterSyncslotsCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (!clusterIsNode(c)) return;
    if (slotWordIs(c->argv[2], "establish")) {
        establish(c);
    } else if (slotWordIs(c->argv[2], "finish")) {
        finish(c);
    } else if (slotWordIs(c->argv[2], "capa")) {
        /* Reserved; nodes that send it expect nothing. */
        if (c->origin == ORIGIN_CLIENT && !(c->who->flags & SESSION_SLOT_EXPORT)) replyOk(c);
    } else if (!converse(c)) {
        slotJob *import = slotImportOf(c->who);
        if (import) {
            slotTargetReject(slotMigrationNow(), import, "Unknown SYNCSLOTS subcommand used");
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
        }
    }
}

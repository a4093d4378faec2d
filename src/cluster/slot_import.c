/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The target's side of slot migration (slot_import.h). Invariant: the slots of active import jobs,
 * and no others, are hidden. Nothing is deleted and no slot is taken while a command is
 * executed. */
#include "cluster/slot_import.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_slots.h"
#include "cluster/slot_migration.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "engine/stream.h"
#include "net/net.h"
#include "repl/role.h"
#include "store/store.h"

enum { ACK_MS = 1000, CLEANING_US = 1000 };

static const char lost_text[] =
    "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more "
    "information.";

/* What an active job has beside its entry in the log. */
typedef struct importLink {
    slotJob *job;
    session *who;    /* NULL: there is none (any more) */
    int64_t sent_ms; /* the last ACK */
    int cleaned;     /* slots below are cleaned up */
} importLink;

static importLink *linkOf(const slotJob *job) { return job->work; }

static slotJob *importNext(const slotJob *after) {
    return slotLogNext(&slotMigrations, after, true);
}

static const sessionSlot link_slot = {.name = "slot import"};

static int linkSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&link_slot);
    return index;
}

slotJob *slotImportOf(const session *s) { return sessionSlotGet(s, linkSlot()); }

/* ------------------------------------------------------------------ hidden slots */

static void hide(const slotJob *job, bool on) {
    hotCheck(job->ranges.count > 0);
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            storeHideSlot(keyspaceMain(), slot, on);
    }
}

void slotImportHideAll(void) {
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) { hide(job, true); }
}

static void eachImport(slotImportVisitProc *visit, void *arg) {
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        const slotImport import = {.job = sliceMake(job->name, SLOT_IMPORT_NAME_LEN),
                                   .ranges = job->ranges.items,
                                   .count = job->ranges.count};
        visit(arg, &import);
    }
}

static void loaded(const slotImport *import) {
    if (!storeIsSlotted() || slotLogFind(&slotMigrations, import->job)) return;
    slotRanges ranges = slotRangesCopy(import->ranges, import->count);
    slotImportFollow(import->job, &ranges);
}

static void eachIfAny(slotImportVisitProc *visit, void *arg) {
    if (slotMigrations.active) eachImport(visit, arg);
}

const slotImportKeeper slotImportKeeperOfCluster = {.each = eachIfAny, .loaded = loaded};

/* ------------------------------------------------------------------ end */

static void closeLink(slotJob *job) {
    check(job->is_import);
    importLink *link = linkOf(job);
    if (!link || !link->who) return;
    session *s = link->who;
    link->who = NULL;
    sessionSlotSet(s, linkSlot(), NULL);
    sessionCloseNow(s);
}

static void freeLink(slotJob *job) {
    closeLink(job);
    memFree(job->work);
    job->work = NULL;
}

static void end(slotJob *job, slotJobState state, const char *message) {
    hide(job, false);
    freeLink(job);
    slotMigrationEnd(job, state, message);
}

/* Tells replicas and the append only file. */
static void propagateFinish(const slotJob *job, bool success) {
    check(!slotJobIsActive(job));
    check(!engineHot.current);
    const slice words[] = {SLICE("CLUSTER"),
                           SLICE("SYNCSLOTS"),
                           SLICE("FINISH"),
                           SLICE("STATE"),
                           success ? SLICE("SUCCESS") : SLICE("FAILED"),
                           SLICE("NAME"),
                           sliceMake(job->name, SLOT_IMPORT_NAME_LEN),
                           SLICE("MESSAGE"),
                           strSlice(&job->message)};
    const propagateTo to = {.db_id = 0, .targets = PROPAGATE_AOF | PROPAGATE_REPLICAS, .slot = -1};
    propagateUnitBegin();
    propagateCopy(to, (int)COUNT_OF(words), words);
    propagateUnitEnd();
}

void slotImportFail(slotJob *job, const char *message) {
    check(job->is_import);
    if (!slotJobIsActive(job) || job->state == JOB_CLEANING) return;
    strClear(&job->message);
    strAppendText(&job->message, message);
    closeLink(job);
    if (!job->work) job->work = memNew(importLink);
    linkOf(job)->job = job;
    linkOf(job)->cleaned = 0;
    slotMigrationSet(job, JOB_CLEANING);
    logNotice("Cleaning up slot migration %s after failed", slotJobLabelOf(job).text);
}

void slotImportFailAll(const char *message) {
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        if (job->state != JOB_ON_PRIMARY) slotImportFail(job, message);
    }
}

/* Deletes the keys that were received, some slots in a turn. */
static void clean(slotJob *job) {
    importLink *link = linkOf(job);
    check(link);
    check(!link->who);
    int64_t end_us = clockMonoUs() + CLEANING_US;
    while (link->cleaned < SLOT_COUNT && clockMonoUs() < end_us) {
        int slot = link->cleaned++;
        if (!slotRangesHave(&job->ranges, slot) || clusterMapIsMine(&serverMap, slot)) continue;
        if (!serverSlotsCountKeys(slot)) continue;
        propagateUnitBegin();
        propagateUnwrapped();
        keyspaceDropSlot(slot);
        propagateUnitEnd();
    }
    if (link->cleaned < SLOT_COUNT) return;
    end(job, JOB_FAILED, NULL);
    propagateFinish(job, false);
}

void slotImportFinish(slotJob *job, bool success, slice message) {
    check(job->is_import);
    check(slotJobIsActive(job));
    str text = strNew(message);
    end(job, success ? JOB_SUCCESS : JOB_FAILED, strText(&text));
    strFree(&text);
}

/* ------------------------------------------------------------------ the link */

static void applied(session *s, int db_id, const slice *spans, int count) {
    const slotJob *job = slotImportOf(s);
    if (job && slotJobIsActive(job)) replForward(db_id, spans, count, s->db_id);
}

static void commandFailed(ctx *c, slice error) {
    slotJob *job = slotImportOf(c->who);
    if (!job) return;
    bool has_dash = !(error.len > 4 && !memcmp(error.ptr, "ERR ", 4));
    if (!has_dash) error = sliceMake(error.ptr + 4, error.len - 4);
    slice command = c->cmd ? c->cmd->name : SLICE("<unknown>");
    logWarning("== CRITICAL == This slot-import-target is sending an error to its "
               "slot-import-source: '%s%.*s' after processing the command '%.*s'",
               has_dash ? "-" : "", (int)error.len, error.ptr, (int)command.len, command.ptr);
    bool is_memory = error.len >= 3 && !memcmp(error.ptr, "OOM", 3);
    slotImportFail(job, is_memory ? "Ran out of memory (OOM) during slot import"
                                  : "Failed to process command during slot migration. Check logs "
                                    "for more information");
}

static void broken(session *s, slice error) {
    slotJob *job = slotImportOf(s);
    logWarning("The link of a slot migration is broken: %.*s", (int)error.len, error.ptr);
    if (job) slotImportFail(job, lost_text);
}

static const streamOwner link_owner = {
    .applied = applied, .failed = commandFailed, .broken = broken};

static bool selectsKeys(const commandSpec *spec) {
    return spec->key_spec_count > 0 || spec->find_keys;
}

static gateVerdict admitKeys(ctx *c) {
    const slotJob *job = slotImportOf(c->who);
    int slot = commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    if (!job || slot == COMMAND_NO_SLOT) return GATE_PASS;
    if (slot >= 0 && slotRangesHave(&job->ranges, slot)) return GATE_PASS;
    replyError(c, SLICE("ERR The slot is not being imported over this connection"));
    return GATE_REFUSED;
}

const gate slotImportGate = {.name = "slot import",
                             .selects = selectsKeys,
                             .admit = admitKeys,
                             .origins = 1u << ORIGIN_IMPORT};

void slotImportBegin(ctx *c, slice name, slice source, slotRanges *ranges) {
    check(source.len == NODE_ID_LEN);
    session *s = c->who;
    slotJob *job = slotLogAdd(&slotMigrations, true, name, ranges, slotMigrationNowS());
    job->has_nodes = true;
    memcpy(job->source, source.ptr, NODE_ID_LEN);
    memcpy(job->target, serverMap.myself->id, NODE_ID_LEN);
    logNotice("New slot import job created: %s.", slotJobLabelOf(job).text);
    importLink *link = memNew(importLink);
    *link = (importLink){.job = job, .who = s, .sent_ms = engineHot.now_ms};
    job->work = link;
    hide(job, true);
    ctxPropagateTo(c, PROPAGATE_AOF | PROPAGATE_REPLICAS);
    replyOk(c);
    streamOpen(s, ORIGIN_IMPORT, &link_owner);
    sessionSlotSet(s, linkSlot(), job);
    gateArmSession(s, &slotImportGate, true);
}

void slotImportFollow(slice name, slotRanges *ranges) {
    check(storeIsSlotted());
    slotJob *job = slotLogAdd(&slotMigrations, true, name, ranges, slotMigrationNowS());
    slotLogSetState(&slotMigrations, job, JOB_ON_PRIMARY, slotMigrationNowS());
    hide(job, true);
    logNotice("New slot import job created: %s.", slotJobLabelOf(job).text);
}

static void sendWord(const slotJob *job, const char *word) {
    const importLink *link = linkOf(job);
    check(link->who);
    str bytes = slotWordsOf(word);
    streamSend(link->who, strSlice(&bytes));
    strFree(&bytes);
}

void slotImportOn(slotJob *job, slotJobEvent event) {
    slotJobState next;
    uint32_t acts;
    check(job->is_import);
    if (!slotJobOn(job->state, event, false, &next, &acts)) {
        slotImportFail(job, "Unexpected state machine transition");
        return;
    }
    if (event == JOB_ACK) job->acked_s = slotMigrationNowS();
    if (event == JOB_SNAPSHOT_EOF)
        logNotice("Slot migration %s successfully received slot snapshot. Beginning incremental "
                  "stream...",
                  slotJobLabelOf(job).text);
    slotMigrationSet(job, next);
    if (acts & JOB_ACT_SEND_REQUEST_PAUSE) sendWord(job, "REQUEST-PAUSE");
    if (acts & JOB_ACT_SEND_REQUEST_FAILOVER) sendWord(job, "REQUEST-FAILOVER");
    /* JOB_ACT_TAKE: slotImportStep(), when no command is executed. */
}

void slotImportLost(const session *s) {
    slotJob *job = slotImportOf(s);
    if (!job || !job->work || linkOf(job)->who != s) return;
    linkOf(job)->who = NULL;
    slotImportFail(job, lost_text);
}

/* ------------------------------------------------------------------ taking the slots */

static void takeOver(slotJob *job) {
    check(job->state == JOB_TAKING);
    if (clusterMapBumpEpoch(&serverMap))
        logNotice("New configEpoch set to %llu", (unsigned long long)serverMap.myself->epoch);
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            clusterMapSetOwner(&serverMap, slot, serverMap.myself);
    }
    logNotice("Slot migration %s completed successfully. This node is now the owner of the slots",
              slotJobLabelOf(job).text);
    end(job, JOB_SUCCESS, NULL);
    propagateFinish(job, true);
    busTellAll(&serverBus, serverBusNowMs());
}

/* The role of this node has changed: its replicas, or its primary, go on without the link. */
static bool followsRole(slotJob *job) {
    check(slotJobIsActive(job));
    bool is_primary = serverMap.myself->flags & NODE_PRIMARY;
    if (is_primary && job->state == JOB_ON_PRIMARY) {
        slotImportFail(job, "A failover occurred during slot import");
        return true;
    }
    if (is_primary || job->state == JOB_ON_PRIMARY) return false;
    freeLink(job);
    slotMigrationSet(job, JOB_ON_PRIMARY);
    return true;
}

void slotImportStep(void) {
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        if (followsRole(job)) continue;
        if (pauseIsFor(PAUSE_FOR_FAILOVER)) continue; /* the stream of replication stands still */
        if (job->state == JOB_CLEANING) clean(job);
        if (job->state == JOB_TAKING && !slotMigrationHeld().before_takeover) takeOver(job);
    }
}

/* ------------------------------------------------------------------ periodic */

static void watch(slotJob *job) {
    importLink *link = linkOf(job);
    const clusterNode *source = clusterMapFind(&serverMap, sliceMake(job->source, NODE_ID_LEN));
    int64_t now_ms = engineHot.now_ms;
    check(link->who);
    bool is_held = link->who->flags & SESSION_PAUSED;
    if (!source || !slotRangesAreOf(&job->ranges, &serverMap, source)) {
        bool mine = slotRangesAreOf(&job->ranges, &serverMap, serverMap.myself);
        slotImportFail(job, mine ? "Slots were unexpectedly assigned to myself during import"
                                 : "Slots are no longer owned by source node");
    } else if (!is_held && now_ms - link->who->active_ms > replTimeoutMs()) {
        logWarning("Timing out slot migration %s after not receiving ack for too long",
                   slotJobLabelOf(job).text);
        slotImportFail(job, "Timed out after too long with no interaction");
    } else if (now_ms - link->sent_ms >= ACK_MS) {
        link->sent_ms = now_ms;
        sendWord(job, "ACK");
    }
}

void slotImportTick(void) {
    slotImportStep();
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        if (job->work && linkOf(job)->who) watch(job);
    }
}

/* ------------------------------------------------------------------ loading */

void slotImportForget(void) {
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        end(job, JOB_FAILED, "Full resynchronization occurred");
    }
}

void slotImportAfterLoad(void) {
    if (serverMap.myself->flags & NODE_REPLICA) return;
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        /* The map is saved before the end of the job is. */
        bool mine = slotRangesAreOf(&job->ranges, &serverMap, serverMap.myself);
        end(job, mine ? JOB_SUCCESS : JOB_FAILED, mine ? NULL : "Process restarted");
        propagateFinish(job, mine);
    }
}

size_t slotImportMemory(void) {
    size_t bytes = 0;
    if (!slotMigrations.active) return 0;
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        if (!job->work || !linkOf(job)->who) continue;
        bytes += netClientMemory(linkOf(job)->who);
    }
    return bytes;
}

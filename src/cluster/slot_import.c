/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The actions of a target of slots (slot_target.h) in this server. Nothing is deleted and no slot
 * is taken while a command is executed. There is one server in a process, so the callbacks do not
 * use their argument. */
#include "cluster/slot_import.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "bus/slot_target.h"
#include "cluster/cluster.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/server_slots.h"
#include "cluster/slot_migration.h"
#include "cluster/slot_pack.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "engine/stream.h"
#include "io/conn_unpack.h"
#include "net/net.h"
#include "repl/role.h"
#include "store/store.h"

enum { CLEANING_US = 1000 };

static const char lost_text[] =
    "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more "
    "information.";

/* State of a job that has a connection, in addition to its entry in the log. */
typedef struct importLink {
    session *who; /* NULL: there is none any more */
    str error;    /* of a command that has failed; empty: none has */
} importLink;

static importLink *linkOf(const slotJob *job) { return job->work; }

static slotJob *importNext(const slotJob *after) {
    return slotLogNext(&slotMigrations.log, after, true);
}

static const sessionSlot link_slot = {.name = "slot import"};

static int linkSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&link_slot);
    return index;
}

slotJob *slotImportOf(const session *s) { return sessionSlotGet(s, linkSlot()); }

/* ------------------------------------------------------------------ hidden slots */

void slotImportHide(void *arg, const slotJob *job, bool on) {
    (void)arg;
    hotCheck(job->ranges.count > 0);
    for (size_t i = 0; i < job->ranges.count; i++) {
        for (int slot = job->ranges.items[i].first; slot <= job->ranges.items[i].last; slot++)
            storeHideSlot(keyspaceMain(), slot, on && !clusterMapIsMine(slotMigrations.map, slot));
    }
}

static void eachIfAny(slotImportVisitProc *visit, void *arg) {
    if (!slotMigrations.log.active) return;
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        const slotImport import = {.job = sliceMake(job->name, SLOT_IMPORT_NAME_LEN),
                                   .ranges = job->ranges.items,
                                   .count = job->ranges.count};
        visit(arg, &import);
    }
}

static void loaded(const slotImport *import) {
    if (!storeIsSlotted()) return;
    slotRanges ranges = slotRangesCopy(import->ranges, import->count);
    slotImportFollow(import->job, &ranges);
    slotRangesClear(&ranges);
}

const slotImportKeeper slotImportKeeperOfCluster = {.each = eachIfAny, .loaded = loaded};

void slotImportFollow(slice name, slotRanges *ranges) {
    slotJob *job = slotTargetFollow(slotMigrationNow(), name, ranges);
    if (job) slotMigrationSignal(job);
}

/* ------------------------------------------------------------------ end */

/* Tells the source why this node ends the job; false: nothing was sent. A source that runs Valkey
 * does not expect such a message. */
static bool tellEnd(const slotJob *job, const importLink *link) {
    const clusterNode *source = slotMovesPeer(&slotMigrations, job);
    str bytes = STR_EMPTY;
    if (job->run.is_rejected || !job->message.len || !source || !source->unclaims) return false;
    const slice words[] = {SLICE("FINISH"),
                           SLICE("STATE"),
                           SLICE("FAILED"),
                           SLICE("NAME"),
                           sliceMake(job->name, SLOT_IMPORT_NAME_LEN),
                           SLICE("MESSAGE"),
                           strSlice(link->error.len ? &link->error : &job->message)};
    slotWordsAppend(&bytes, (int)COUNT_OF(words), words);
    streamSend(link->who, strSlice(&bytes));
    strFree(&bytes);
    return true;
}

void slotImportClose(slotJob *job) {
    check(job->is_import);
    importLink *link = linkOf(job);
    if (!link || !link->who) return;
    session *s = link->who;
    bool is_told = tellEnd(job, link);
    link->who = NULL;
    strFree(&link->error);
    sessionSlotSet(s, linkSlot(), NULL);
    if (is_told) {
        sessionCloseSoon(s);
    } else {
        sessionCloseNow(s);
    }
}

/* Tells replicas and the append only file. */
void slotImportFinished(void *arg, const slotJob *job) {
    (void)arg;
    check(!slotJobIsActive(job));
    check(!engineHot.current);
    const slice words[] = {SLICE("CLUSTER"),
                           SLICE("SYNCSLOTS"),
                           SLICE("FINISH"),
                           SLICE("STATE"),
                           job->state == JOB_SUCCESS ? SLICE("SUCCESS") : SLICE("FAILED"),
                           SLICE("NAME"),
                           sliceMake(job->name, SLOT_IMPORT_NAME_LEN),
                           SLICE("MESSAGE"),
                           strSlice(&job->message)};
    const propagateTo to = {.db_id = 0, .targets = PROPAGATE_AOF | PROPAGATE_REPLICAS, .slot = -1};
    propagateUnitBegin();
    propagateCopy(to, (int)COUNT_OF(words), words);
    propagateUnitEnd();
}

void slotImportTellAll(void *arg) {
    (void)arg;
    busTellAll(&serverBus, serverBusNowMs());
}

static void fail(slotJob *job, const char *message) {
    slotTargetFail(slotMigrationNow(), job, message);
}

bool slotImportClean(void *arg, slotJob *job) {
    (void)arg;
    check(job->state == JOB_CLEANING);
    int64_t end_us = clockMonoUs() + CLEANING_US;
    int *cleaned = &job->run.cleaned;
    loopLimitSleep(engineLoop(), 0); /* the rest follows in the next turns */
    if (keyspaceDropStep(end_us)) return false;
    while (*cleaned < SLOT_COUNT && clockMonoUs() < end_us) {
        int slot = (*cleaned)++;
        if (!slotRangesHave(&job->ranges, slot) || clusterMapIsMine(&serverMap, slot)) continue;
        if (!serverSlotsCountKeys(slot)) continue;
        keyspaceDropSlot(slot);
        if (keyspaceDropStep(end_us)) return false;
    }
    return *cleaned == SLOT_COUNT;
}

uint64_t slotImportKeys(void *arg, int slot) {
    (void)arg;
    return serverSlotsCountKeys(slot);
}

bool slotImportDeletes(void *arg) {
    (void)arg;
    return serverRoleDeletes();
}

/* ------------------------------------------------------------------ replicas */

bool slotImportIsStill(void *arg) {
    (void)arg;
    return pauseIsFor(PAUSE_FOR_FAILOVER);
}

typedef struct replicaCount {
    int64_t offset;
    int behind;
} replicaCount;

static bool countBehind(const replPeerInfo *peer, void *arg) {
    replicaCount *c = arg;
    if (peer->online && peer->offset < c->offset) c->behind++;
    return true;
}

void slotImportMark(void *arg, slotJob *job) {
    (void)arg;
    job->run.stream_at = replOffset();
    replWantAcks();
}

bool slotImportIsBehind(void *arg, const slotJob *job) {
    (void)arg;
    replicaCount c = {.offset = job->run.stream_at};
    replPeersEach(countBehind, &c);
    return c.behind > 0;
}

bool slotImportLacksQuorum(void *arg, const slotJob *job) {
    (void)arg;
    return !replIsConfirmed(job->run.stream_at);
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
    strClear(&linkOf(job)->error);
    strAppendFormat(&linkOf(job)->error, "%s%.*s after the command '%.*s'", has_dash ? "-" : "",
                    (int)error.len, error.ptr, (int)command.len, command.ptr);
    bool is_memory = error.len >= 3 && !memcmp(error.ptr, "OOM", 3);
    fail(job, is_memory ? "Ran out of memory (OOM) during slot import"
                        : "Failed to process command during slot migration. Check logs "
                          "for more information");
}

static void broken(session *s, slice error) {
    slotJob *job = slotImportOf(s);
    logWarning("The link of a slot migration is broken: %.*s", (int)error.len, error.ptr);
    if (job) fail(job, lost_text);
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

/* Statistics count what is received; those who read count what they get. */
static void countUnpacked(size_t received, size_t plain, size_t decompressed) {
    (void)decompressed;
    netCountSlots(received - plain);
}

/* Names the codec of the stream, and reads it by that. A session that has no connection of a client
 * gets no codec. */
static void acceptCodec(ctx *c, slice codecs) {
    conn *connection = netOutgoingConn(c->who);
    compressCodec codec = connection ? slotPackChoose(codecs) : COMPRESS_NONE;
    if (codec == COMPRESS_NONE) {
        replyOk(c);
        return;
    }
    char text[32];
    int len = snprintf(text, sizeof(text), "OK CODEC %s", compressName(codec));
    check(len > 0 && len < (int)sizeof(text));
    replyStatus(c, sliceMake(text, (size_t)len));
    connUnpack(connection, SLICE(""), countUnpacked);
}

void slotImportBegin(ctx *c, slice name, slice source, slotRanges *ranges, slice codecs) {
    session *s = c->who;
    slotJob *job = slotTargetBegin(slotMigrationNow(), source, name, ranges);
    importLink *link = memNew(importLink);
    *link = (importLink){.who = s};
    job->work = link;
    slotMigrationSignal(job);
    acceptCodec(c, codecs);
    streamOpen(s, ORIGIN_IMPORT, &link_owner);
    sessionSlotSet(s, linkSlot(), job);
    gateArmSession(s, &slotImportGate, true);
}

void slotImportSend(const slotJob *job, uint32_t acts) {
    const importLink *link = linkOf(job);
    check(link);
    if (!link->who) return; /* it was lost */
    const char *word = acts & JOB_ACT_SEND_REQUEST_PAUSE      ? "REQUEST-PAUSE"
                       : acts & JOB_ACT_SEND_REQUEST_FAILOVER ? "REQUEST-FAILOVER"
                                                              : "ACK";
    str bytes = slotWordsOf(word);
    streamSend(link->who, strSlice(&bytes));
    strFree(&bytes);
}

int64_t slotImportHeardMs(const slotJob *job) {
    const importLink *link = linkOf(job);
    if (!link || !link->who) return -1;
    return link->who->flags & SESSION_PAUSED ? engineHot.now_ms : link->who->active_ms;
}

void slotImportLost(const session *s) {
    slotJob *job = slotImportOf(s);
    if (!job || !job->work || linkOf(job)->who != s) return;
    const conn *c = netOutgoingConn(linkOf(job)->who);
    linkOf(job)->who = NULL;
    if (!c || !connUnpacks(c) || c->fd < 0 || c->last_errno != EBADMSG) {
        fail(job, lost_text);
        return;
    }
    str message = STR_EMPTY;
    strAppendFormat(&message, "The compressed stream of the source cannot be read: %s",
                    connErrorText(c));
    logWarning("Slot migration %s: %s", slotMigrationLabel(job).text, strText(&message));
    fail(job, strText(&message));
    strFree(&message);
}

size_t slotImportMemory(void) {
    size_t bytes = 0;
    if (!slotMigrations.log.active) return 0;
    for (slotJob *job = importNext(NULL); job; job = importNext(job)) {
        if (!job->work || !linkOf(job)->who) continue;
        bytes += netClientMemory(linkOf(job)->who);
    }
    return bytes;
}

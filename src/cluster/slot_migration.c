/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slot migration jobs of this server: gives slot_moves.h the time, the directives and messages.
 * There is one server in a process, so the callbacks do not use their argument.
 *
 * Invariant: functions of a state machine that change a job are called with slotMigrationNow(),
 * which sets the present time and rules. Main thread only. */
#include "cluster/slot_migration.h"

#include "base/base.h"
#include "base/clock.h"
#include "bus/slot_source.h"
#include "bus/slot_target.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/slot_export.h"
#include "cluster/slot_import.h"
#include "engine/hot.h"
#include "engine/server_event.h"
#include "format/slot_imports.h"
#include "repl/role.h"
#include "resp/resp.h"

slotMoves slotMigrations;

static struct { bool pause, takeover; } holds;

void slotMigrationHold(bool before_pause, bool on) {
    *(before_pause ? &holds.pause : &holds.takeover) = on;
}

slotMoves *slotMigrationNow(void) {
    slice user_name, password;
    slotMoves *m = &slotMigrations;
    hotCheck(threadIsMain());
    replCredentials(&user_name, &password);
    m->now_ms = serverBusNowMs();
    m->now_s = engineHot.now_ms / 1000;
    m->rules = (slotMovesRules){.pause_ms = clusterConf.slot_migration_pause_ms,
                                .manual_timeout_ms = clusterConf.bus.manual_timeout_ms,
                                .node_timeout_ms = clusterConf.bus.timeout_ms,
                                .silence_ms = replTimeoutMs(),
                                .unsent_max = clusterConf.slot_migration_max_failover_repl_bytes,
                                .has_auth = password.len > 0,
                                .is_saving = mapSavesIsPending(&serverMapSaves),
                                .hold_pause = holds.pause,
                                .hold_takeover = holds.takeover};
    return m;
}

int64_t slotMigrationTimeOf(int64_t at_ms) {
    return slotMigrations.now_ms - (engineHot.now_ms - at_ms);
}

slotJobLabel slotMigrationLabel(const slotJob *job) { return slotJobLabelOf(&slotMigrations, job); }

/* ------------------------------------------------------------------ words */

void slotWordsAppend(str *out, int count, const slice *words) {
    check(count > 0);
    size_t len;
    slice *all = memNewArray(slice, (size_t)count + 2);
    all[0] = SLICE("CLUSTER");
    all[1] = SLICE("SYNCSLOTS");
    memcpy(all + 2, words, (size_t)count * sizeof(*words));
    char *bytes = respRequest(count + 2, all, &len);
    strAppend(out, bytes, len);
    memFree(bytes);
    memFree(all);
}

str slotWordsOf(const char *word) {
    const slice words[] = {sliceOf(word)};
    str out = STR_EMPTY;
    slotWordsAppend(&out, 1, words);
    return out;
}

/* ------------------------------------------------------------------ what the jobs ask for */

static void send(void *arg, slotJob *job, uint32_t acts) {
    (void)arg;
    check(acts);
    if (job->is_import) {
        slotImportSend(job, acts);
    } else {
        slotExportSend(job, acts);
    }
}

static void closeLink(void *arg, slotJob *job) {
    (void)arg;
    if (job->is_import) {
        slotImportClose(job);
    } else {
        slotExportClose(job);
    }
}

static int64_t heardMs(void *arg, const slotJob *job) {
    (void)arg;
    int64_t at_ms = job->is_import ? slotImportHeardMs(job) : slotExportHeardMs(job);
    return at_ms < 0 ? -1 : slotMigrationTimeOf(at_ms);
}

void slotMigrationSignal(const slotJob *job) {
    serverEventSignal(&(serverEvent){.kind = SERVER_SLOT_MIGRATION,
                                     .phase = slotJobIsActive(job)        ? EVENT_BEGINS
                                              : job->state == JOB_SUCCESS ? EVENT_ENDED
                                                                          : EVENT_FAILED,
                                     .slots = {.job = sliceMake(job->name, sizeof(job->name)),
                                               .is_import = job->is_import,
                                               .ranges = job->ranges.items,
                                               .range_count = job->ranges.count}});
}

static void ended(void *arg, slotJob *job) {
    (void)arg;
    check(!slotJobIsActive(job));
    memFree(job->work);
    job->work = NULL;
    slotMigrationSignal(job);
}

static const slotMovesProcs procs = {.send = send,
                                     .close = closeLink,
                                     .heardMs = heardMs,
                                     .ended = ended,
                                     .connect = slotExportConnect,
                                     .canStream = slotExportCanStream,
                                     .beginStream = slotExportBeginStream,
                                     .endStream = slotExportEndStream,
                                     .unsent = slotExportUnsentOf,
                                     .queued = slotExportQueued,
                                     .sentKeys = slotExportSentKeys,
                                     .sentMs = slotExportSentMs,
                                     .pause = slotExportPause,
                                     .hide = slotImportHide,
                                     .clean = slotImportClean,
                                     .finish = slotImportFinished,
                                     .tellAll = slotImportTellAll,
                                     .isStill = slotImportIsStill,
                                     .markStream = slotImportMark,
                                     .isBehind = slotImportIsBehind,
                                     .lacksQuorum = slotImportLacksQuorum,
                                     .keys = slotImportKeys,
                                     .deletes = slotImportDeletes};

/* ------------------------------------------------------------------ for the server */

void slotMigrationInit(void) {
    check(clusterIsEnabled());
    slotMovesInit(&slotMigrations, &serverMap, &procs, NULL);
    slotImportsSetKeeper(&slotImportKeeperOfCluster);
}

void slotMigrationStep(void) {
    if (likely(!slotMigrations.log.active)) return;
    if (!engineHot.current && !engineHot.loading) slotMovesStep(slotMigrationNow());
    slotExportPack();
}

void slotMigrationTick(int64_t budget_us) {
    (void)budget_us; /* O(jobs) */
    if (!clusterIsEnabled()) return;
    serverMapNoteOrders();
    if (slotMigrations.log.active && !engineHot.current && !engineHot.loading) {
        slotMovesTick(slotMigrationNow());
        slotExportTick();
    }
    size_t most = (size_t)clusterConf.cluster_slot_migration_log_max_len;
    if (unlikely(slotMigrations.log.jobs.count > most)) slotLogTrim(&slotMigrations.log, most);
    serverMapNote();
}

bool slotMigrationIsBusy(void) { return clusterIsEnabled() && slotMigrations.log.active > 0; }

const char *slotMigrationRuns(void) {
    if (likely(!slotMigrations.log.active)) return NULL;
    if (slotLogNext(&slotMigrations.log, NULL, true)) return "import";
    return slotLogNext(&slotMigrations.log, NULL, false) ? "export" : NULL;
}

void slotMigrationDbEvent(const dbEvent *e) {
    if (!clusterIsEnabled()) return;
    if (e->kind == DB_LOAD_ENDED) {
        slotTargetHideAll(&slotMigrations);
    } else if (e->kind == DB_LOAD_BEGINS) {
        slotMovesForget(slotMigrationNow());
    } else if (e->kind == DB_FLUSHING && !e->swapped && slotMigrations.log.active) {
        slotMovesFlushed(slotMigrationNow());
    }
}

void slotMigrationSessionEvent(session *s, sessionEvent e) {
    if (e != SESSION_ENDING || likely(!clusterIsEnabled()) || !slotMigrations.log.active) return;
    slotExportLost(s);
    slotImportLost(s);
}

void slotMigrationAfterLoad(void) { slotTargetAfterLoad(slotMigrationNow()); }

size_t slotMigrationMemory(bool exports) {
    return exports ? slotExportMemory() : slotImportMemory();
}

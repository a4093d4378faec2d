/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/slot_migration.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/slot_export.h"
#include "cluster/slot_import.h"
#include "engine/hot.h"
#include "engine/slot_imports.h"
#include "resp/resp.h"

slotLog slotMigrations;

static slotMigrationHolds holds;

slotMigrationHolds slotMigrationHeld(void) { return holds; }

void slotMigrationHold(bool before_pause, bool on) {
    *(before_pause ? &holds.before_pause : &holds.before_takeover) = on;
}

int64_t slotMigrationNowS(void) { return engineHot.now_ms / 1000; }

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

/* ------------------------------------------------------------------ logs */

slotJobLabel slotJobLabelOf(const slotJob *job) {
    slotJobLabel label;
    str text = STR_EMPTY;
    strAppendFormat(&text, "{name: %.40s, operation: %s, ", job->name,
                    job->is_import ? "import" : "export");
    const char *peer = job->is_import ? job->source : job->target;
    const char *role = job->is_import ? "source" : "target";
    if (job->has_nodes) {
        strAppendFormat(&text, "%s_node_id: %.40s, ", role, peer);
        const clusterNode *n = clusterMapFind(&serverMap, sliceMake(peer, NODE_ID_LEN));
        if (n && n->human_name.len)
            strAppendFormat(&text, "%s_node_human_name: %s, ", role, strText(&n->human_name));
    } else {
        strAppendFormat(&text, "%s_node_id: unknown, ", role);
    }
    strAppendText(&text, "slots: ");
    slotRangesPrint(&job->ranges, &text);
    strAppendByte(&text, '}');
    snprintf(label.text, sizeof(label.text), "%s", strText(&text));
    strFree(&text);
    return label;
}

void slotMigrationSet(slotJob *job, slotJobState state) {
    hotCheck(slotJobIsActive(job));
    if (job->state == state) return;
    logNotice("Slot migration %s state transition: %s -> %s", slotJobLabelOf(job).text,
              slotJobStateName(job->state), slotJobStateName(state));
    slotLogSetState(&slotMigrations, job, state, slotMigrationNowS());
}

void slotMigrationEnd(slotJob *job, slotJobState state, const char *message) {
    check(slotJobIsActive(job));
    check(state >= JOB_SUCCESS);
    if (message && !job->message.len) strAppendText(&job->message, message);
    slotMigrationSet(job, state);
    if (state == JOB_FAILED) {
        logWarning("Slot migration %s finished. State: %s, Message: %s", slotJobLabelOf(job).text,
                   slotJobStateName(state), strText(&job->message));
    } else {
        logNotice("Slot migration %s finished. State: %s, Message: %s", slotJobLabelOf(job).text,
                  slotJobStateName(state), strText(&job->message));
    }
}

/* ------------------------------------------------------------------ for the server */

void slotMigrationInit(void) {
    check(clusterIsEnabled());
    slotLogInit(&slotMigrations);
    slotImportsSetKeeper(&slotImportKeeperOfCluster);
}

void slotMigrationStep(void) {
    if (likely(!slotMigrations.active)) return;
    if (engineHot.current || engineHot.loading) return;
    if (serverMap.changed & CLUSTER_MAP_OWN_SLOTS) slotExportCheckOwners();
    slotImportStep();
    slotExportStep();
}

void slotMigrationTick(int64_t budget_us) {
    (void)budget_us; /* O(jobs) */
    if (!clusterIsEnabled()) return;
    if (slotMigrations.active && !engineHot.current && !engineHot.loading) {
        slotImportTick();
        slotExportTick();
    }
    size_t most = (size_t)clusterConf.cluster_slot_migration_log_max_len;
    if (unlikely(slotMigrations.jobs.count > most)) slotLogTrim(&slotMigrations, most);
}

bool slotMigrationIsBusy(void) { return clusterIsEnabled() && slotMigrations.active > 0; }

const char *slotMigrationRuns(void) {
    if (likely(!slotMigrations.active)) return NULL;
    if (slotLogNext(&slotMigrations, NULL, true)) return "import";
    return slotLogNext(&slotMigrations, NULL, false) ? "export" : NULL;
}

void slotMigrationDbEvent(const dbEvent *e) {
    if (!clusterIsEnabled()) return;
    if (e->kind == DB_LOAD_ENDED) {
        slotImportHideAll();
        return;
    }
    if (e->kind == DB_LOAD_BEGINS && !listIsEmpty(&slotMigrations.jobs)) {
        logNotice("Cleaning slot migration log in anticipation of a load operation.");
        slotExportFailAll("Full resynchronization occurred");
        slotImportForget();
        slotLogClear(&slotMigrations);
    }
    if (e->kind != DB_FLUSHING || !slotMigrations.active) return;
    slotExportFailAll("Data was flushed");
    slotImportFailAll("Data was flushed");
}

void slotMigrationSessionEvent(session *s, sessionEvent e) {
    if (e != SESSION_ENDING || likely(!clusterIsEnabled()) || !slotMigrations.active) return;
    slotExportLost(s);
    slotImportLost(s);
}

void slotMigrationAfterLoad(void) { slotImportAfterLoad(); }

size_t slotMigrationMemory(bool exports) {
    return exports ? slotExportMemory() : slotImportMemory();
}

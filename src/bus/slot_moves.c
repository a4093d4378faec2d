/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that the source and the target of slot migrations share (slot_moves.h): they find the
 * other node of a job, write text for the log, change the state of a job, and end it.
 *
 * Invariant: two active jobs never have a slot in common. It is checked when a job is begun by a
 * command (slotLogOverlapping()); a replica takes the jobs of its primary as they are. */
#include "bus/slot_moves.h"

#include <stdio.h>

#include "base/base.h"
#include "bus/slot_source.h"
#include "bus/slot_target.h"

void slotMovesInit(slotMoves *m, clusterMap *map, const slotMovesProcs *procs, void *arg) {
    check(map);
    check(procs);
    *m = (slotMoves){.map = map, .procs = procs, .arg = arg};
    slotLogInit(&m->log);
}

clusterNode *slotMovesPeer(const slotMoves *m, const slotJob *job) {
    if (!job->has_nodes) return NULL;
    return clusterMapFind(m->map,
                          sliceMake(job->is_import ? job->source : job->target, NODE_ID_LEN));
}

int64_t slotMovesLease(const slotMoves *m) {
    int64_t ms = m->rules.node_timeout_ms / 2;
    if (ms < SLOT_LEASE_MIN_MS) return SLOT_LEASE_MIN_MS;
    return ms < SLOT_LEASE_MS ? ms : SLOT_LEASE_MS;
}

slotJobLabel slotJobLabelOf(const slotMoves *m, const slotJob *job) {
    slotJobLabel label;
    str text = STR_EMPTY;
    strAppendFormat(&text, "{name: %.40s, operation: %s, ", job->name,
                    job->is_import ? "import" : "export");
    const char *peer = job->is_import ? job->source : job->target;
    const char *role = job->is_import ? "source" : "target";
    if (job->has_nodes) {
        strAppendFormat(&text, "%s_node_id: %.40s, ", role, peer);
        const clusterNode *n = slotMovesPeer(m, job);
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

void slotMovesSet(slotMoves *m, slotJob *job, slotJobState state) {
    hotCheck(slotJobIsActive(job));
    if (job->state == state) return;
    logNotice("Slot migration %s state transition: %s -> %s", slotJobLabelOf(m, job).text,
              slotJobStateName(job->state), slotJobStateName(state));
    slotLogSetState(&m->log, job, state, m->now_s);
}

void slotMovesEnd(slotMoves *m, slotJob *job, slotJobState state, const char *message) {
    check(slotJobIsActive(job));
    check(state >= JOB_SUCCESS);
    if (message && !job->message.len) strAppendText(&job->message, message);
    slotMovesSet(m, job, state);
    logAt(state == JOB_FAILED ? LOG_WARNING : LOG_NOTICE,
          "Slot migration %s finished. State: %s, Message: %s", slotJobLabelOf(m, job).text,
          slotJobStateName(state), strText(&job->message));
    m->procs->ended(m->arg, job);
    check(!job->work);
}

void slotMovesStep(slotMoves *m) {
    if (likely(!m->log.active)) return;
    if (m->map->changed & CLUSTER_MAP_OWN_SLOTS) slotSourceCheckOwners(m);
    slotTargetStep(m);
    slotSourceStep(m);
    if (!m->tells) return;
    m->tells = false;
    m->procs->tellAll(m->arg);
}

void slotMovesTick(slotMoves *m) {
    if (likely(!m->log.active)) return;
    slotTargetTick(m);
    slotSourceTick(m);
}

void slotMovesFlushed(slotMoves *m) {
    slotSourceFailAll(m, "Data was flushed");
    slotTargetFailAll(m, "Data was flushed");
}

void slotMovesForget(slotMoves *m) {
    if (listIsEmpty(&m->log.jobs)) return;
    logNotice("Cleaning slot migration log in anticipation of a load operation.");
    slotSourceFailAll(m, "Full resynchronization occurred");
    slotTargetForget(m);
    check(m->log.active == 0);
    slotLogClear(&m->log);
}

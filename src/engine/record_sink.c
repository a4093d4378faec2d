/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sink for tests, only in builds with checks: records what is propagated, as the bytes of an
 * append-only file including SELECTs. The record is kept in memory and written at shutdown to the
 * file named by the variable VALKEY_RECORD_STREAM; without the variable the sink is not armed. Main
 * thread only. */
#include "engine/engine.h"

#ifdef HOT_CHECKS

#include <stdlib.h>

#include "base/base.h"
#include "engine/propagate.h"
#include "io/file.h"

static struct {
    const char *path;
    str bytes;
    int db_id; /* database selected last; -1: none yet */
} record = {.db_id = -1};

static void selectDb(int db_id) {
    propagateAppendSelect(&record.bytes, db_id);
    record.db_id = db_id;
}

static void take(const propagated *p) {
    if (p->db_id >= 0 && p->db_id != record.db_id) selectDb(p->db_id);
    for (int i = 0; i < p->span_count; i++) strAppendSlice(&record.bytes, p->spans[i]);
}

static const sink recordSink = {.name = "record", .take = take, .targets = PROPAGATE_AOF};
static const sink *const sinks[] = {&recordSink, NULL};

static status init(reason *why) {
    (void)why; /* cannot fail */
    record.path = getenv("VALKEY_RECORD_STREAM");
    if (record.path) sinkArm(&recordSink, true);
    return OK;
}

static status writeRecord(uint32_t flags, reason *why) {
    (void)flags; /* every kind of shutdown writes the record */
    if (!record.path) return OK;
    return fileReplace(record.path, strSlice(&record.bytes), 0644, why);
}

const feature recordFeature = {
    .name = "record", .sinks = sinks, .init = init, .on_shutdown = writeRecord};

#endif

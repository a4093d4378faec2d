/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The offset up to which the stream is on this server's disk (durable_offset.h).
 *
 * Invariant: the marks ascend. durableOffset() removes those that the disk has reached. */
#include "repl/durable_offset.h"

#include <string.h>

#include "base/base.h"
#include "persist/sync_load.h"
#include "repl/server_state.h"

/* All changes before `offset` are on disk as soon as change `number` of the append only file is. */
typedef struct durableMark {
    int64_t offset;
    uint64_t number;
} durableMark;

/* Marks not yet reached, oldest first. */
static struct {
    durableMark marks[32];
    int count;
    int64_t offset; /* on disk */
} durable;

static void dropMarks(int count) {
    hotCheck(count >= 0);
    hotCheck(count <= durable.count);
    durable.count -= count;
    memmove(durable.marks, durable.marks + count, (size_t)durable.count * sizeof(durableMark));
}

void durableOffsetForget(void) {
    durable.count = 0;
    durable.offset = 0;
}

int64_t durableOffset(void) {
    hotCheck(threadIsMain());
    if (!persistAofIsOn()) {
        durableOffsetForget();
        return -1;
    }
    uint64_t synced = persistAofSynced();
    if (synced >= persistAofAppended()) {
        durable.count = 0;
        durable.offset = replThis()->history.offset;
    }
    int reached = 0;
    while (reached < durable.count && durable.marks[reached].number <= synced)
        durable.offset = durable.marks[reached++].offset;
    if (reached) dropMarks(reached);
    return durable.offset;
}

/* If all marks are in use, the last one moves. */
void durableOffsetMark(void) {
    hotCheck(durable.count <= (int)COUNT_OF(durable.marks));
    if (durableOffset() < 0) return;
    int64_t offset = replThis()->history.offset;
    if (offset == durable.offset) return;
    if (durable.count == (int)COUNT_OF(durable.marks)) durable.count--;
    durable.marks[durable.count++] = (durableMark){offset, persistAofAppended()};
}

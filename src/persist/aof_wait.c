/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What waits for a slow disk (aof_wait.h). Invariant: writers are paused if and only if
 * wait.writers is set. Output is held by a layer above, which registers its functions. */
#include "persist/aof_wait.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/pause.h"
#include "persist/sync.h"

enum {
    PAUSE_MS = 24 * 3600 * 1000, /* until it is ended */
    LOG_PERIOD_MS = 30000,
};

static struct {
    const syncHold *hold; /* NULL: output is not held */
    bool output, writers;
    int64_t writers_ms;                         /* since when */
    int64_t stall_logged_ms, writers_logged_ms; /* 0: never */
    bool stall_is_logged;
} wait;

void syncSetHold(const syncHold *functions) { wait.hold = functions; }

void aofWaitHoldOutput(bool on, uint64_t safe) {
    hotCheck(threadIsMain());
    if (!wait.hold) return;
    if (on && wait.output) {
        wait.hold->confirm(safe);
    } else if (on) {
        wait.output = true;
        wait.hold->begin(safe);
    } else if (wait.output) {
        wait.output = false;
        wait.hold->end();
    }
}

void aofWaitFlushBegins(void) {
    if (wait.hold) wait.hold->flush_begins();
}

void aofWaitFlushed(void) {
    if (wait.hold) wait.hold->flushed();
}

int64_t aofWaitWritersMs(int64_t now_ms) { return wait.writers ? now_ms - wait.writers_ms : 0; }

bool aofWaitIsStrict(void) { return wait.hold && wait.hold->is_strict(); }

bool aofWaitHoldWriters(bool on, size_t bytes, int64_t ms) {
    hotCheck(threadIsMain());
    if (on == wait.writers) return false;
    if (!on) {
        latencyNote("aof-writers-wait", aofWaitWritersMs(clockMonoMs()));
        wait.writers = false;
        pauseEnd(PAUSE_FOR_AOF);
        return false;
    }
    wait.writers = true;
    int64_t now_ms = wait.writers_ms = clockMonoMs();
    pauseBegin(PAUSE_FOR_AOF, PAUSE_WRITES, engineHot.now_ms + PAUSE_MS);
    if (!logIsDue(&wait.writers_logged_ms, now_ms, LOG_PERIOD_MS)) return true;
    logWarning(
        "Asynchronous AOF fsync is taking too long (disk is busy?). Writes wait until the disk "
        "accepts data again: %zu bytes of changes, up to %lld ms old, are not written.",
        bytes, (long long)ms);
    return true;
}

void aofWaitNoteStall(bool begins) {
    if (begins) {
        wait.stall_is_logged = logIsDue(&wait.stall_logged_ms, clockMonoMs(), LOG_PERIOD_MS);
        if (wait.stall_is_logged)
            logNotice(
                "The disk holds up writes to the AOF file: until it keeps up again replies do "
                "not wait for them, and changes of up to three seconds are lost if this "
                "process is killed.");
    } else if (wait.stall_is_logged) {
        logNotice("The disk keeps up with the AOF file again.");
    }
}

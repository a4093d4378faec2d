/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --follow (follow.h). Invariant: the stream continues at the offset of the last byte that is
 * surely in the target, or a new chain begins. A new full copy of --full-every is made by another
 * thread with connections of its own, while the old chain goes on until it has the offset at which
 * the new one begins: so no time is without a mark. */
#include "tools/backup/follow.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "io/file.h"
#include "tools/backup/retention.h"
#include "tools/backup/segment.h"
#include "tools/cli/interrupt.h"

enum { TICK_MS = 1000, RETRY_MS = 1000 };

typedef struct follower follower;

/* The full copy that is being made beside the stream. */
typedef struct nextCopy {
    bool runs;
    pthread_t thread;
    _Atomic bool done;
    const backupJob *job;
    backupSource source;
    copyResult result;
    status st;
    reason why;
} nextCopy;

struct follower {
    const backupJob *job;
    backupSource source;
    bool has_segment;
    segmentWriter segment;
    str chain;                               /* its folder */
    int64_t full_ms, full_every_ms, keep_ms; /* 0: not asked for */
    nextCopy next;
    /* The clock of the server, and what is on disk. */
    backupMark asked; /* the last one */
    int64_t asked_mono_ms, durable_ms, shown_lag_s;
    bool is_up, is_warned, has_no_metrics;
};

/* ------------------------------------------------------------------ lag */

/* Seconds between now and the last time that can be restored, by the clock of the server. */
static double lagSeconds(const follower *f) {
    if (!f->durable_ms) return 0;
    int64_t now_ms = f->asked.time_ms + clockMonoMs() - f->asked_mono_ms;
    return now_ms > f->durable_ms ? (double)(now_ms - f->durable_ms) / 1000 : 0;
}

static void metricsPath(const follower *f, str *out) {
    const char *path = f->job->options->backup.metrics, *ending = strrchr(path, '.');
    size_t len = ending && !strchr(ending, '/') ? (size_t)(ending - path) : strlen(path);
    strAppend(out, path, len);
    if (*f->job->shard) strAppendFormat(out, "-%s", f->job->shard);
    strAppendText(out, path + len);
}

static void appendMetric(const follower *f, str *out, const char *name, const char *help,
                         double value) {
    strAppendFormat(out, "# HELP valkey_backup_%s %s\n# TYPE valkey_backup_%s gauge\n", name, help,
                    name);
    strAppendFormat(out, "valkey_backup_%s{shard=\"%s\"} %.3f\n", name, f->job->shard, value);
}

static void writeMetrics(follower *f) {
    if (!f->job->options->backup.metrics) return;
    str path = STR_EMPTY, text = STR_EMPTY;
    fileFailure failure;
    metricsPath(f, &path);
    appendMetric(f, &text, "up", "1 if the stream of the server is received.", f->is_up);
    appendMetric(f, &text, "lag_seconds", "Time since the last state that can be restored.",
                 lagSeconds(f));
    appendMetric(f, &text, "last_time_seconds", "Last time that can be restored.",
                 (double)f->durable_ms / 1000);
    appendMetric(f, &text, "full_time_seconds", "Time of the last full copy.",
                 (double)f->full_ms / 1000);
    bool wrong = fileReplaceAs(path.ptr, strSlice(&text), 0644, FILE_FLUSH_NONE, &failure) != OK;
    if (wrong && !f->has_no_metrics)
        backupSay(f->job, "cannot write %s: %s", path.ptr, strerror(failure.error));
    f->has_no_metrics = wrong;
    strFree(&path);
    strFree(&text);
}

/* The name of the control connection tells the lag in CLIENT LIST. */
static void showLag(follower *f) {
    int64_t lag_s = (int64_t)lagSeconds(f);
    reason ignored; /* a name is no reason to stop */
    if (lag_s == f->shown_lag_s) return;
    if (sourceCommand(&f->source, NULL, &ignored, "CLIENT SETNAME valkey-backup:lag=%llds",
                      (long long)lag_s) == OK)
        f->shown_lag_s = lag_s;
}

/* ------------------------------------------------------------------ chains */

/* `mark`: the first one, of the full copy; NULL: the chain is continued. */
static status openChain(follower *f, const char *folder, int64_t full_ms, int64_t first,
                        const backupMark *mark, reason *why) {
    if (f->chain.ptr != folder) {
        strClear(&f->chain);
        strAppendText(&f->chain, folder);
    }
    f->full_ms = full_ms;
    status st = segmentOpen(&f->segment, folder, f->source.repl_id, first, why);
    f->has_segment = st == OK;
    if (st == OK && mark) segmentMark(&f->segment, *mark);
    return st == OK ? sourceAcknowledge(&f->source, why) : st;
}

static void sayFull(const follower *f, const copyResult *copy) {
    backupSay(f->job, "full copy of %s at offset %" PRId64 ": %" PRIu64 " bytes",
              strText(&copy->full.source), copy->full.offset, copy->full.part.bytes);
}

static status beginFull(follower *f, bool begun, reason *why) {
    copyResult copy;
    int exit_code;
    status st = begun ? copyReceive(f->job, &f->source, &copy, &exit_code, why)
                      : copyMake(f->job, &f->source, true, &copy, &exit_code, why);
    if (st != OK) return st;
    sayFull(f, &copy);
    st = openChain(f, copy.folder.ptr, copy.full.time_ms, copy.full.offset, &copy.begin, why);
    copyResultClear(&copy);
    return st;
}

/* Finds the chain to be continued. False: there is none. */
static status findChain(follower *f, backupCatalog *catalog, const backupChain **out, reason *why) {
    status st = catalogLoad(f->job->target, catalog, why);
    *out = NULL;
    if (st != OK || !catalog->count) return st;
    backupChain *last = &catalog->chains[catalog->count - 1];
    st = copyUpload(f->job, strText(&last->folder), &last->full, false, why);
    if (st == OK) st = segmentsRecover(last, f->job, why);
    *out = last;
    return st;
}

static status begin(follower *f, reason *why) {
    backupCatalog catalog;
    const backupChain *chain;
    bool continues = false;
    status st = retentionRemoveIncomplete(f->job, why);
    if (st != OK) return st;
    st = findChain(f, &catalog, &chain, why);
    if (st == OK) st = sourceConnect(&f->source, f->job->options->backup.this_server, why);
    bool begun = st == OK && chain;
    if (begun) {
        const char *id = chain->full.repl_id;
        for (int i = 0; i < chain->count && chain->segments[i].last <= chainEnd(chain); i++)
            id = chain->segments[i].repl_id;
        st = sourceBegin(&f->source, id, chainEnd(chain), true, &continues, why);
    }
    if (st == OK && continues) {
        backupSay(f->job, "continues at offset %" PRId64 " from %s:%d", f->source.offset,
                  strText(&f->source.at.host), f->source.at.port);
        st =
            openChain(f, strText(&chain->folder), chain->full.time_ms, f->source.offset, NULL, why);
    } else if (st == OK) {
        if (begun) backupSay(f->job, "the server cannot continue there: a new full copy begins");
        st = beginFull(f, begun, why);
    }
    catalogClear(&catalog);
    return st;
}

/* ------------------------------------------------------------------ --full-every */

static void *makeNextCopy(void *arg) {
    nextCopy *n = arg;
    int exit_code;
    n->st = sourceConnect(&n->source, n->job->options->backup.this_server, &n->why);
    if (n->st == OK) n->st = copyMake(n->job, &n->source, true, &n->result, &exit_code, &n->why);
    n->done = true;
    return NULL;
}

static void startNextCopy(follower *f) {
    nextCopy *n = &f->next;
    const sourceAddress *at = &f->source.at;
    n->job = f->job;
    n->done = false;
    n->result = (copyResult){0};
    sourceInit(&n->source, f->job->options, strText(&at->host), at->port);
    n->runs = pthread_create(&n->thread, NULL, makeNextCopy, n) == 0;
    if (!n->runs) sourceClear(&n->source);
}

static void endNextCopy(follower *f) {
    if (!f->next.runs) return;
    check(pthread_join(f->next.thread, NULL) == 0);
    f->next.runs = false;
    copyResultClear(&f->next.result);
    sourceClear(&f->next.source);
}

/* Goes on with the new chain as soon as the old one has the stream up to its begin. */
static status takeNextCopy(follower *f, reason *why) {
    nextCopy *n = &f->next;
    if (!n->done) return OK;
    if (n->st != OK) {
        backupSay(f->job, "the full copy failed: %s", n->why.text);
        f->full_ms += TICK_MS * 60; /* tries again in a minute */
        endNextCopy(f);
        return OK;
    }
    bool same = !strcmp(n->source.repl_id, f->source.repl_id);
    if (same && f->segment.segment.last < n->result.full.offset) return OK;
    check(pthread_join(n->thread, NULL) == 0);
    n->runs = f->has_segment = false;
    sayFull(f, &n->result);
    status st = segmentEnd(&f->segment, f->job, why);
    sourceClear(&f->source);
    f->source = n->source;
    if (st == OK)
        st = openChain(f, n->result.folder.ptr, n->result.full.time_ms, n->result.full.offset,
                       &n->result.begin, why);
    copyResultClear(&n->result);
    return st;
}

static status keepFull(follower *f, reason *why) {
    if (!f->full_every_ms) return OK;
    if (f->next.runs) return takeNextCopy(f, why);
    if (f->asked.time_ms - f->full_ms >= f->full_every_ms) startNextCopy(f);
    return OK;
}

/* ------------------------------------------------------------------ each second */

static status askMark(follower *f, reason *why) {
    backupMark mark;
    status st = sourceMark(&f->source, &mark, why);
    if (st == ERR_AGAIN) return OK; /* a replica without its primary: its data are not of now */
    if (st != OK) return st;
    int64_t mono_ms = clockMonoMs();
    int64_t step_ms = marksClockStep(f->asked, f->asked_mono_ms, mark, mono_ms);
    if (f->asked_mono_ms && step_ms)
        backupSay(f->job, "the server's clock was set %s by %.1f s at offset %" PRId64,
                  step_ms > 0 ? "forward" : "back", (double)llabs(step_ms) / 1000, mark.offset);
    f->asked = mark;
    f->asked_mono_ms = mono_ms;
    segmentMark(&f->segment, mark);
    return OK;
}

static status syncSegment(follower *f, reason *why) {
    const backupMarks *marks = &f->segment.segment.marks;
    status st = segmentSync(&f->segment, why);
    if (st == OK && marks->count) f->durable_ms = marks->list[marks->count - 1].time_ms;
    return st;
}

static status rotate(follower *f, reason *why) {
    const backupOptions *o = &f->job->options->backup;
    const backupSegment *now = &f->segment.segment;
    int64_t bytes = now->last - now->first, age_ms = clockMonoMs() - f->segment.opened_ms;
    if (bytes < o->segment_bytes && (!bytes || age_ms < o->segment_seconds * 1000)) return OK;
    int64_t last = now->last;
    f->has_segment = false;
    status st = segmentEnd(&f->segment, f->job, why);
    if (st == OK) st = segmentOpen(&f->segment, strText(&f->chain), f->source.repl_id, last, why);
    f->has_segment = st == OK;
    if (st == OK) st = sourceRefresh(&f->source, why);
    if (st == OK && f->keep_ms) st = retentionApply(f->job, f->asked.time_ms - f->keep_ms, why);
    return st;
}

static status tick(follower *f, reason *why) {
    status st = sourceAcknowledge(&f->source, why);
    if (st == OK) st = askMark(f, why);
    if (st == OK) st = syncSegment(f, why);
    if (st == OK) st = rotate(f, why);
    if (st == OK) st = keepFull(f, why);
    if (st == OK) showLag(f);
    writeMetrics(f);
    return st;
}

/* Receives until something fails or the program is interrupted. */
static status receive(follower *f, reason *why) {
    int64_t next_ms = clockMonoMs();
    status st = OK;
    while (st == OK && !interruptPending()) {
        const char *bytes;
        size_t len;
        int64_t rest_ms = next_ms - clockMonoMs();
        st = sourceRead(&f->source, rest_ms > 0 ? (int)rest_ms : 0, &bytes, &len, why);
        if (st == OK && len) st = segmentAdd(&f->segment, bytes, len, why);
        if (st != OK || clockMonoMs() < next_ms) continue;
        st = tick(f, why);
        next_ms += TICK_MS;
        if (next_ms < clockMonoMs()) next_ms = clockMonoMs();
    }
    return st;
}

/* ------------------------------------------------------------------ failures */

static void warn(follower *f) {
    if (f->source.knows_backups || f->is_warned) return;
    f->is_warned = true;
    backupSay(f->job,
              "this server counts the backup as a replica: for min-replicas-to-write and in "
              "connected_slaves, but never for WAIT, as it acknowledges offset 0");
}

static status follow(follower *f, reason *why) {
    status st = begin(f, why);
    if (st != OK) return st;
    f->is_up = true;
    f->shown_lag_s = -1;
    warn(f);
    st = receive(f, why);
    f->is_up = false;
    return st;
}

/* Completes the segment if that is possible now; else it is recovered later. */
static status leave(follower *f, reason *why) {
    status st = OK;
    endNextCopy(f);
    if (f->has_segment) st = segmentEnd(&f->segment, f->job, why);
    f->has_segment = false;
    sourceDisconnect(&f->source);
    return st;
}

static void waitToRetry(follower *f) {
    int64_t end_ms = clockMonoMs() + RETRY_MS;
    while (!interruptPending() && clockMonoMs() < end_ms) clockSleepUs(50 * 1000);
    writeMetrics(f);
}

int followRun(const backupJob *job, const char *host, int port) {
    const backupOptions *o = &job->options->backup;
    follower f = {.job = job};
    int64_t seconds;
    reason why, last = {""};
    if (o->full_every && durationParse(o->full_every, &seconds)) f.full_every_ms = seconds * 1000;
    if (o->keep && durationParse(o->keep, &seconds)) f.keep_ms = seconds * 1000;
    sourceInit(&f.source, job->options, host, port);
    status st = OK;
    while (!interruptPending()) {
        st = follow(&f, &why);
        if (st != OK && !interruptPending() && strcmp(why.text, last.text) != 0)
            backupSay(job, "%s; tries again", why.text);
        last = st == OK ? (reason){""} : why;
        st = leave(&f, &why);
        if (st != OK && !interruptPending() && strcmp(why.text, last.text) != 0) {
            backupSay(job, "%s; tries again", why.text);
            last = why;
        }
        if (!interruptPending()) waitToRetry(&f);
    }
    if (st != OK) backupSay(job, "%s", why.text);
    writeMetrics(&f);
    sourceClear(&f.source);
    strFree(&f.chain);
    return st == OK ? BACKUP_DONE : BACKUP_TARGET;
}

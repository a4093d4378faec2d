/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs: commands that visit many elements, in slices, so that they stall nobody.
 *
 * A command that finds it has much to read calls jobStart(). It is called again from its start on a
 * stack of its own (base/fiber.h), where it is suspended in its loops, at jobPoint(), whenever its
 * slice is over. Its client waits as a blocked one; in each turn of the loop all jobs together get
 * command-slice-us, one after the other. The reply is that of the moment at which the command
 * began: clients that want to write to its keys wait until its end (jobGate), at most JOB_WAIT_MS,
 * and whatever else changes them first runs the job to its end.
 *
 * A command that runs as a job finds all its keys before its first jobPoint(), looks nothing up
 * after it, and changes nothing.
 *
 * Commands that store a result (SUNIONSTORE) call jobStartStore(), compute a value that nobody
 * sees, and call jobMayStore() before they look up and change their destination. That returns at
 * the moment of the effect: between two commands, when no pause holds writes. What the job has read
 * is then as it was when the job began; if something has changed it that cannot wait, the result is
 * dropped and the command runs in one piece at that moment.
 *
 * Commands that change their keys in place (SREM) call jobStartChange(). While such a job runs,
 * requests of clients that read or write its keys wait, and whatever cannot wait first runs the job
 * to its end: jobEndChanges(). So nobody sees a key that is changed in part. Its effects (events,
 * propagation, reply) are those of the end. Main thread only. */
#ifndef ENGINE_JOB_H
#define ENGINE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "engine/hooks.h"

enum {
    JOBS_MAX = 1024,   /* at a time; further commands run in one piece */
    JOB_WAIT_MS = 100, /* after that long, the job that a write waits for runs to its end */
};

bool jobBegin(ctx *c, uint64_t elements);
/* To be called by a command after it has looked up its keys, before it has replied anything. True:
 * it is or becomes a job, and returns at once. False: it goes on, as a job or in one piece.
 * `elements`: how many it is going to visit, about. */
static inline bool jobStart(ctx *c, uint64_t elements) {
    return unlikely(elements >= engineHot.job_from) && jobBegin(c, elements);
}

/* The same for a command that calls jobMayStore(). */
bool jobBeginStore(ctx *c, uint64_t elements);
static inline bool jobStartStore(ctx *c, uint64_t elements) {
    return unlikely(elements >= engineHot.job_from) && jobBeginStore(c, elements);
}

/* The same for a command that changes its keys in place; to be called before it looks them up. It
 * finds them anew after each jobSuspend(). Its first half may be done when the client is gone: it
 * is always run to its end. */
bool jobBeginChange(ctx *c, uint64_t elements, bool has_looked);
static inline bool jobStartChange(ctx *c, uint64_t elements) {
    return unlikely(elements >= engineHot.job_from) && jobBeginChange(c, elements, false);
}
/* The same for a command that knows only after it has looked up its keys, before any change, how
 * much there is to do. */
static inline bool jobStartChangeFound(ctx *c, uint64_t elements) {
    return unlikely(elements >= engineHot.job_from) && jobBeginChange(c, elements, true);
}

/* To be called in the loops of such a command, with the elements since the last call. True: the
 * slice is over, and it has to call jobSuspend(), when its value is stored or held by nobody. */
bool jobSliceIsOver(unsigned elements);
static inline bool jobIsDue(const ctx *c, unsigned elements) {
    return unlikely(c->flags & CTX_SLICED) && jobSliceIsOver(elements);
}
/* Returns in another slice. False: the command has to return, without a look at its keys. */
bool jobSuspend(void);

/* Runs such jobs to their ends: what follows is about to look at all keys, or at a key with this
 * hash, and cannot wait. To be called before that looks anything up. True: there were some; what
 * they have changed is propagated already, or within the command that has called this. */
bool jobEndChanges(void);
void jobEndChangesOf(const db *d, uint64_t hash);

/* True: the command stores its result now; it is not suspended any more. False: nobody wants the
 * result; the command frees it and returns without a reply. */
bool jobAwaitEffect(void);
static inline bool jobMayStore(const ctx *c) {
    return likely(!(c->flags & CTX_SLICED)) || jobAwaitEffect();
}

bool jobPause(unsigned elements);
/* To be called in loops, at least every 20 us; `elements`: so many were visited since the last
 * call. In a job it may return in another slice. True: nobody wants the reply any more, and the
 * loops are to be left. Code without a ctx calls fiberPoint(). */
static inline bool jobPoint(const ctx *c, unsigned elements) {
    return unlikely(c->flags & CTX_SLICED) && jobPause(elements);
}

/* How many of `left` elements are visited before the next jobPoint(): all outside of a job. For
 * loops in which a test for each element would cost too much. */
static inline size_t jobPart(const ctx *c, size_t left) {
#ifdef HOT_CHECKS
    enum { PART = 1 };
#else
    enum { PART = 64 };
#endif
    return unlikely(c->flags & CTX_SLICED) && left > PART ? PART : left;
}

/* From now on the command is not suspended any more: it looks something up, or changes it. False:
 * it must not change anything, as the store is about to change. */
bool jobGoOn(const ctx *c);
/* True if a session waits for a job. */
bool jobIsOf(const session *s);
typedef struct jobProgress jobProgress; /* defined in session_report.h */
/* How far the job of a session is. False: it has none. */
bool jobProgressOf(const session *s, jobProgress *out);
/* True if that job stores a result, or changes keys, and has not done so yet. */
bool jobStores(const session *s);
/* True if that job changes keys in place: it is run to its end whatever becomes of the session. */
bool jobIsChange(const session *s);
/* While paused, jobs stay where they are after their first slice, a short one. For tests. */
void jobSetPaused(bool paused);
/* Fields of INFO stats. */
void jobPrintStats(str *out);
void jobResetStats(void);
/* Applies command-slice-us. */
status jobApply(reason *why);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detection of slow and large commands (measure.h). Invariant: the limits are the lowest of all
 * consumers, so commands below them concern none. If the time limit is short, a command observer
 * without callbacks keeps all commands on the slow path, where each is timed separately; otherwise
 * a run of identical quick commands is judged by its mean. */
#include "engine/measure.h"

#include "base/base.h"
#include "engine/commandlog_priv.h"
#include "engine/engine_priv.h"
#include "engine/hooks.h"
#include "engine/execute_priv.h"
#include "engine/job.h"
#include "engine/latency.h"
#include "engine/session_report.h"
#include "store/store.h"

/* Below this limit the mean of a run would be too inaccurate. */
enum { EACH_BELOW_US = 1000 };

/* An observer without callbacks; arming it forces per-command timing. */
static const commandObserver stopwatch = {.name = "stopwatch"};

static uint64_t ticksOf(int64_t us) {
    hotCheck(us >= 0);
    int64_t ns_per_million = clockTicksToNs(1000000);
    double ticks = (double)us * 1e9 / (double)(ns_per_million > 0 ? ns_per_million : 1000000);
    return ticks >= 1.8e19 ? UINT64_MAX : (uint64_t)ticks;
}

static int64_t limitOf(commandlogKind kind) {
    int64_t limit = commandlogLimit(kind);
    return limit < 0 ? INT64_MAX : limit - 1;
}

status measureApply(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    int64_t slow_us = commandlogLimit(COMMANDLOG_SLOW);
    int64_t shortest_us = slow_us < 0 ? INT64_MAX : slow_us;
    int64_t spike_ms = engineConf.latency_monitor_threshold;
    if (spike_ms && spike_ms < shortest_us / 1000) shortest_us = spike_ms * 1000;
    measureLimits limits = {
        .ticks = shortest_us == INT64_MAX ? UINT64_MAX : ticksOf(shortest_us),
        .request_bytes = limitOf(COMMANDLOG_LARGE_REQUEST),
        .reply_bytes = limitOf(COMMANDLOG_LARGE_REPLY),
    };
    executeSetLimits(&limits);
    storeTimeRemovals(spike_ms != 0);
    commandObserverArm(&stopwatch, shortest_us < EACH_BELOW_US);
    return OK;
}

int64_t measureRequestBytes(const ctx *c) {
    hotCheck(c->argc > 0);
    const request *r = c->request;
    if (r && r->raw.len) {
        size_t bytes = r->raw.len;
        for (int i = 0; i < r->large_count; i++) bytes += r->large[i].bytes->len;
        return (int64_t)bytes;
    }
    size_t bytes = 1;
    for (int i = 0; i < c->argc; i++) bytes += c->argv[i].len + 1;
    return (int64_t)bytes;
}

/* A command that waits now is noted when it is replied. */
static bool waits(const ctx *c) { return c->flags & CTX_NOT_RUN && c->who->blocked; }

void measureNote(ctx *c, uint64_t ticks, int64_t request_bytes, int64_t reply_bytes) {
    hotCheck(threadIsMain());
    if (unlikely(waits(c)) || c->origin == ORIGIN_AOF) return;
    int64_t us = clockTicksToNs(ticks) / 1000;
    jobProgress job = {.elapsed_us = us};
    /* A job stalls others by its slices, for which there is an event of its own. */
    if (!jobProgressOf(c->who, &job) && engineConf.latency_monitor_threshold) {
        latencyNote(c->cmd->flags & CMD_FAST ? "fast-command" : "command", us / 1000);
    }
    if (c->cmd->flags & CMD_SKIP_COMMANDLOG) return;
    commandlogNote(c, COMMANDLOG_SLOW, us, job.elapsed_us);
    if (request_bytes >= 0)
        commandlogNote(c, COMMANDLOG_LARGE_REQUEST, request_bytes, job.elapsed_us);
    if (reply_bytes >= 0) commandlogNote(c, COMMANDLOG_LARGE_REPLY, reply_bytes, job.elapsed_us);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor (latency.h). Invariant: an event is in the table from its first sample until
 * it is reset, so it has at least one sample. */
#include "engine/latency.h"

#include "base/base.h"
#include "engine/engine_priv.h"

static struct {
    latencyEvent **events;
    int count, cap;
} monitor;

int64_t latencyThreshold(void) { return engineConf.latency_monitor_threshold; }

static latencyEvent *find(slice name) {
    for (int i = 0; i < monitor.count; i++) {
        if (sliceEqual(name, sliceOf(monitor.events[i]->name))) return monitor.events[i];
    }
    return NULL;
}

const latencyEvent *latencyFind(slice name) { return find(name); }

int latencyEventCount(void) { return monitor.count; }

const latencyEvent *latencyEventAt(int index) {
    check(index >= 0);
    check(index < monitor.count);
    return monitor.events[index];
}

static latencyEvent *eventNamed(const char *name) {
    hotCheck(monitor.count <= monitor.cap);
    latencyEvent *e = find(sliceOf(name));
    if (e) return e;
    if (monitor.count == monitor.cap) {
        monitor.cap = monitor.cap ? 2 * monitor.cap : 16;
        monitor.events = memRealloc(monitor.events, (size_t)monitor.cap * sizeof(latencyEvent *));
    }
    e = memNew(latencyEvent);
    e->name = name;
    monitor.events[monitor.count++] = e;
    return e;
}

void latencyNote(const char *name, int64_t ms) {
    hotCheck(threadIsMain());
    if (!latencyThreshold() || ms < latencyThreshold()) return;
    latencyEvent *e = eventNamed(name);
    int64_t now_s = clockWallMs() / 1000;
    if (ms > e->max_ms) e->max_ms = ms;
    e->sum_ms += ms;
    e->count++;
    int last = (e->next + LATENCY_SAMPLES_MAX - 1) % LATENCY_SAMPLES_MAX;
    if (e->samples[last].time_s == now_s) {
        if (ms > e->samples[last].ms) e->samples[last].ms = ms;
        return;
    }
    e->samples[e->next] = (latencySample){now_s, ms};
    e->next = (e->next + 1) % LATENCY_SAMPLES_MAX;
}

int latencyReset(slice name) {
    int gone = 0, kept = 0;
    for (int i = 0; i < monitor.count; i++) {
        latencyEvent *e = monitor.events[i];
        if (name.ptr && !sliceEqual(name, sliceOf(e->name))) {
            monitor.events[kept++] = e;
        } else {
            memFree(e);
            gone++;
        }
    }
    monitor.count = kept;
    return gone;
}

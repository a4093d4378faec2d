/* SPDX-License-Identifier: BSD-3-Clause
 *
 * activedefrag: compaction of the keyspace's memory beyond the little that is always done (storeTidy()). It begins
 * when what could be won is worth it, and takes a share of the time that grows with the waste.
 * Main thread only. */
#include "base/base.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/latency.h"
#include "store/store.h"

static struct {
    int running; /* percent of the time; 0: idle */
    storeDefragReport done;
    uint64_t us; /* spent while running */
} defrag;

/* The share of the time for a waste of so many percent: from cycle-min at the lower threshold to cycle-max at the
 * upper one. */
static int shareFor(double waste_percent) {
    double low = engineConf.active_defrag_threshold_lower;
    double high = engineConf.active_defrag_threshold_upper;
    int least = engineConf.active_defrag_cycle_min, most = engineConf.active_defrag_cycle_max;
    if (waste_percent >= high || high <= low || most <= least) return most;
    return least + (int)((most - least) * (waste_percent - low) / (high - low));
}

static int chooseShare(void) {
    storeWaste waste;
    storeGetWaste(&waste);
    if (waste.recoverable < (size_t)engineConf.active_defrag_ignore_bytes || !waste.live) return 0;
    double percent = 100.0 * (double)waste.recoverable / (double)waste.live;
    return percent < engineConf.active_defrag_threshold_lower ? 0 : shareFor(percent);
}

static void defragTick(int64_t budget_us) {
    enum { TICKS_SHARE = 25 }; /* percent of the time that all jobs may take: of `budget_us` */
    if (!engineConf.activedefrag) {
        defrag.running = 0;
        return;
    }
    if (!defrag.running) defrag.running = chooseShare();
    if (!defrag.running) return;
    int64_t began_us = clockMonoUs();
    bool more = storeDefrag(budget_us * defrag.running / TICKS_SHARE, &defrag.done);
    int64_t took_us = clockMonoUs() - began_us;
    defrag.us += (uint64_t)took_us;
    latencyNote("active-defrag-cycle", took_us / 1000);
    if (!more) defrag.running = 0;
}

static void printMemory(str *out) {
    strAppendFormat(out, "active_defrag_running:%d\r\n", defrag.running);
}

static void printStats(str *out) {
    strAppendFormat(
        out,
        "active_defrag_hits:%llu\r\nactive_defrag_misses:%llu\r\nactive_defrag_key_hits:%llu\r\n"
        "active_defrag_key_misses:%llu\r\ntotal_active_defrag_time:%llu\r\n",
        (unsigned long long)defrag.done.moved, (unsigned long long)defrag.done.refused,
        (unsigned long long)defrag.done.moved, (unsigned long long)defrag.done.refused,
        (unsigned long long)defrag.us / 1000);
    strAppendText(out, "current_active_defrag_time:0\r\n"); /* a turn never lasts across commands */
}

static void resetStats(void) {
    defrag.done = (storeDefragReport){0};
    defrag.us = 0;
}

static const tickJob ticks[] = {{"defrag", 0, defragTick}, {0}};
static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature defragFeature = {
    .name = "defrag", .info = sections, .ticks = ticks, .on_stats_reset = resetStats};

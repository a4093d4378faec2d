/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scheduling of memory compaction; only one policy is in effect at a time. Without activedefrag
 * there is basic maintenance: 1 ms ten times per second, if 1/16 of the live memory can be
 * recovered, for slabs only. With activedefrag its directives determine when to start and how much
 * time to use; blocks of values outside the slabs are moved, too. It works in steps of
 * active-defrag-cycle-us between requests and has statistics. Main thread only. */
#include "defrag/defrag.h"

#include "base/base.h"
#include "defrag/defrag_priv.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/pace.h"
#include "engine/tick.h"
#include "store/compact.h"
#include "store/store.h"

static struct {
    int running; /* percent of CPU time; 0: idle */
    int shown;   /* the same, but not 0 between passes that follow each other */
    pace pace;
    int64_t look_us;       /* when to check fragmentation again */
    int64_t began_us;      /* start of the current pass */
    uint64_t moved_before; /* at the start of the current pass */
    storeCompactReport done;
    uint64_t us;              /* time used while running */
    defragOthersProc *others; /* NULL: none */
    bool tidies;              /* not running, but there is more to do */
} defrag;

/* The share of time for a given percentage of waste: from cycle-min at the lower threshold to
 * cycle-max at the upper one. */
static int shareFor(double waste_percent) {
    hotCheck(waste_percent >= 0);
    double low = defragConf.threshold_lower;
    double high = defragConf.threshold_upper;
    int least = defragConf.cycle_min, most = defragConf.cycle_max;
    if (waste_percent >= high || high <= low || most <= least) return most;
    return least + (int)((most - least) * (waste_percent - low) / (high - low));
}

static int chooseShare(void) {
    storeWaste waste;
    storeGetWaste(&waste);
    size_t wasted = waste.recoverable + memSparseBytes(), used = memUsed();
    if (wasted < (size_t)defragConf.ignore_bytes || !used) return 0;
    double percent = 100.0 * (double)wasted / (double)used;
    return percent < defragConf.threshold_lower ? 0 : shareFor(percent);
}

/* At the end of a pass. Fragmentation that could not be reduced should not keep the server busy:
 * the next check is the later, the longer the pass took. */
static void endWalk(int64_t now_us) {
    hotCheck(now_us >= defrag.began_us);
    enum { REST_SHARE = 10, REST_MIN_US = 1000000 };
    int64_t rest_us = (now_us - defrag.began_us) * REST_SHARE;
    bool won = defrag.done.moved > defrag.moved_before;
    defrag.look_us = won ? now_us : now_us + (rest_us > REST_MIN_US ? rest_us : REST_MIN_US);
    defrag.running = 0;
    if (!won) defrag.shown = 0;
}

void defragSetOthers(defragOthersProc *proc) { defrag.others = proc; }

static void step(int64_t began_us) {
    hotCheck(began_us > 0);
    storeCompaction plan = {.budget_us = defragConf.cycle_us,
                            .fields_max = (size_t)defragConf.max_scan_fields,
                            .heap = true};
    bool more = storeCompact(&plan, &defrag.done);
    int64_t now_us = clockMonoUs(), took_us = now_us - began_us;
    defrag.us += (uint64_t)took_us;
    paceTook(&defrag.pace, began_us, now_us, defrag.running);
    latencyNote("active-defrag-cycle", took_us / 1000);
    if (more) return;
    if (defrag.others) defrag.others(&defrag.done.moved, &defrag.done.kept);
    endWalk(now_us);
}

/* A child shares our pages: nothing is moved while it exists. */
static bool mayRun(void) {
    return unlikely(defrag.running) && !ticksArePaused() && childAlive() == CHILD_NONE;
}

static void between(void) {
    if (engineHot.current) return; /* a nested turn, within a command */
    if (!mayRun()) return;
    int64_t now_us = clockMonoUs();
    if (now_us >= defrag.pace.next_us) step(now_us);
}

int64_t defragNextMs(void) {
    if (!mayRun()) return -1;
    return paceLeftMs(&defrag.pace);
}

static void defragTick(int64_t budget_us) {
    enum { LOOK_US = 100000, CARE_US = 1000 };
    int64_t now_us = clockMonoUs();
    if (!defragConf.active) {
        defrag.running = defrag.shown = 0;
        if (now_us < defrag.look_us) return;
        defrag.look_us = now_us + LOOK_US;
        defrag.tidies = storeTidy(budget_us < CARE_US ? budget_us : CARE_US);
    } else if (!defrag.running && now_us >= defrag.look_us) {
        defrag.look_us = now_us + LOOK_US;
        defrag.running = defrag.shown = chooseShare();
        defrag.began_us = now_us;
        defrag.moved_before = defrag.done.moved;
    }
}

static bool isBusy(void) { return defrag.running || (defrag.tidies && !defragConf.active); }

static void printMemory(str *out) {
    strAppendFormat(out, "active_defrag_running:%d\r\n", defrag.shown);
}

static void printStats(str *out) {
    strAppendField(out, "active_defrag_hits", defrag.done.moved);
    strAppendField(out, "active_defrag_misses", defrag.done.kept);
    strAppendField(out, "active_defrag_key_hits", defrag.done.keys_moved);
    strAppendField(out, "active_defrag_key_misses", defrag.done.keys_kept);
    strAppendField(out, "total_active_defrag_time", defrag.us / 1000);
    strAppendText(out, "current_active_defrag_time:0\r\n"); /* a pass never blocks commands */
}

static void resetStats(void) {
    defrag.done = (storeCompactReport){0};
    defrag.moved_before = 0;
    defrag.us = 0;
}

static const tickJob ticks[] = {{"defrag", 0, defragTick, isBusy}, {0}};
static const stageJob stages[] = {{STAGE_EXPIRE, between}, {0}};
static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature defragFeature = {.name = "defrag",
                               .options = defragOptions,
                               .info = sections,
                               .ticks = ticks,
                               .stages = stages,
                               .on_stats_reset = resetStats};

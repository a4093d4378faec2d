/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory reports: INFO's section Memory, MEMORY STATS, MEMORY DOCTOR. A report costs a walk over
 * the clients; the statistics of the allocator and the kernel, which take about 10 us, are read at
 * most every 100 ms. Main thread only. */
#include <unistd.h>

#include "base/base.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/number.h"
#include "config/config.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "net/net.h"
#include "persist/persist.h"
#include "repl/repl.h"
#include "script/script.h"
#include "server/procs.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "store/compact.h"
#include "store/dictionary.h"
#include "store/shape.h"
#include "store/store.h"

static struct {
    size_t startup, peak;
    size_t tables; /* part of `startup` */
} memory;

void infoMemoryTick(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    memory.peak = sizeMax(memory.peak, memUsed());
}

typedef struct memoryFigures {
    size_t used, clients, links, tables, overhead, dataset;
    double dataset_percent, peak_percent;
    uint64_t keys;
    memReport process;
    replMemory stream;
} memoryFigures;

/* Of the cluster bus. */
static size_t linksMemory(void) { return engineCluster() ? engineCluster()->links_memory() : 0; }

/* Adds what is not from the allocator: slabs of keys and elements, and mappings, which hold large
 * tables. */
static void addOutside(memReport *process) {
    if (process->is_whole) return;
    storeWaste slabs;
    storeGetWaste(&slabs);
    size_t allocated = slabs.live + slabs.opened + memMapped(), active = allocated + slabs.holes;
    process->allocated += allocated;
    process->active += active;
    process->resident += active + slabs.empty;
}

static size_t tablesMemory(void) {
    size_t sum = 0;
    for (int i = 0; i < storeDbCount(); i++) sum += dbTableMemory(storeDb(i));
    return sum;
}

/* What comes and goes with single commands, and is found without a walk over the clients: messages
 * for any number of receivers, arguments of commands that are being executed, and interpreters. */
static size_t measurePassing(void) {
    return blobMessageBytes() + netArgumentsMemory() + scriptVmBytes();
}

/* Fills `out` with a report that is at most 100 ms old: reading one takes more time than all else
 * that INFO and MEMORY DOCTOR do. */
static void readProcess(memReport *out) {
    hotCheck(threadIsMain());
    enum { KEPT_MS = 100 };
    static memReport report;
    static int64_t read_ms; /* of the wall clock, which may be set back */
    int64_t age_ms = engineHot.now_ms - read_ms;
    if (!read_ms || age_ms >= KEPT_MS || age_ms < 0) {
        memReportRead(&report);
        addOutside(&report);
        read_ms = engineHot.now_ms;
    }
    *out = report;
}

/* All figures except those of the process. */
static memoryFigures measureOwn(void) {
    memoryFigures f = {.used = memUsed(), .clients = netClientsMemory(), .links = linksMemory()};
    memory.peak = sizeMax(memory.peak, f.used);
    f.tables = tablesMemory();
    f.keys = keyspaceKeyCount(keyspaceMain());
    replMeasure(&f.stream);
    f.overhead = memory.startup + f.stream.buffers + f.clients + f.links +
                 (f.tables > memory.tables ? f.tables - memory.tables : 0) +
                 persistAofBufferBytes() + dictionariesMemory() + scriptCacheBytes() +
                 scriptLibraryBytes() + measurePassing();
    f.overhead = sizeMin(f.overhead, f.used);
    f.dataset = f.used > f.overhead ? f.used - f.overhead : 0;
    size_t net_used = f.used > memory.startup ? f.used - memory.startup : 1;
    f.dataset_percent = (double)f.dataset * 100 / (double)net_used;
    f.peak_percent = (double)f.used * 100 / (double)memory.peak;
    return f;
}

static memoryFigures measure(void) {
    memoryFigures f = measureOwn();
    readProcess(&f.process);
    return f;
}

static size_t measureLasting(void) {
    size_t overhead = measureOwn().overhead, passing = measurePassing();
    return overhead > passing ? overhead - passing : 0;
}

static const memoryMeasures measures = {measureLasting, measurePassing, netUnfinishedMemory};

void infoMemoryStarted(void) {
    memory.startup = memory.peak = memUsed();
    memory.tables = tablesMemory();
    memorySetMeasures(&measures);
}

static double ratio(size_t whole, size_t part) { return part ? (double)whole / (double)part : 0; }

/* ------------------------------------------------------------------ INFO */

static void printBytes(str *out, const char *name, uint64_t bytes) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, bytes);
    strAppendField(out, name, bytes);
    strAppendFormat(out, "%s_human:%s\r\n", name, human);
}

static size_t slotLinksMemory(bool exports) {
    return engineCluster() ? engineCluster()->slot_links_memory(exports) : 0;
}

static void printRatio(str *out, const char *name, size_t whole, size_t part) {
    strAppendFormat(out, "%s_ratio:%.2f\r\n%s_bytes:%lld\r\n", name, ratio(whole, part), name,
                    (long long)whole - (long long)part);
}

static void printShapes(str *out) {
    shapesReport r;
    shapesGetReport(&r);
    strAppendField(out, "hash_shapes", r.shapes);
    strAppendField(out, "hash_shapes_hashes", r.hashes);
    strAppendField(out, "hash_shapes_bytes", r.bytes);
    strAppendField(out, "hash_shapes_saved_bytes", r.saved);
    strAppendField(out, "hash_shapes_made", r.made);
    strAppendField(out, "hash_shapes_refused", r.refused);
}

/* Read once: it takes a system call. */
static uint64_t systemMemory(void) {
    static uint64_t bytes;
    if (!bytes) bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

void infoPrintMemory(str *out) {
    hotCheck(threadIsMain());
    memoryFigures f = measure();
    const memReport *process = &f.process;
    printBytes(out, "used_memory", f.used);
    printBytes(out, "used_memory_rss", process->rss);
    printBytes(out, "used_memory_peak", memory.peak);
    strAppendFormat(out, "used_memory_peak_perc:%.2f%%\r\n", f.peak_percent);
    strAppendField(out, "used_memory_overhead", f.overhead);
    strAppendField(out, "used_memory_startup", memory.startup);
    strAppendFormat(out, "used_memory_dataset:%zu\r\nused_memory_dataset_perc:%.2f%%\r\n",
                    f.dataset, f.dataset_percent);
    strAppendField(out, "allocator_allocated", process->allocated);
    strAppendField(out, "allocator_active", process->active);
    strAppendField(out, "allocator_resident", process->resident);
    strAppendField(out, "allocator_muzzy", process->muzzy);
    printBytes(out, "total_system_memory", systemMemory());
    printRatio(out, "allocator_frag", process->active, process->allocated);
    printRatio(out, "allocator_rss", process->resident, process->active);
    printRatio(out, "rss_overhead", process->rss, process->resident);
    printRatio(out, "mem_fragmentation", process->rss, f.used);
    strAppendField(out, "mem_not_counted_for_evict", memoryExcluded());
    strAppendField(out, "mem_replication_backlog", f.stream.backlog);
    strAppendField(out, "mem_total_replication_buffers", f.stream.buffers);
    strAppendField(out, "mem_replicas_repl_buffer", f.stream.collected);
    strAppendField(out, "mem_clients_slaves", f.stream.replicas);
    strAppendField(out, "mem_clients_normal", f.clients);
    strAppendField(out, "mem_cluster_links", f.links);
    strAppendField(out, "mem_cluster_slot_import", slotLinksMemory(false));
    strAppendField(out, "mem_cluster_slot_export", slotLinksMemory(true));
    strAppendField(out, "mem_aof_buffer", persistAofBufferBytes());
    strAppendFormat(out, "mem_allocator:%s\r\n", memAllocatorName());
    strAppendText(out, "mem_overhead_db_hashtable_rehashing:0\r\n");
    printShapes(out);
}

/* ------------------------------------------------------------------ MEMORY STATS */

static void replyFraction(ctx *c, const char *name, double value) {
    replyBulkText(c, name);
    replyDouble(c, value);
}

/* Table memory of each non-empty database. Expiry times are stored in the objects, so their
 * overhead is 0. */
static int replyDatabases(ctx *c) {
    int count = 0;
    for (int i = 0; i < storeDbCount(); i++) {
        if (!dbSize(storeDb(i))) continue;
        char name[32] = "db.";
        numberPrintInt(name + 3, i);
        replyBulkText(c, name);
        replyMap(c, 2);
        replyIntField(c, "overhead.hashtable.main", (int64_t)dbTableMemory(storeDb(i)));
        replyIntField(c, "overhead.hashtable.expires", 0);
        count++;
    }
    return count;
}

static int replyProcess(ctx *c, const memoryFigures *f) {
    const memReport *p = &f->process;
    replyIntField(c, "allocator.allocated", (int64_t)p->allocated);
    replyIntField(c, "allocator.active", (int64_t)p->active);
    replyIntField(c, "allocator.resident", (int64_t)p->resident);
    replyIntField(c, "allocator.muzzy", (int64_t)p->muzzy);
    replyFraction(c, "allocator-fragmentation.ratio", ratio(p->active, p->allocated));
    replyIntField(c, "allocator-fragmentation.bytes", (int64_t)p->active - (int64_t)p->allocated);
    replyFraction(c, "allocator-rss.ratio", ratio(p->resident, p->active));
    replyIntField(c, "allocator-rss.bytes", (int64_t)p->resident - (int64_t)p->active);
    replyFraction(c, "rss-overhead.ratio", ratio(p->rss, p->resident));
    replyIntField(c, "rss-overhead.bytes", (int64_t)p->rss - (int64_t)p->resident);
    replyFraction(c, "fragmentation", ratio(p->rss, f->used));
    replyIntField(c, "fragmentation.bytes", (int64_t)p->rss - (int64_t)f->used);
    return 12;
}

/* MEMORY STATS. Reply: a map of values. */
void memoryStatsCommand(ctx *c) {
    memoryFigures f = measure();
    respDeferred map = respDeferBegin(c->out);
    int fields = 0;
    replyIntField(c, "peak.allocated", (int64_t)memory.peak);
    replyIntField(c, "total.allocated", (int64_t)f.used);
    replyIntField(c, "startup.allocated", (int64_t)memory.startup);
    replyIntField(c, "replication.backlog", (int64_t)f.stream.backlog);
    replyIntField(c, "replicas.repl.buffer", 0);
    replyIntField(c, "clients.slaves", (int64_t)f.stream.replicas);
    replyIntField(c, "clients.normal", (int64_t)f.clients);
    replyIntField(c, "cluster.links", (int64_t)f.links);
    fields += 8;
    replyIntField(c, "cluster.slot_import", (int64_t)slotLinksMemory(false));
    replyIntField(c, "cluster.slot_export", (int64_t)slotLinksMemory(true));
    replyIntField(c, "aof.buffer", (int64_t)persistAofBufferBytes());
    replyIntField(c, "lua.caches", (int64_t)scriptCacheBytes());
    replyIntField(c, "functions.caches", (int64_t)scriptLibraryBytes());
    fields += 5 + replyDatabases(c);
    replyIntField(c, "overhead.db.hashtable.lut", (int64_t)f.tables);
    replyIntField(c, "overhead.db.hashtable.rehashing", 0);
    replyIntField(c, "overhead.total", (int64_t)f.overhead);
    replyIntField(c, "db.dict.rehashing.count", 0);
    replyIntField(c, "keys.count", (int64_t)f.keys);
    replyIntField(c, "keys.bytes-per-key", f.keys ? (int64_t)(f.dataset / f.keys) : 0);
    replyIntField(c, "dataset.bytes", (int64_t)f.dataset);
    replyFraction(c, "dataset.percentage", f.dataset_percent);
    replyFraction(c, "peak.percentage", f.peak_percent);
    fields += 9 + replyProcess(c, &f);
    respDeferEnd(c->out, map, '%', c->proto, fields);
}

/* ------------------------------------------------------------------ MEMORY DOCTOR */

static void nameLargestClient(str *out) {
    const session *largest = netLargestClient();
    if (!largest) return;
    strAppendFormat(out, " The largest is id=%llu addr=", (unsigned long long)largest->id);
    sessionPeer(largest, out);
    strAppendFormat(out, " with %zu bytes.", netClientMemory(largest));
}

bool memoryTellRefusal(str *out) {
    hotCheck(threadIsMain());
    if (!memoryRefuses()) return false;
    char counted[NUMBER_TEXT_MAX];
    numberPrintHuman(counted, memoryCounted());
    strAppendFormat(out,
                    "Writes are refused with OOM: %s are in use, which is more than maxmemory or "
                    "maxmemory-dataset, and maxmemory-policy finds no key to evict. Raise the "
                    "limit, delete keys, or choose a policy that evicts others.",
                    counted);
    return true;
}

/* Appends one paragraph per detected issue; returns their number. */
static int diagnose(const memoryFigures *f, str *out) {
    enum { SLACK_BYTES = 10 * 1024 * 1024, CLIENT_BYTES = 200 * 1024 };
    int found = 0;
    str refusal = STR_EMPTY;
    if (memoryTellRefusal(&refusal)) {
        strAppendFormat(out, " * %s\n\n", strText(&refusal));
        found++;
    }
    strFree(&refusal);
    if (ratio(memory.peak, f->used) > 1.5) {
        strAppendText(
            out, " * Peak memory: the peak was more than 150% of the memory in use now. The "
                 "allocator may still hold pages from that time, so the fragmentation ratio looks "
                 "worse than it is. MEMORY PURGE asks it to return them.\n\n");
        found++;
    }
    if (ratio(f->process.rss, f->used) > 1.4 && f->process.rss - f->used > SLACK_BYTES) {
        strAppendText(
            out,
            " * High total memory: the process has more than 1.4 times the memory that is in "
            "use, and at least 10 MB more: an indication of fragmentation or of an earlier peak.\n\n");
        found++;
    }
    if (netClientCount() && f->clients / (size_t)netClientCount() > CLIENT_BYTES) {
        strAppendText(
            out,
            " * Large client buffers: clients use more than 200 KB each on average. Check omem and "
            "qbuf in CLIENT LIST for clients that do not read their replies.");
        nameLargestClient(out);
        strAppendText(out, "\n\n");
        found++;
    }
    return found;
}

/* MEMORY DOCTOR. Reply: a report as text. */
void memoryDoctorCommand(ctx *c) {
    enum { EMPTY_BYTES = 5 * 1024 * 1024 };
    memoryFigures f = {.used = memUsed(), .clients = netClientsMemory()};
    memory.peak = sizeMax(memory.peak, f.used);
    readProcess(&f.process);
    str text = STR_EMPTY, issues = STR_EMPTY;
    if (f.used < EMPTY_BYTES && !memoryRefuses()) {
        strAppendText(
            &text,
            "Hi Sam, this instance is empty or is using very little memory, my issues detector "
            "can't be used in these conditions. Please, leave for your mission on Earth and fill "
            "it with some data. The new Sam and I will be back to our programming as soon as I "
            "finished rebooting.\n");
    } else if (diagnose(&f, &issues)) {
        strAppendText(&text,
                      "Sam, I detected a few issues in this Valkey instance memory implants:\n\n");
        strAppendSlice(&text, strSlice(&issues));
        strAppendText(&text, "I'm here to keep you safe, Sam. I want to help you.\n");
    } else {
        strAppendText(
            &text,
            "Hi Sam, I can't find any memory issue in your instance. I can only account for what "
            "occurs on this base.\n");
    }
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
    strFree(&issues);
}

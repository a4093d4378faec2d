/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The roof's INFO sections: Server, Memory, CPU. Main thread only. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "base/build_info.h"
#include "base/number.h"
#include "engine/hot.h"
#include "net/net.h"
#include "server/roof.h"
#include "server/server_priv.h"
#include "store/store.h"

static struct { size_t startup, peak; } memory;

void infoMemoryStarted(void) { memory.startup = memory.peak = memUsed(); }

void infoMemoryTick(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    memory.peak = sizeMax(memory.peak, memUsed());
}

static unsigned long long lruClock(void) {
    return (unsigned long long)(engineHot.now_ms / 1000) & OBJECT_LRU_MAX;
}

static const char *supervisorWord(void) {
    switch (serverRunNow()->supervisor) {
    case SUPERVISED_SYSTEMD: return "systemd";
    case SUPERVISED_UPSTART: return "upstart";
    default: return "no";
    }
}

static void printServer(str *out) {
    struct utsname os;
    if (uname(&os)) memset(&os, 0, sizeof(os));
    const serverRun *run = serverRunNow();
    int64_t uptime_s = (clockWallMs() - run->started_ms) / 1000;
    strAppendFormat(
        out,
        "redis_version:%s\r\nserver_name:valkey\r\nvalkey_version:%s\r\nvalkey_release_stage:ga\r\n",
        SERVER_REDIS_VERSION, SERVER_VERSION);
    strAppendFormat(out, "redis_git_sha1:%s\r\nredis_git_dirty:%s\r\nredis_build_id:%s\r\n",
                    buildGitSha, buildGitDirty, buildGitSha);
    strAppendFormat(out, "server_mode:%s\r\nos:%s %s %s\r\narch_bits:%d\r\n",
                    serverIsCluster() ? "cluster" : "standalone", os.sysname, os.release,
                    os.machine, (int)(sizeof(void *) * 8));
    strAppendFormat(out, "monotonic_clock:%s\r\nmultiplexing_api:%s\r\ngcc_version:%d.%d.%d\r\n",
                    clockSourceName(), loopBackendName(run->loop), __GNUC__, __GNUC_MINOR__,
                    __GNUC_PATCHLEVEL__);
    strAppendFormat(out, "process_id:%d\r\nprocess_supervised:%s\r\nrun_id:%s\r\ntcp_port:%d\r\n",
                    (int)getpid(), supervisorWord(), run->run_id, netPort());
    strAppendFormat(out,
                    "server_time_usec:%lld\r\nuptime_in_seconds:%lld\r\nuptime_in_days:%lld\r\n",
                    (long long)clockWallUs(), (long long)uptime_s, (long long)(uptime_s / 86400));
    strAppendFormat(out, "hz:%d\r\nconfigured_hz:%d\r\nclients_hz:%d\r\nlru_clock:%llu\r\n",
                    serverConf.hz, serverConf.hz, serverConf.hz, lruClock());
    strAppendFormat(
        out, "executable:%s\r\nconfig_file:%s\r\nio_threads_active:0\r\navailability_zone:%s\r\n",
        run->executable, serverConfigFile(), serverConf.availability_zone);
    if (shutdownLeftMs() >= 0)
        strAppendFormat(out, "shutdown_in_milliseconds:%lld\r\n", (long long)shutdownLeftMs());
    netPrintListeners(out);
}

static void printBytes(str *out, const char *name, uint64_t bytes) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, bytes);
    strAppendFormat(out, "%s:%llu\r\n%s_human:%s\r\n", name, (unsigned long long)bytes, name,
                    human);
}

static uint64_t systemMemory(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void printRatio(str *out, const char *name, size_t whole, size_t part) {
    strAppendFormat(out, "%s_ratio:%.2f\r\n%s_bytes:%lld\r\n", name,
                    part ? (double)whole / (double)part : 0.0, name,
                    (long long)whole - (long long)part);
}

static void printMemory(str *out) {
    size_t used = memUsed();
    memory.peak = sizeMax(memory.peak, used);
    memReport report;
    memReportRead(&report);
    size_t clients = netClientsMemory(), tables = 0;
    for (int i = 0; i < storeDbCount(); i++) tables += dbTableMemory(storeDb(i));
    size_t overhead = memory.startup + clients + tables;
    size_t dataset = used > overhead ? used - overhead : 0;
    size_t net_used = used > memory.startup ? used - memory.startup : 1;
    printBytes(out, "used_memory", used);
    printBytes(out, "used_memory_rss", report.rss);
    printBytes(out, "used_memory_peak", memory.peak);
    strAppendFormat(out, "used_memory_peak_perc:%.2f%%\r\n",
                    (double)used * 100 / (double)memory.peak);
    strAppendFormat(out, "used_memory_overhead:%zu\r\nused_memory_startup:%zu\r\n", overhead,
                    memory.startup);
    strAppendFormat(out, "used_memory_dataset:%zu\r\nused_memory_dataset_perc:%.2f%%\r\n", dataset,
                    (double)dataset * 100 / (double)net_used);
    strAppendFormat(
        out,
        "allocator_allocated:%zu\r\nallocator_active:%zu\r\nallocator_resident:%zu\r\nallocator_muzzy:%zu\r\n",
        report.allocated, report.active, report.resident, report.muzzy);
    printBytes(out, "total_system_memory", systemMemory());
    printRatio(out, "allocator_frag", report.active, report.allocated);
    printRatio(out, "allocator_rss", report.resident, report.active);
    printRatio(out, "rss_overhead", report.rss, report.resident);
    strAppendFormat(out, "mem_fragmentation_ratio:%.2f\r\nmem_fragmentation_bytes:%lld\r\n",
                    (double)report.rss / (double)used, (long long)report.rss - (long long)used);
    strAppendFormat(out, "mem_clients_normal:%zu\r\nmem_allocator:%s\r\n", clients,
                    memAllocatorName());
}

static void printTimes(str *out, const char *suffix, int who) {
    struct rusage usage;
    if (getrusage(who, &usage)) return;
    strAppendFormat(out, "used_cpu_sys%s:%ld.%06ld\r\nused_cpu_user%s:%ld.%06ld\r\n", suffix,
                    (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec, suffix,
                    (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
}

static void printCpu(str *out) {
    printTimes(out, "", RUSAGE_SELF);
    printTimes(out, "_children", RUSAGE_CHILDREN);
    printTimes(out, "_main_thread", RUSAGE_THREAD);
}

static void printStats(str *out) {
    strAppendFormat(out, "eventloop_cycles:%llu\r\n", (unsigned long long)serverRunNow()->turns);
}

const infoSection serverSections[] = {
    {"server", "# Server", INFO_NORMAL, INFO_SERVER, printServer},
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"cpu", "# CPU", INFO_NORMAL, INFO_CPU, printCpu},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

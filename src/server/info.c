/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO sections of `server`: Server, CPU, and its part of Stats. Section Memory is in memory.c.
 * Main thread only. */
#define _GNU_SOURCE /* for RUSAGE_THREAD */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "base/build_info.h"
#include "base/number.h"
#include "cmd/cmd.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/tick.h"
#include "io/compress.h"
#include "module/module.h"
#include "net/net.h"
#include "persist/persist.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "store/store.h"

static unsigned long long lruClock(void) {
    enum { LRU_CLOCK_MAX = (1 << 24) - 1 }; /* as in Valkey; objects keep fewer bits */
    return (unsigned long long)(engineHot.now_ms / 1000) & LRU_CLOCK_MAX;
}

static const char *supervisorWord(void) {
    switch (serverRunNow()->supervisor) {
    case SUPERVISED_SYSTEMD: return "systemd";
    case SUPERVISED_UPSTART: return "upstart";
    default: return "no";
    }
}

static void printServer(str *out) {
    static struct utsname os; /* read once: the printed fields do not change */
    if (!os.sysname[0] && uname(&os)) memset(&os, 0, sizeof(os));
    const serverRun *run = serverRunNow();
    int64_t uptime_s = (clockWallMs() - run->started_ms) / 1000;
    strAppendFormat(
        out,
        "redis_version:%s\r\nserver_name:valkey\r\nvalkey_version:%s\r\nvalkey_release_stage:ga\r\n"
        "server_product:%s\r\nserver_release:%s\r\ncompression_codecs:%s\r\n",
        SERVER_REDIS_VERSION, SERVER_VERSION, SERVER_PRODUCT, SERVER_RELEASE, compressBuilt());
    strAppendFormat(out, "redis_git_sha1:%s\r\nredis_git_dirty:%s\r\nredis_build_id:%s\r\n",
                    buildGitSha, buildGitDirty, buildGitSha);
    strAppendFormat(out, "%s_mode:%s\r\nos:%s %s %s\r\narch_bits:%d\r\n",
                    cmdNamesRedis() ? "redis" : "server", serverModeName(), os.sysname, os.release,
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
                    tickHz(), serverConf.hz, tickHz(), lruClock());
    strAppendFormat(
        out, "executable:%s\r\nconfig_file:%s\r\nio_threads_active:%d\r\navailability_zone:%s\r\n",
        run->executable, serverConfigFile(), netThreadsAreActive(), serverConf.availability_zone);
    if (shutdownRemainingMs() >= 0)
        strAppendFormat(out, "shutdown_in_milliseconds:%lld\r\n", (long long)shutdownRemainingMs());
    netPrintListeners(out);
}

/* A field with seconds and six decimals. */
static void printSeconds(str *out, const char *name, const char *suffix, uint64_t us) {
    enum { UNIT = 1000000 };
    char decimals[NUMBER_TEXT_MAX];
    numberPrintUint(decimals, UNIT + us % UNIT); /* the digit 1 before them keeps leading zeros */
    strAppendFormat(out, "%s%s:%llu.%s\r\n", name, suffix, (unsigned long long)(us / UNIT),
                    decimals + 1);
}

static uint64_t usOf(struct timeval t) {
    hotCheck(t.tv_usec >= 0);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void printTimes(str *out, const char *suffix, int who) {
    struct rusage usage;
    if (getrusage(who, &usage)) return;
    printSeconds(out, "used_cpu_sys", suffix, usOf(usage.ru_stime));
    printSeconds(out, "used_cpu_user", suffix, usOf(usage.ru_utime));
}

/* Time of the loop's turns since statistics were reset. */
static uint64_t busyUs(void) { return statsBusyUs() - serverRunNow()->busy_reset_us; }

static void printCpu(str *out) {
    printTimes(out, "", RUSAGE_SELF);
    printTimes(out, "_children", RUSAGE_CHILDREN);
    printTimes(out, "_main_thread", RUSAGE_THREAD);
    printSeconds(out, "used_active_time_main_thread", "", busyUs());
    netPrintThreadTimes(out);
}

static void printStats(str *out) {
    const serverRun *run = serverRunNow();
    strAppendField(out, "eventloop_cycles", run->turns);
    strAppendField(out, "eventloop_duration_sum", busyUs());
    strAppendField(out, "eventloop_duration_cmd_sum", (executeCommandUs() - run->command_base_us));
    strAppendField(out, "instantaneous_eventloop_cycles_per_sec", ratePerSecond(&run->turn_rate));
    uint64_t turns = run->turns - run->turns_base;
    strAppendField(out, "instantaneous_eventloop_duration_usec",
                   turns ? (busyUs() - run->busy_base_us) / turns : 0);
}

void infoResetStats(void) {
    hotCheck(threadIsMain());
    serverRun *run = serverRunNow();
    run->turns = run->cron_us = 0;
    run->busy_reset_us = statsBusyUs();
    run->command_base_us = executeCommandUs();
    run->turn_us_max = run->turn_commands_max = 0;
    run->turns_base = run->busy_base_us = 0;
    run->turn_rate = (rate){0};
}

void infoLoopTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* takes no time */
    static int64_t next_us;
    serverRun *run = serverRunNow();
    int64_t now_us = clockMonoUs();
    rateSample(&run->turn_rate, run->turns, now_us);
    if (now_us < next_us) return;
    next_us = now_us + 1000000;
    run->turns_base = run->turns;
    run->busy_base_us = busyUs();
}

static void printDebug(str *out) {
    const serverRun *run = serverRunNow();
    strAppendFormat(out,
                    "eventloop_duration_aof_sum:%llu\r\neventloop_duration_cron_sum:%llu\r\n"
                    "eventloop_duration_max:%llu\r\neventloop_cmd_per_cycle_max:%llu\r\n"
                    "io_threaded_reads_pending:0\r\nio_threaded_writes_pending:0\r\n",
                    (unsigned long long)persistAofUs(), (unsigned long long)run->cron_us,
                    (unsigned long long)run->turn_us_max,
                    (unsigned long long)run->turn_commands_max);
}

const infoSection serverSections[] = {
    {"modules", "# Modules", INFO_NORMAL, INFO_MODULES, modulesAppendInfo},
    {"debug", "# Debug", 0, INFO_DEBUG, printDebug},
    {"server", "# Server", INFO_NORMAL, INFO_SERVER, printServer},
    {"keysizes", "# Keysizes", 0, INFO_KEYSIZES, infoPrintKeysizes},
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, infoPrintMemory},
    {"cpu", "# CPU", INFO_NORMAL, INFO_CPU, printCpu},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

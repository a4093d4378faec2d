/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Startup of the server, from argv to the event loop. The order of the steps matters; see main().
 * Main thread only. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "base/build_info.h"
#include "base/hash.h"
#include "base/random.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "engine/child.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/stats.h"
#include "engine/lifecycle.h"
#include "io/bio.h"
#include "io/file.h"
#include "metrics/metrics.h"
#include "module/module.h"
#include "net/net.h"
#include "persist/persist.h"
#include "repl/repl.h"
#include "repl/role.h"
#include "server/crash.h"
#include "server/kernel.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "server/watchdog.h"
#include "store/store.h"

static serverRun run;

serverRun *serverRunNow(void) { return &run; }

bool serverIsCluster(void) { return serverModeNow()->has_dataset && clusterIsEnabled(); }

int serverDatabaseCount(void) {
    return serverIsCluster() ? clusterDatabases() : serverConf.databases;
}

const char *serverConfigFile(void) { return configFilePath() ? configFilePath() : ""; }

bool serverDirectivesFit(str *report) {
    str primary = STR_EMPTY;
    configGet(configFind(SLICE("replicaof")), &primary);
    bool fit = !serverIsCluster() || primary.len == 0;
    strFree(&primary);
    if (!fit) strAppendText(report, "replicaof directive not allowed in cluster mode\n");
    /* Sentinel ignores settings of modules, as it does other directives of servers. */
    if (serverModeNow()->has_dataset && !modulesCheckSettings(report)) fit = false;
    return fit;
}

static void loadConfiguration(int argc, char **argv) {
    str report = STR_EMPTY;
    if (configLoad(argc, (const char *const *)argv, &report) == OK &&
        serverDirectivesFit(&report)) {
        strFree(&report);
        return;
    }
    fprintf(stderr, "\n*** FATAL CONFIG FILE ERROR (Version %s) ***\n%s", SERVER_VERSION,
            strText(&report));
    exit(1);
}

/* Sets the hash key: from hash-seed, so that servers with the same seed scan in the same order, or
 * random. */
static void seedHashes(void) {
    uint8_t seed[16];
    slice text = strSlice(&serverConf.hash_seed);
    if (text.len) {
        static const uint8_t fixed[16] = {0};
        uint64_t low = hashSip13(text.ptr, text.len, fixed);
        uint64_t high = hashSip13(&low, sizeof(low), fixed);
        storeU64(seed, low);
        storeU64(seed + 8, high);
    } else {
        randomSecret(seed, sizeof(seed));
    }
    hashSetSeed(seed);
}

static uint64_t wake_ticks; /* end of the last sleep of the outermost loop turn */

/* A turn without its sleep runs between two reads of the clock. */
static void beforeSleep(loop *l, void *arg) {
    (void)arg; /* there is one loop */
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
    if (!wake_ticks || loopDepth(l) != 1) return;
    uint64_t commands = engineHot.commands - run.commands_before;
    run.commands_before = engineHot.commands;
    if (commands > run.turn_commands_max) run.turn_commands_max = commands;
    uint64_t turn_us = (uint64_t)(clockTicksToNs(clockTicks() - wake_ticks) / 1000);
    statsAddBusy(turn_us);
    if (turn_us > run.turn_us_max) run.turn_us_max = turn_us;
}

static void afterSleep(loop *l, void *arg) {
    (void)arg; /* there is one loop */
    if (loopDepth(l) == 1) wake_ticks = clockTicks();
    executeNewTurn();
    run.turns++;
    cronWake();
    if (!engineHot.current) {
        signalsPoll();
        shutdownPoll();
    }
    stagesRun(STAGE_AFTER_SLEEP, STAGE_AFTER_SLEEP);
}

static void startLoop(void) {
    reason why;
    run.loop = loopNew(NULL, &why);
    if (!run.loop) {
        logWarning("Failed creating the event loop. Error message: '%s'", why.text);
        exit(1);
    }
    loopSetBeforeSleep(run.loop, beforeSleep, NULL);
    loopSetAfterSleep(run.loop, afterSleep, NULL);
    netSetLoop(run.loop);
    childSetLoop(run.loop);
    engineSetLoop(run.loop);
}

/* Raises the limit of file descriptors to that of all clients plus a reserve; lowers maxclients if
 * the system refuses. */
static void raiseDescriptorLimit(void) {
    reason why = {""};
    if (netFitDescriptors(&why) != OK) {
        logWarning("%s", why.text);
        exit(1);
    }
    if (why.text[0]) logWarning("%s", why.text);
}

static void startFeatures(void) {
    const serverMode *mode = serverModeNow();
    for (int i = 0; i < *mode->feature_count; i++) {
        reason why;
        const feature *f = mode->features[i];
        if (!f->init || f->init(&why) == OK) continue;
        logWarning("%s", why.text);
        exit(1);
    }
}

static void openListeners(void) {
    reason why;
    if (netListen(&why) == OK && metricsListen(run.loop, &why) == OK) return;
    logWarning("%s", why.text);
    exit(1);
}

static void loadModules(void) {
    reason why;
    if (modulesLoadConfigured(&why) == OK) return;
    logWarning("%s", why.text);
    exit(1);
}

/* Rules of users can name commands of modules. No client has been served before. */
static void loadUsers(void) {
    reason why;
    if (aclLoadUsers(&why) == OK) {
        clusterAfterUsers();
        return;
    }
    logWarning("%s", why.text);
    exit(1);
}

static void loadDataset(void) {
    reason why;
    if (persistLoadAtStart(replIsReplica() || clusterIsReplica(), &why) == OK) {
        replAfterLoad();
        clusterAfterLoad();
        netLogReady();
        return;
    }
    logWarning("Fatal error loading the DB, check server logs. Exiting.");
    (void)fflush(stdout); /* nothing of it matters more than the exit code */
    _exit(1); /* I/O threads, which serve clients during a load, use what exit() takes down */
}

/* Directives of a server are accepted by Sentinel, too, which ignores those of features that it
 * has not. */
static void installOptions(void) {
    const configOption *tables[64];
    int count = 0;
    tables[count++] = serverModeNow()->options;
    tables[count++] = configOptions;
    for (int i = 0; i < serverFeatureCount; i++) {
        if (!serverFeatures[i]->options) continue;
        check(count < (int)COUNT_OF(tables));
        tables[count++] = serverFeatures[i]->options;
    }
    configInstall(tables, count);
}

static void identify(engineIdentity *out) {
    *out = (engineIdentity){.version = SERVER_VERSION,
                            .redis_version = SERVER_REDIS_VERSION,
                            .mode = serverModeName(),
                            .role = serverModeNow()->has_dataset ? replRole() : NULL,
                            .availability_zone = serverConf.availability_zone};
}

/* Registers the functions with which commands query and control the process. */
static void serve(void) {
    (void)loopTurn(run.loop, false); /* how much there was does not matter */
}

static void registerHandlers(void) {
    engineSetServeProc(serve);
    engineSetShutdownProc(shutdownRequest);
    engineSetRestartProc(restartRequest);
    engineSetIdentityProc(identify);
}

static void logWithoutEffect(const char *sentence, void *arg) {
    (void)arg;
    logWarning("%s", sentence);
}

static void logStartup(void) {
    logNotice("%s %s, compatible with Valkey %s", SERVER_PRODUCT, SERVER_RELEASE, SERVER_VERSION);
    logNotice("oO0OoO0OoO0Oo Valkey is starting oO0OoO0OoO0Oo");
    logNotice("Valkey version=%s, bits=%d, commit=%s, modified=%s, pid=%d, just started",
              SERVER_VERSION, (int)(sizeof(void *) * 8), buildGitSha, buildGitDirty, (int)getpid());
    if (configFilePath() || run.argc > 1) {
        logNotice("Configuration loaded");
    } else {
        logWarning(
            "Warning: no config file specified, using the default config. In order to specify a config file use "
            "%s /path/to/valkey.conf",
            run.argv[0]);
    }
    (void)configEachWithoutEffect(logWithoutEffect, NULL); /* how many does not matter */
}

static void checkAddresses(void) {
    reason why;
    if (storeCheckAddresses(&why) == OK) return;
    logWarning("%s", why.text);
    exit(1);
}

/* Where the program is, for a restart. A name without a slash was found by a shell in PATH. */
static void rememberPaths(const char *name) {
    char path[PATH_MAX];
    ssize_t len = strchr(name, '/') ? -1 : readlink("/proc/self/exe", path, sizeof(path));
    bool found = len > 0 && len < (ssize_t)sizeof(path);
    run.executable = found ? memDup(path, (size_t)len) : fileAbsolute(name);
    run.start_folder = fileAbsolute(".");
}

static void announce(void) {
    bool terminal = !serverConf.daemonize && !serverConf.syslog_enabled && !serverConf.logfile[0] &&
                    isatty(STDOUT_FILENO);
    if (serverConf.always_show_logo || terminal) {
        logoPrint();
    } else {
        logNotice("Running mode=%s, port=%d.", serverModeName(), netPort());
    }
}

int main(int argc, char **argv) {
    serverModeChoose(argc, argv);
    commandLineRunEarly(argc, argv);
    setlocale(LC_COLLATE, "");
    umask(umask(0777));
    run.argc = argc;
    run.argv = argv;
    run.argv_copy = memNewArray(char *, (size_t)argc + 1);
    for (int i = 0; i < argc; i++) run.argv_copy[i] = memDup(argv[i], strlen(argv[i]));
    run.program = memDup(argv[0], strlen(argv[0]));
    rememberPaths(argv[0]);
    randomHex(run.run_id, 40);
    clockInit();
    run.started_ms = clockWallMs();
    executeNewTurn();

    const serverMode *mode = serverModeNow();
    hooksInstall(mode->features, *mode->feature_count, serverGateOrder, serverGateCount);
    hooksLimitInfo(mode->info_orders);
    logSetRole(mode->log_role);
    installOptions();
    commandInstall(serverCommands, serverCommandCount, !mode->has_dataset);
    registerHandlers();
    cronInit();
    if (mode->preset) mode->preset();
    commandLineRunConfig(argc, argv);
    loadConfiguration(argc, argv);
    serverApplyLogging();
    daemonFindSupervisor();
    titleInit(argc, argv);
    if (serverConf.daemonize && run.supervisor == SUPERVISED_NO) daemonDetach();
    seedHashes();
    logStartup();
    kernelPrepare();
    signalsInit();
    crashInit();
    watchdogInit();
    logNotice("monotonic clock: %s", clockSourceName());
    raiseDescriptorLimit();
    startLoop();
    checkAddresses();
    storeInit(serverDatabaseCount(), serverIsCluster());
    startFeatures();
    openListeners();
    if (serverConf.daemonize || serverConf.pidfile[0]) daemonWritePidFile();
    titleSet();
    (void)kernelApplyOomScore(); /* a failure is logged; the server can run anyway */
    bioInit(serverConf.bio_cpulist);
    bioAttach(run.loop);
    announce();
    infoMemoryStarted();
    if (mode->has_dataset) loadModules();
    loadUsers();
    if (mode->begin) mode->begin();
    if (mode->has_dataset) {
        logNotice("Server initialized");
        loadDataset();
    }
    daemonReady();
    watchdogSet(serverConf.watchdog_period);
    cronStart();
    loopRun(run.loop);
    return 0;
}

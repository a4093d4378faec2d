/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of `server`: the loop, identity of this run, startup and
 * shutdown steps. */
#ifndef SERVER_ROOF_H
#define SERVER_ROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "engine/stats.h"
#include "io/loop.h"

/* The version of the last Redis that Valkey is compatible with, as parsed by its clients. */
#define SERVER_REDIS_VERSION "7.2.4"

/* The features in the order of their start, and the precedence of the gates. */
extern const feature *const serverFeatures[];
extern const int serverFeatureCount;
extern const gate *const serverGateOrder[];
extern const int serverGateCount;
/* Generated from the specs. */
extern const commandSpec serverCommands[];
extern const int serverCommandCount;

/* The same for Sentinel. */
extern const feature *const sentinelFeatures[];
extern const int sentinelFeatureCount;

/* What the process is, and how it starts. */
typedef struct serverMode {
    const char *name; /* as in INFO; NULL: standalone or cluster, as configured */
    const feature *const *features;
    const int *feature_count;
    const struct configOption *options; /* directives of this mode alone */
    void (*preset)(void);               /* values that differ from the defaults; NULL: none */
    void (*begin)(void);                /* once listeners are open; NULL: nothing to do */
    uint32_t info_orders;               /* bits of the sections that INFO has */
    bool has_dataset; /* is loaded and saved, replicated, and shown on the metrics port */
    char log_role;    /* letter of the log lines */
    const char *farewell;
} serverMode;
const serverMode *serverModeNow(void);
/* "standalone", "cluster" or "sentinel". */
const char *serverModeName(void);
/* From the program's name and arguments. */
void serverModeChoose(int argc, char **argv);

/* State of this run, shown by INFO. */
typedef struct serverRun {
    loop *loop;
    int64_t started_ms; /* wall clock */
    char run_id[41];
    char *executable;   /* absolute path */
    char *start_folder; /* working directory at start: what relative arguments mean */
    char *program;      /* argv[0] */
    int argc;
    char **argv;              /* the original memory, which the process title overwrites */
    char **argv_copy;         /* a copy, NULL-terminated */
    int supervisor;           /* enum supervised, never AUTO */
    uint64_t turns;           /* number of loop turns */
    uint64_t busy_reset_us;   /* statsBusyUs() when statistics were reset */
    uint64_t command_base_us; /* executeCommandUs() when statistics were reset */
    uint64_t commands_before; /* engineHot.commands at the end of the last turn */
    uint64_t cron_us;         /* of that time, in the cron */
    uint64_t turn_us_max, turn_commands_max; /* maximum in one turn */
    rate turn_rate;
    uint64_t turns_base, busy_base_us; /* values one or two seconds ago */
} serverRun;
serverRun *serverRunNow(void);

extern const feature serverFeature;
extern const feature sentinelServerFeature; /* its part that Sentinel has */
extern const infoSection serverSections[];
/* Records the memory used by a server without data. */
void infoMemoryStarted(void);
/* Updates the peak of used memory. */
void infoMemoryTick(int64_t budget_us);
void infoPrintMemory(str *out);
void infoPrintKeysizes(str *out);
/* Samples the loop statistics. */
void infoLoopTick(int64_t budget_us);
void infoResetStats(void); /* CONFIG RESETSTAT */

bool serverIsCluster(void);
int serverDatabaseCount(void);
const char *serverConfigFile(void); /* absolute path, "" if there is none */

/* Exit code of --check-config and --print-config if the configuration has errors. */
enum { EXIT_BAD_CONFIG = 2 };
/* Handle options that print information and exit; return if argv contains none of them. The first
 * needs nothing, the second the tables of directives and commands. */
void commandLineRunEarly(int argc, char **argv);
void commandLineRunConfig(int argc, char **argv);
/* Checks combinations of directives after configLoad(); false with the errors in `report`. */
bool serverDirectivesFit(str *report);

/* Installs signal handlers, which only set a flag and wake the loop. */
void signalsInit(void);
/* Handles what the signal handlers recorded. Called by the cron and after each wake-up. */
void signalsPoll(void);
/* Forgets a signal that has requested a shutdown which has not begun. False: there is none. */
bool signalsForget(void);

/* Before the features start: they may draw the cron's rate themselves (tickSetHzProc()). */
void cronInit(void);
/* Starts the cron timer: hz times per second, once per second while nothing happens. */
void cronStart(void);
/* Called when the loop has woken: ends the rest of the cron, which runs in this turn. */
void cronWake(void);

/* Shuts down and exits. Returns only if the shutdown was refused or has to wait (`why` gives the
 * reason). */
status shutdownNow(uint32_t flags, reason *why);
/* Retries a waiting shutdown; called by the cron and after each wake-up. */
void shutdownPoll(void);
/* Remaining time of shutdown-timeout in ms while a shutdown waits, else -1. */
int64_t shutdownRemainingMs(void);
/* For SHUTDOWN: requests a shutdown, or with `abort` cancels a waiting one. */
status shutdownRequest(uint32_t flags, bool abort, reason *why);

/* For DEBUG RESTART, as engineRestartProc. */
status restartRequest(bool graceful, int64_t delay_ms, reason *why);

/* Detaches from the terminal: fork, setsid, /dev/null. */
void daemonDetach(void);
void daemonWritePidFile(void);
void daemonRemovePidFile(void);
/* Determines the supervisor as configured and sets serverRun.supervisor. Stops the process for
 * upstart. */
void daemonFindSupervisor(void);
/* Notifies the supervisor that the server is ready. */
void daemonReady(void);
/* Periodic job: notifies the supervisor's watchdog. */
void daemonTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool daemonIsWatched(void);
/* Sends one datagram such as "READY=1" to the supervisor, if there is one. */
void daemonNotify(const char *state);
/* titleInit() prepares the memory of argv and environ for the title; titleSet() writes it from its
 * template. */
void titleInit(int argc, char **argv);
void titleSet(void);

/* Prints the logo to the log. */
void logoPrint(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the roof share: the loop, the run's identity, the steps of start and end. */
#ifndef SERVER_ROOF_H
#define SERVER_ROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "engine/stats.h"
#include "io/loop.h"

/* The version we are compatible with, as clients and tools parse it. */
#define SERVER_VERSION "9.1.2"
#define SERVER_REDIS_VERSION "7.2.4"

/* The features in order of start, and the order in which gates judge. */
extern const feature *const serverFeatures[];
extern const int serverFeatureCount;
extern const gate *const serverGateOrder[];
extern const int serverGateCount;
/* Generated from the spec files. */
extern const commandSpec serverCommands[];
extern const int serverCommandCount;

/* Facts of this run for INFO. */
typedef struct serverRun {
    loop *loop;
    int64_t started_ms; /* wall clock */
    char run_id[41];
    char *executable; /* absolute path */
    char *program;    /* argv[0] */
    int argc;
    char **argv;         /* of the kernel: the process title overwrites it */
    char **kept_argv;    /* a copy, NULL behind it */
    int supervisor;      /* enum supervised, never AUTO: who waits for our datagrams or signal */
    uint64_t turns;      /* of the loop */
    uint64_t busy_us;    /* in turns, sleep left out */
    uint64_t command_us; /* of these, in the stage that runs commands */
    uint64_t cron_us;    /* and in the cron's turns */
    uint64_t turn_us_max, turn_commands_max; /* of one turn */
    rate turn_rate;
    uint64_t turns_base, busy_base_us; /* of one or two seconds ago */
} serverRun;
serverRun *serverRunNow(void);

extern const feature serverFeature;
extern const infoSection serverSections[];
/* Notes how much memory a server without data takes. */
void infoMemoryStarted(void);
/* Keeps the peak. */
void infoMemoryTick(int64_t budget_us);
void infoPrintMemory(str *out);
void infoPrintKeysizes(str *out);
/* Samples the loop's figures. */
void infoLoopTick(int64_t budget_us);
void infoResetStats(void); /* CONFIG RESETSTAT */

bool serverIsCluster(void);
int serverDatabaseCount(void);
const char *serverConfigFile(void); /* absolute path, "" without one */

/* Exit code of --check-config and --print-config for a configuration with errors. */
enum { ASK_EXIT_BAD_CONFIG = 2 };
/* Answer the options that only ask, and end; return when argv has none of them. The first needs nothing, the
 * second the tables of options and commands. */
void askBeforeAll(int argc, char **argv);
void askConfiguration(int argc, char **argv);

/* Signals: handlers only set a flag and wake the loop. */
void signalsInit(void);
/* Asks the loop to look: what the handlers saw. Called by the cron and after each wake. */
void signalsPoll(void);

/* The cron: hz times a second. */
void cronStart(void);

/* Ends the process in order. Returns only when the shutdown was refused or waits (then `why` says so). */
status shutdownNow(uint32_t flags, reason *why);
/* Asks again, where a wing wanted time; each turn of the cron. */
void shutdownPoll(void);
/* What is left of shutdown-timeout while a shutdown waits, else -1. Milliseconds. */
int64_t shutdownLeftMs(void);
/* SHUTDOWN's entry for commands: `abort` takes a waiting shutdown back. */
status shutdownAsk(uint32_t flags, bool abort, reason *why);

/* DEBUG RESTART's entry for commands, as engineRestartProc. */
status restartAsk(bool graceful, int64_t delay_ms, reason *why);

/* Detaches from the terminal: fork, setsid, /dev/null. */
void daemonDetach(void);
void daemonWritePidFile(void);
void daemonRemovePidFile(void);
/* Finds out who supervises us, as configured: serverRun.supervisor. Stops the process for upstart. */
void daemonFindSupervisor(void);
/* Tells the supervisor that we serve. */
void daemonReady(void);
/* Cron job: keeps the supervisor's watchdog quiet. */
void daemonTick(int64_t budget_us);
/* One datagram to the supervisor: "READY=1" and the like. Nothing when there is none. */
void daemonNotify(const char *state);
/* Sets the process title from its template, over the memory of argv and environ. */
void titleInit(int argc, char **argv);
void titleSet(void);

/* Prints the logo to the log, the process id in it. */
void logoPrint(void);

#endif

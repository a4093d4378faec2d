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
    char **argv;
    bool supervised;
    uint64_t turns;                          /* of the loop */
    uint64_t busy_us;                        /* in turns, sleep left out */
    uint64_t command_us;                     /* of these, in the stage that runs commands */
    uint64_t cron_us;                        /* and in the cron's turns */
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
/* Samples the loop's figures. */
void infoLoopTick(int64_t budget_us);
void infoResetStats(void); /* CONFIG RESETSTAT */

bool serverIsCluster(void);
int serverDatabaseCount(void);
const char *serverConfigFile(void); /* absolute path, "" without one */

/* Signals: handlers only set a flag and wake the loop. */
void signalsInit(void);
/* Asks the loop to look: what the handlers saw. Called by the cron and after each wake. */
void signalsPoll(void);

/* The cron: hz times a second. */
void cronStart(void);

/* Ends the process in order. Returns only when the shutdown was refused or waits (then `why` says so). */
status shutdownNow(uint32_t flags, reason *why);
/* SHUTDOWN's entry for commands: `abort` takes a waiting shutdown back. */
status shutdownAsk(uint32_t flags, bool abort, reason *why);

/* Detaches from the terminal: fork, setsid, /dev/null. */
void daemonDetach(void);
void daemonWritePidFile(void);
void daemonRemovePidFile(void);
/* Finds out who supervises us, if anybody, as configured. */
bool daemonIsSupervised(void);
/* One datagram to the supervisor: "READY=1" and the like. Nothing when there is none. */
void daemonNotify(const char *state);
/* Sets the process title from its template, over the memory of argv and environ. */
void titleInit(int argc, char **argv);
void titleSet(void);

/* Prints the logo to the log, the process id in it. */
void logoPrint(void);

#endif

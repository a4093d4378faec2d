/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The modes of valkey-cli other than running commands. Each returns the exit status of the program;
 * those that run until they are interrupted do not return. */
#ifndef TOOLS_CLI_MODES_H
#define TOOLS_CLI_MODES_H

#include "tools/cli/connection.h"

int modePipe(connection *c);
int modeScan(connection *c);
/* --bigkeys and --memkeys. */
int modeKeySizes(connection *c);
int modeHotKeys(connection *c);
int modeCompressionEstimate(connection *c);
/* --latency and --latency-history. */
int modeLatency(connection *c);
int modeLatencyDist(connection *c);
int modeIntrinsicLatency(connection *c);
int modeStat(connection *c);
int modeTop(connection *c);
int modeSentinelView(connection *c);
int modeLruTest(connection *c);
/* --rdb and --functions-rdb. */
int modeRdb(connection *c);
int modeReplica(connection *c);
/* Compares two servers. 0: they are equal. */
int modeDiff(const cliOptions *options);
/* Says what would change if this server replaced another one. 0: nothing that is used is
 * missing. */
int modeMigrateCheck(const cliOptions *options);
/* Says what of a server, or of files, Valkey 9.1.2 cannot start with; the words after the options
 * are further ones. 0: nothing. */
int modeDowngradeCheck(const cliOptions *options, int argc, char **argv);
/* --backup and --restore, whose words after the options name the folder to be made. Exit codes:
 * tools/backup/backup.h. */
int modeBackup(const cliOptions *options);
int modeRestore(const cliOptions *options, int argc, char **argv);
/* --cluster; the words after the options are its arguments if none followed its command. */
int modeCluster(const cliOptions *options, int argc, char **argv);

#endif

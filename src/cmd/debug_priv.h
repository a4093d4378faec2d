/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of DEBUG. */
#ifndef CMD_DEBUG_PRIV_H
#define CMD_DEBUG_PRIV_H

#include "base/str.h"
#include "engine/ctx.h"
#include "store/object.h"

/* Subcommands that end the process; the number of arguments was checked. */
void debugSegfault(ctx *c);
void debugPanic(ctx *c);
void debugAssert(ctx *c);
void debugOom(ctx *c);
void debugLeak(ctx *c);
void debugRestart(ctx *c);
void debugCrashAndRecover(ctx *c);

/* The object of the key at argument 2, expired or not. NULL: the error was replied. */
const robj *debugFind(ctx *c);
/* Appends the quicklist part of DEBUG OBJECT; nothing for other values. */
void debugAppendQuicklist(str *text, const robj *o, bool fast);
void debugQuicklist(ctx *c);
void debugQuicklistPackedThreshold(ctx *c);

/* Subcommands about memory. */
void debugStructsize(ctx *c);
void debugMallctl(ctx *c);
void debugMallctlStr(ctx *c);
void debugReplyBuffer(ctx *c);
void debugClientEviction(ctx *c);
void debugHashShapes(ctx *c);

/* debug_values.c */
void debugCompress(ctx *c);
void debugCompressed(ctx *c);
void debugValueDictionary(ctx *c);

/* Subcommands about replication. */
void debugChangeReplId(ctx *c);
void debugReplicate(ctx *c);
/* debug_cluster.c */
void debugDropClusterPackets(ctx *c);
void debugCloseClusterLink(ctx *c);
void debugDisableClusterReconnection(ctx *c);
void debugDisableClusterPing(ctx *c);
void debugClusterLink(ctx *c);
void debugClusterReplicaPriority(ctx *c);
void debugHoldClusterConfigSaves(ctx *c);
void debugSlotMigration(ctx *c);
void debugDelayRdbClientFree(ctx *c);
void debugPauseAfterFork(ctx *c);

#endif

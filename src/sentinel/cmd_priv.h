/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of SENTINEL's subcommands share. */
#ifndef SENTINEL_CMD_PRIV_H
#define SENTINEL_CMD_PRIV_H

#include "engine/reply.h"
#include "sentinel/procs.h"
#include "sentinel/server_sentinel.h"

/* The primary that argument 2 names; NULL after the error reply. */
sentinelInstance *cmdPrimary(ctx *c);
/* Saves the file and replies OK, or the error. */
void cmdSaveAndReply(ctx *c);
/* Replies an error if an argument from `first` on has a control character. `what` is the
 * subcommand. */
bool cmdRefuseControls(ctx *c, int first, const char *what);

#endif

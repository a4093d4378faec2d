/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SYNC and PSYNC as commands: the program acts as a replica and prints the commands of the primary.
 * One thread. */
#ifndef TOOLS_CLI_SYNC_H
#define TOOLS_CLI_SYNC_H

#include "tools/cli/connection.h"
#include "tools/cli/words.h"

bool syncIsCommand(const words *command);
/* Sends the command, which was appended to the connection, and prints the stream as CSV, without
 * the snapshot, until the connection fails, which is reported, or Ctrl-C. The connection cannot be
 * used afterwards. */
void syncShow(connection *c, const words *command);

#endif

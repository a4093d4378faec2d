/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The front end of the Lua debugger (--ldb): starts the session, sends its commands, prints its
 * output. */
#ifndef TOOLS_CLI_LDB_H
#define TOOLS_CLI_LDB_H

#include "tools/cli/command.h"

/* Starts a session for an EVAL command, which is borrowed until the end of the program. False after
 * errors. */
bool ldbStart(commandRunner *r, const words *eval);
/* Starts the same script again. */
bool ldbRestart(commandRunner *r);
/* Sends a command of the debugger and prints its output; the end of the session clears
 * r->debugging. */
void ldbCommand(commandRunner *r, const words *command);

#endif

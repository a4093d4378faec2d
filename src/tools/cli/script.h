/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that are not on the command line: lines of standard input or of the prompt. */
#ifndef TOOLS_CLI_SCRIPT_H
#define TOOLS_CLI_SCRIPT_H

#include "tools/cli/command.h"

/* Runs a line: a command with an optional repeat count before it, or one of the program's own
 * (quit, connect, clear, :set). False for a line that ends the program. */
bool scriptRunLine(commandRunner *r, slice line);
/* Runs the lines of standard input; returns the exit status. */
int scriptRunStdin(commandRunner *r);

#endif

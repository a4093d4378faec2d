/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that are not on the command line: those of standard input, one per line, and a Lua
 * script (--eval). */
#ifndef TOOLS_CLI_SCRIPT_H
#define TOOLS_CLI_SCRIPT_H

#include "tools/cli/command.h"

/* Runs a line: a command with an optional repeat count before it, or one of the program's own
 * (quit, connect, clear, :set). False for a line that ends the program. */
bool scriptRunLine(commandRunner *r, slice line);
/* True if both standard input and output are a terminal. */
bool scriptIsInteractive(void);
/* Runs the lines of standard input; returns the exit status. */
int scriptRunStdin(commandRunner *r);
/* --eval: argv are keys, a comma, arguments. Returns the exit status. */
int scriptRunFile(commandRunner *r, int argc, char **argv);

#endif

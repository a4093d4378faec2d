/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Interactive use: a prompt with line editing, history, completion and hints. */
#ifndef TOOLS_CLI_INTERACTIVE_H
#define TOOLS_CLI_INTERACTIVE_H

#include "tools/cli/command.h"

/* Reads and runs lines until the user ends the program; returns the exit status. */
int interactiveRun(commandRunner *r);

#endif

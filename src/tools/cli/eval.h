/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --eval: a Lua script of a file, run at once or in the debugger (--ldb). */
#ifndef TOOLS_CLI_EVAL_H
#define TOOLS_CLI_EVAL_H

#include "tools/cli/command.h"

/* argv are keys, a comma, arguments. Returns the exit status. */
int evalRunFile(commandRunner *r, int argc, char **argv);

#endif

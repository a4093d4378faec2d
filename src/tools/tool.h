/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the command line programs have in common. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>

/* True for -v and --version. */
bool toolIsVersionOption(const char *argument);
/* The same, after printing the version of a tool for files. */
bool toolWantsVersion(const char *argument, const char *program);
/* Ends the program with an error if a path is longer than the system supports. */
void toolCheckPath(const char *path);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files in the home directory of the user. */
#ifndef TOOLS_CLI_HOME_FILE_H
#define TOOLS_CLI_HOME_FILE_H

#include <stdbool.h>

#include "base/str.h"

/* The path in one of the environment variables, else `name` in the home directory. False if there
 * is none, or if the variable is empty or "/dev/null". */
bool homeFilePath(str *out, const char *variable, const char *old_variable, const char *name);

#endif

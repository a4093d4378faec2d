/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that Valkey 9.1 does not know, and that may be in append only files. Generated. */
#ifndef TOOLS_CLI_NEW_COMMANDS_H
#define TOOLS_CLI_NEW_COMMANDS_H

#include <stdbool.h>

typedef struct newCommand {
    const char *name; /* lower case */
    bool of_paths;    /* of path hashes */
} newCommand;

extern const newCommand newCommands[];
extern const int newCommandCount;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The history of commands in ~/.valkeycli_history, one line each, without secrets. */
#ifndef TOOLS_CLI_HISTORY_FILE_H
#define TOOLS_CLI_HISTORY_FILE_H

#include <stdbool.h>

#include "tools/cli/words.h"

/* Calls `line` for each line of the file, the oldest first; no more than the last thousand are
 * kept. */
void historyLoad(void (*line)(const char *text, void *arg), void *arg);
/* Appends a line to the file, which only its owner can read. */
void historyAppend(const char *line);
/* True for commands that contain a password or similar: they are not kept. */
bool historyIsSecret(const words *command);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arguments that can follow what was typed, from the syntax of the command. */
#ifndef TOOLS_CLI_HINT_H
#define TOOLS_CLI_HINT_H

#include "base/str.h"
#include "tools/cli/words.h"

/* Appends the rest of the syntax for a line that is being edited; nothing if the command is not
 * known. */
void hintFor(slice line, str *out);
/* The index of the first word that does not fit the syntax of the command; 0: all fit, or the
 * command is not known. */
int hintMisfit(const words *command);
/* Prints the hint of a line (--test_hint). */
int hintPrint(const char *line);
/* Checks a file with lines "input" "hint" (--test_hint_file); returns the exit status. */
int hintCheckFile(const char *path);

#endif

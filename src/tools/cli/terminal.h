/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The terminal of the program: size, single keys, passwords. One thread. */
#ifndef TOOLS_CLI_TERMINAL_H
#define TOOLS_CLI_TERMINAL_H

#include <stdbool.h>

#include "base/str.h"

/* Columns and rows of the terminal of standard output; 80 and 24 if they are unknown. */
int terminalColumns(void);
int terminalRows(void);

/* True if both standard input and output are a terminal. */
bool terminalIsInteractive(void);

/* Opens the terminal of the descriptor `fd` again, for reads that do not block: Ctrl-C discards
 * what was typed, so a key that poll() has reported may be missing when it is read. `fd` itself is
 * shared with other programs and stays as it is. Returns a descriptor of the caller, -1 if `fd` is
 * not a terminal or after a failure. */
int terminalOpenKeys(int fd);
typedef enum terminalKey { TERMINAL_KEY, TERMINAL_NO_KEY, TERMINAL_END } terminalKey;
/* Takes a byte from such a descriptor, if there is one. */
terminalKey terminalReadKey(int fd, char *byte);

/* Asks for a password on standard input, which is shown as asterisks; appends it. `prompt` and
 * asterisks go to standard error, and only if standard input is a terminal. */
void terminalAskPassword(const char *prompt, str *out);

/* Asks a question on standard output; true if the answer begins with "y". Ctrl-C and the end of the
 * input are no. */
bool terminalConfirm(const char *question);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --careful: a question before commands that delete much, block the server or end it. */
#ifndef TOOLS_CLI_CAREFUL_H
#define TOOLS_CLI_CAREFUL_H

#include "tools/cli/command.h"

/* True if the command may run: it is harmless, or the user at the terminal has confirmed it. Asks
 * the server for sizes. Without a terminal, what would need a confirmation is refused with a
 * message. */
bool carefulAllows(commandRunner *r, const words *command);

#endif

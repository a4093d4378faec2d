/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Explanations under errors, for people at a terminal: similar names of commands, the syntax, what
 * a redirection means. */
#ifndef TOOLS_CLI_EXPLAIN_H
#define TOOLS_CLI_EXPLAIN_H

#include "tools/cli/connection.h"
#include "tools/cli/words.h"

/* Prints what helps with the error, if anything. */
void explainError(const words *command, const char *error, const connection *c);
/* The name in the table of commands that is most similar to `name`; NULL if none is close. */
const char *explainSimilar(slice name);

#endif

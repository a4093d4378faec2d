/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preferences of interactive use, set by :set and ~/.valkeyclirc. */
#ifndef TOOLS_CLI_PREFERENCES_H
#define TOOLS_CLI_PREFERENCES_H

#include <stdbool.h>

#include "tools/cli/words.h"

/* Runs a command of the program that begins with a colon; prints what is wrong with it. */
void preferenceSet(const words *command);
/* Reads VALKEYCLI_RCFILE or ~/.valkeyclirc. */
void preferencesLoad(void);
/* Whether dangerous commands are to be confirmed: --careful or `:set careful`. */
bool preferenceCareful(void);
void preferenceSetCareful(bool on);
/* Whether hints are shown while a line is edited. */
bool preferenceHints(void);

#endif

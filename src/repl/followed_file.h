/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which primary this replica has followed, as a file for a restart: then its dataset comes from its
 * own files, which do not say so (followed.h). Main thread only. */
#ifndef REPL_FOLLOWED_FILE_H
#define REPL_FOLLOWED_FILE_H

#include <stdbool.h>

#include "psync/birth.h"

/* The primary of the configuration, with this birth; empty: unknown. No effect without files that a
 * restart would load. */
void followedFileKeep(const char *birth);
void followedFileRemove(void);
/* False: there is none, or it names another primary. */
bool followedFileRead(char birth[REPL_ID_LEN + 1]);

#endif

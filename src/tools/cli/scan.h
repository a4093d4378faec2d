/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The walk over all keys of the database with SCAN, with the options --pattern and --count. */
#ifndef TOOLS_CLI_SCAN_H
#define TOOLS_CLI_SCAN_H

#include "tools/cli/connection.h"

/* Receives the names of a page of keys; false ends the walk. */
typedef bool scanPageProc(connection *c, const valkeyReply *keys, void *arg);
/* Ends the program with an error if SCAN fails. */
void scanKeys(connection *c, scanPageProc *page, void *arg);

#endif

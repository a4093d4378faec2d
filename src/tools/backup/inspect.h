/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --list and --verify: what a backup has, and whether all of it can be read. One thread. */
#ifndef TOOLS_BACKUP_INSPECT_H
#define TOOLS_BACKUP_INSPECT_H

#include "tools/backup/catalog.h"
#include "tools/cli/options.h"

/* Print on standard output; return the exit code. */
int inspectList(const cliOptions *options);
int inspectVerify(const cliOptions *options, const partForm *form);

#endif

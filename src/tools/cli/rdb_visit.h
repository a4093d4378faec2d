/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading all of an RDB file for --migrate-check and --downgrade-check: of any server and version,
 * with a store of its own, in which no value stays. One thread. */
#ifndef TOOLS_CLI_RDB_VISIT_H
#define TOOLS_CLI_RDB_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_file.h"

typedef struct rdbVisit {
    bool opened; /* the rest is only known then, also of a damaged file */
    rdbFileResult result;
    uint64_t end; /* offset after the file, or after the preamble of an append only file */
} rdbVisit;

/* Passes the contents to the handler; `skip_modules` is that of rdbFileOptions. False if the file
 * cannot be opened or is damaged, which is printed on standard error. */
bool rdbVisitFile(const char *path, const rdbFileHandler *handler, void *arg, bool skip_modules,
                  rdbVisit *out);

#endif

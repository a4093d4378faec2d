/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading of RDB files by checks (rdb_visit.h). Invariant: the file is read with the validating
 * reader. */
#include "tools/cli/rdb_visit.h"

#include <stdio.h>

#include "base/base.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "store/store.h"

bool rdbVisitFile(const char *path, const rdbFileHandler *handler, void *arg, bool skip_modules,
                  rdbVisit *out) {
    check(path);
    rdbFileSource source;
    rdbReader reader;
    reason why;
    out->opened = rdbFileSourceOpen(&source, path, &why) == OK;
    if (!out->opened) {
        fprintf(stderr, "%s\n", why.text);
        return false;
    }
    storeInit(1, false);
    const rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
                                    .relaxed = true,
                                    .skip_modules = skip_modules,
                                    .skip_foreign = true,
                                    .foreign_everywhere = true,
                                    .check_checksum = true};
    rdbReaderInit(&reader, &source.source, true);
    bool good = rdbFileRead(&reader, &options, handler, arg, &out->result) == OK;
    out->end = rdbReaderOffset(&reader);
    if (!good) fprintf(stderr, "%s: %s\n", path, reader.why.text);
    rdbReaderClear(&reader);
    fileReaderClose(&source.file);
    storeShutdown();
    return good;
}

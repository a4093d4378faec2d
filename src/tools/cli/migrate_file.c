/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts the contents of an RDB file (migrate_types.h). Invariant: the file is read with the
 * validating reader, and one value is in memory at a time. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ds/stream_producers.h"
#include "format/rdb_file.h"
#include "format/rdb_redis.h"
#include "store/store.h"
#include "store/type_hash.h"
#include "store/type_stream.h"
#include "tools/cli/migrate_types.h"
#include "tools/cli/rdb_visit.h"

static status onFunction(void *arg, rdbReader *r, slice source) {
    (void)r, (void)source; /* the library is only counted */
    ((datasetCounts *)arg)->functions++;
    return OK;
}

static status onModuleAux(void *arg, rdbReader *r, const char *module) {
    datasetCounts *counts = arg;
    (void)r; /* has nothing more to say */
    if (counts->modules.len && strstr(strText(&counts->modules), module)) return OK;
    strAppendFormat(&counts->modules, " %s", module);
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    datasetCounts *counts = arg;
    (void)r; /* has nothing more to say */
    counts->keys++;
    if (key->foreign) datasetCountForeign(counts, key->foreign, key->name, key->foreign_bytes);
    if (!key->o) return OK;
    if (objectType(key->o) == TYPE_HASH) counts->hashes_with_times += hashTimedCount(key->o) > 0;
    if (objectType(key->o) == TYPE_STREAM) {
        const streamProducers *ids = streamProducersOf(streamOf(key->o));
        counts->streams_with_ids += ids && streamProducersIds(ids) > 0;
    }
    objectFree(key->o);
    return OK;
}

bool datasetCountFile(const char *path, datasetCounts *out) {
    check(path);
    static const rdbFileHandler handler = {
        .function = onFunction, .key = onKey, .module_aux = onModuleAux};
    rdbVisit visit;
    return rdbVisitFile(path, &handler, out, false, &visit);
}

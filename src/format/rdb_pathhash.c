/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Skips path hashes (rdb_pathhash.h). Layout: the number of paths; then for each path its name, the
 * number of its fields, and the fields, name and value in turn. Invariant: a path has at least one
 * field; a path hash may have no path. */
#include "format/rdb_pathhash.h"

#include "base/base.h"

static status skipPath(rdbReader *r) {
    uint64_t fields = 0;
    slice text;
    status st = rdbReadString(r, &text);
    if (st == OK) st = rdbReadLength(r, &fields);
    if (st != OK) return st;
    if (fields == 0) return rdbReaderFail(r, "A path of a path hash without fields");
    for (uint64_t i = 0; st == OK && i < fields; i++) {
        st = rdbReadString(r, &text);
        if (st == OK) st = rdbReadString(r, &text);
    }
    return st;
}

status rdbSkipPathHash(rdbReader *r) {
    hotCheck(!r->redis);
    uint64_t paths;
    status st = rdbReadLength(r, &paths);
    for (uint64_t i = 0; st == OK && i < paths; i++) st = skipPath(r);
    return st;
}

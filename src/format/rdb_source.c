/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files as sources (rdb_source.h). */
#include "format/rdb_source.h"

static status readFile(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    return fileReaderRead(&((rdbFileSource *)source)->file, dst, cap, len, why);
}

status rdbFileSourceOpen(rdbFileSource *s, const char *path, reason *why) {
    *s = (rdbFileSource){.source = {.read = readFile}};
    return fileReaderOpen(&s->file, path, why);
}

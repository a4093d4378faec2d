/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Configuration files of other servers for --migrate-config: a second conversion of the result
 * finds nothing more to decide.
 *
 * Input: the file. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Converts `text`, which is given to the reader as a file. */
static int migrate(const void *text, size_t len, str *out, str *notes) {
    char path[64];
    int fd = memfd_create("input", 0);
    check(fd >= 0);
    check(write(fd, text, len) == (ssize_t)len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int open = configMigrate(path, out, notes);
    close(fd); /* of memory: it cannot fail */
    return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    str out = STR_EMPTY, notes = STR_EMPTY, again = STR_EMPTY, more = STR_EMPTY;
    int open = migrate(data, size, &out, &notes);
    check(open >= 0);
    if (open) check(notes.len > 0);
    check(migrate(out.ptr, out.len, &again, &more) == 0);
    strFree(&out);
    strFree(&notes);
    strFree(&again);
    strFree(&more);
    return 0;
}

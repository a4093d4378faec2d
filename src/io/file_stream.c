/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sequential files (file_stream.h). With sync_bytes the kernel writes back pages during writing, so
 * the final fsync() has little left to write. */
#define _GNU_SOURCE
#include "io/file_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "io/sys.h"

status fileWriterOpen(fileWriter *w, const char *temporary, int64_t sync_bytes, reason *why) {
    *w = (fileWriter){.fd = -1, .sync_bytes = sync_bytes};
    w->fd = fileOpen(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (w->fd < 0) return reasonSetErrno(why, "Can't create '%s'", temporary);
    w->temporary = memDup(temporary, strlen(temporary));
    return OK;
}

static status syncSome(fileWriter *w, reason *why) {
    hotCheck(w->written >= w->synced);
    if (!w->sync_bytes || w->written - w->synced < w->sync_bytes) return OK;
    if (fileSync(w->fd) < 0) return reasonSetErrno(why, "fsync of '%s'", w->temporary);
    w->synced = w->written;
    return OK;
}

status fileWriterWrite(fileWriter *w, const void *bytes, size_t len, reason *why) {
    hotCheck(w->fd >= 0);
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = sysCallsNow()->write(w->fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return reasonSetErrno(why, "write to '%s'", w->temporary);
        at += n;
        len -= (size_t)n;
        w->written += n;
    }
    return syncSome(w, why);
}

static void forget(fileWriter *w) {
    hotCheck(w->fd < 0);
    memFree(w->temporary);
    w->temporary = NULL;
}

status fileWriterPublish(fileWriter *w, const char *path, reason *why) {
    hotCheck(w->fd >= 0);
    status st = OK;
    if (fileSync(w->fd) < 0) st = reasonSetErrno(why, "fsync of '%s'", w->temporary);
    if (close(w->fd) < 0 && st == OK) st = reasonSetErrno(why, "close of '%s'", w->temporary);
    w->fd = -1;
    if (st == OK && sysCallsNow()->rename(w->temporary, path) < 0)
        st = reasonSetErrno(why, "rename of '%s' to '%s'", w->temporary, path);
    if (st == OK) {
        forget(w);
        return fileSyncFolder(path, why);
    }
    fileWriterAbort(w);
    return st;
}

void fileWriterAbort(fileWriter *w) {
    if (w->fd >= 0) (void)close(w->fd); /* the content is discarded */
    w->fd = -1;
    if (!w->temporary) return;
    (void)unlink(w->temporary); /* on failure the next save truncates it */
    forget(w);
}

status fileReaderOpen(fileReader *r, const char *path, reason *why) {
    struct stat info;
    *r = (fileReader){.fd = fileOpen(path, O_RDONLY | O_CLOEXEC, 0)};
    if (r->fd < 0) {
        int error = errno;
        (void)reasonSetErrno(why, "Can't open '%s'",
                             path); /* the caller distinguishes by the status */
        return error == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    if (fstat(r->fd, &info) == 0) r->size = info.st_size;
    (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint */
    return OK;
}

status fileReaderRead(fileReader *r, void *dst, size_t cap, size_t *len, reason *why) {
    hotCheck(r->fd >= 0);
    ssize_t n;
    do { n = sysCallsNow()->read(r->fd, dst, cap); } while (n < 0 && errno == EINTR);
    if (n < 0) return reasonSetErrno(why, "read");
    *len = (size_t)n;
    return OK;
}

status fileReaderSkip(fileReader *r, int64_t offset, reason *why) {
    return lseek(r->fd, offset, SEEK_SET) == offset ? OK : reasonSetErrno(why, "seek");
}

void fileReaderClose(fileReader *r) {
    if (r->fd >= 0) (void)close(r->fd); /* nothing was written */
    r->fd = -1;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that grow at their end (append_file.h). Invariant: `size` is the number of bytes in the
 * file, as far as its writer knows. */
#define _GNU_SOURCE
#include "io/append_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "io/sys.h"

status appendFileOpen(appendFile *f, const char *path, bool empty, reason *why) {
    struct stat info;
    *f = (appendFile){.fd = -1};
    f->fd = fileOpen(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (empty ? O_TRUNC : 0), 0644);
    if (f->fd < 0) return reasonSetErrno(why, "Can't open the append-only file %s", path);
    if (fstat(f->fd, &info) == 0) {
        f->size = info.st_size;
        return OK;
    }
    status st = reasonSetErrno(why, "Can't get the size of %s", path);
    appendFileClose(f);
    return st;
}

int64_t appendFileWrite(appendFile *f, slice bytes) {
    ssize_t written;
    do {
        written = sysCallsNow()->write(f->fd, bytes.ptr, bytes.len);
    } while (written < 0 && errno == EINTR);
    hotCheck(written <= (ssize_t)bytes.len);
    if (written > 0) f->size += written;
    return written;
}

int appendFileCut(appendFile *f, int64_t size) {
    hotCheck(size <= f->size); /* a file is cut, never extended */
    int result;
    do { result = ftruncate(f->fd, size); } while (result < 0 && errno == EINTR);
    if (result < 0) return errno;
    f->size = size;
    return 0;
}

int appendFileSync(int fd) { return fileSync(fd) < 0 ? errno : 0; }

void appendFileClose(appendFile *f) {
    if (f->fd >= 0) (void)close(f->fd); /* what matters was flushed before */
    f->fd = -1;
}

status fileCut(const char *path, int64_t size, reason *why) {
    appendFile f;
    status st = appendFileOpen(&f, path, false, why);
    if (st != OK) return st;
    int error = appendFileCut(&f, size);
    if (!error) error = appendFileSync(f.fd);
    appendFileClose(&f);
    errno = error;
    return error ? reasonSetErrno(why, "Can't truncate %s", path) : OK;
}

status folderCreate(const char *path, reason *why) {
    struct stat info;
    if (mkdir(path, 0755) == 0) return OK;
    if (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return OK;
    return reasonSetErrno(why, "Can't create directory %s", path);
}

int64_t fileSize(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : -1;
}

status folderEach(const char *path, void (*visit)(const char *name, void *arg), void *arg,
                  reason *why) {
    DIR *folder = opendir(path);
    if (!folder) {
        if (errno == ENOENT) return OK;
        return reasonSetErrno(why, "Can't read directory %s", path);
    }
    struct dirent *entry;
    while ((entry = readdir(folder))) visit(entry->d_name, arg);
    (void)closedir(folder); /* it was only read */
    return OK;
}

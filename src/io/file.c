/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations on whole files. Invariant: where a file can be replaced, fileReplace() leaves the name
 * with the complete old or the complete new content, also on disk, and no temporary file remains
 * after a failure. ANY_THREAD. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/random.h"
#include "io/sys.h"

#define READ_STEP ((size_t)64 * 1024)

enum { LINKS_MAX = 40 };

int fileOpen(const char *path, int flags, mode_t mode) {
    int fd;
    do { fd = open(path, flags, mode); } while (fd < 0 && errno == EINTR);
    return fd;
}

int fileSync(int fd) {
    int result;
    do { result = sysCallsNow()->fsync(fd); } while (result < 0 && errno == EINTR);
    return result;
}

/* Reads `fd` up to its end. */
static status readToEnd(int fd, const char *path, size_t max, str *content, reason *why) {
    hotCheck(content->len <= max + 1);
    for (;;) {
        /* One byte more than allowed distinguishes a file that is too long from one that just
         * fits. */
        size_t room = sizeMin(READ_STEP, max - content->len + 1);
        ssize_t got = sysCallsNow()->read(fd, strReserve(content, room), room);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return reasonSetErrno(why, "can't read %s", path);
        if (got == 0) return OK;
        strGrow(content, (size_t)got);
        if (content->len > max)
            return reasonSet(why, ERR_LIMIT, "%s is longer than %zu bytes", path, max);
    }
}

status fileReadAll(const char *path, size_t max, str *out, reason *why) {
    check(max < SIZE_MAX);
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : fileOpen(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        status st = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        reasonSetErrno(why, "can't open %s", path);
        return st;
    }
    str content = STR_EMPTY;
    status st = readToEnd(fd, path, max, &content, why);
    if (!is_stdin) close(fd);
    if (st == OK) {
        *out = content;
    } else {
        strFree(&content);
    }
    return st;
}

static status writeAll(int fd, slice content) {
    while (content.len) {
        ssize_t written = sysCallsNow()->write(fd, content.ptr, content.len);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return ERR_IO;
        content = sliceMake(content.ptr + written, content.len - (size_t)written);
    }
    return OK;
}

static status failed(fileFailure *failure, fileStep step) {
    *failure = (fileFailure){step, errno};
    return ERR_IO;
}

/* Creates the file `name` with `content`. */
static status writeNew(const char *name, slice content, const struct stat *old, mode_t mode,
                       fileFlush flush, fileFailure *failure) {
    /* Never more permissive than the old file, not even temporarily. */
    if (old) mode = old->st_mode & 0700;
    int fd = fileOpen(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return failed(failure, FILE_CREATE);
    status st = OK;
    /* fchown() precedes fchmod(), which gives rights to the group, and clears set-id bits. */
    if (old && fchown(fd, old->st_uid, old->st_gid) != 0) {
        st = failed(failure, FILE_OWNER);
    } else if (old && fchmod(fd, old->st_mode & 07777) != 0) {
        st = failed(failure, FILE_OWNER);
    } else if (writeAll(fd, content) != OK) {
        st = failed(failure, FILE_WRITE);
    } else if (flush != FILE_FLUSH_NONE && fileSync(fd) != 0) {
        st = failed(failure, FILE_SYNC);
    }
    if (close(fd) != 0 && st == OK) st = failed(failure, FILE_WRITE);
    return st;
}

/* ------------------------------------------------------------------ writing in place */

/* True if the file cannot be replaced, but possibly written: it is mounted, its folder is not
 * writable, or its owner cannot be given to another file. */
static bool canOnlyBeWritten(const fileFailure *failure) {
    hotCheck(failure->error != 0);
    if (failure->step == FILE_OWNER) return true;
    bool is_name = failure->step == FILE_CREATE || failure->step == FILE_RENAME;
    int error = failure->error;
    return is_name && (error == EACCES || error == EPERM || error == EROFS || error == EBUSY);
}

/* Overwrites an existing file. Disk space is reserved first, so that a full disk leaves the old
 * content; a crash may leave a part of both. */
static status writeInPlace(const char *path, slice content, off_t old_size, fileFlush flush,
                           fileFailure *failure) {
    int fd = fileOpen(path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return failed(failure, FILE_CREATE);
    status st = OK;
    off_t len = (off_t)content.len;
    int error = len > old_size ? posix_fallocate(fd, 0, len) : 0;
    if (error) {
        bool was_restored = ftruncate(fd, old_size) == 0;
        (void)was_restored; /* else zeros follow the old content; the failure is told anyway */
        errno = error;
        st = failed(failure, FILE_WRITE);
    } else if (writeAll(fd, content) != OK || ftruncate(fd, len) != 0) {
        st = failed(failure, FILE_WRITE);
    } else if (flush != FILE_FLUSH_NONE && fileSync(fd) != 0) {
        st = failed(failure, FILE_SYNC);
    }
    if (close(fd) != 0 && st == OK) st = failed(failure, FILE_WRITE);
    return st;
}

static status syncFolder(const char *folder, const char **step) {
    *step = "open";
    int fd = fileOpen(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return ERR_IO;
    *step = "fsync";
    /* EINVAL: the file system does not support fsync of directories. */
    status st = fileSync(fd) == 0 || errno == EINVAL ? OK : ERR_IO;
    int error = errno;
    close(fd);
    errno = error;
    return st;
}

/* The directory of `path`: "." if it contains none. */
static str folderOf(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strNew(SLICE("."));
    return strNew(sliceMake(path, slash == path ? 1 : (size_t)(slash - path)));
}

/* The name of the file that a symbolic link refers to, which need not exist; `path` if it is no
 * link. ERR_IO with errno if links form a loop. */
static status followLinks(const char *path, str *out) {
    strAppendText(out, path);
    for (int links = 0; links < LINKS_MAX; links++) {
        char target[PATH_MAX];
        ssize_t len = readlink(strText(out), target, sizeof(target));
        if (len < 0) return OK;
        if (target[0] != '/') {
            str folder = folderOf(strText(out));
            strClear(out);
            strAppendSlice(out, strSlice(&folder));
            strAppendByte(out, '/');
            strFree(&folder);
        } else {
            strClear(out);
        }
        strAppendSlice(out, sliceMake(target, (size_t)len));
    }
    errno = ELOOP;
    return ERR_IO;
}

/* Fails with errno if `old` must not be replaced: who may not write a file must not get around it
 * by the right to rename files in its folder. */
static status checkOld(const char *path, const struct stat *old) {
    if (!S_ISREG(old->st_mode)) {
        errno = S_ISDIR(old->st_mode) ? EISDIR : EINVAL;
        return ERR_IO;
    }
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? OK : ERR_IO;
}

/* Flushes the directory of `path`. */
static status syncFolderOf(const char *path, fileFailure *failure) {
    str folder = folderOf(path);
    const char *unused;
    status st = syncFolder(folder.ptr, &unused);
    if (st != OK) st = failed(failure, FILE_SYNC_FOLDER);
    strFree(&folder);
    return st;
}

/* Makes `copy` another name of the file `name`, instead of a file that has it. */
static status linkAs(const char *name, const char *copy, fileFailure *failure) {
    str link_name = STR_EMPTY;
    strAppendFormat(&link_name, "%s.copy", name);
    status st = OK;
    if (link(name, link_name.ptr) != 0 || sysCallsNow()->rename(link_name.ptr, copy) != 0) {
        st = failed(failure, FILE_LINK);
        unlink(link_name.ptr); /* removes nothing if there is no such name */
    }
    strFree(&link_name);
    return st;
}

/* Replaces a file whose name is no link. `old` is NULL if there is none; `copy` is NULL or the
 * other name that the new file gets first. */
static status replaceFile(const char *path, const char *copy, slice content, const struct stat *old,
                          mode_t mode, fileFlush flush, fileFailure *failure) {
    char id[17] = {0};
    randomHex(id, sizeof(id) - 1);
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s.%s.tmp", path, id);
    status st = writeNew(name.ptr, content, old, mode, flush, failure);
    if (st == OK && copy) st = linkAs(name.ptr, copy, failure);
    if (st == OK && sysCallsNow()->rename(name.ptr, path) != 0) st = failed(failure, FILE_RENAME);
    /* If the file was not created, this removes nothing. */
    if (st != OK) unlink(name.ptr);
    strFree(&name);
    if (st != OK && old && canOnlyBeWritten(failure)) {
        if (copy && failure->step == FILE_RENAME) {
            /* Not before the copy is safe: a crash may leave a part of both contents. */
            st = syncFolderOf(copy, failure);
            if (st != OK) return st;
        }
        return writeInPlace(path, content, old->st_size, flush, failure);
    }
    return st != OK || flush != FILE_FLUSH_ALL ? st : syncFolderOf(path, failure);
}

static status replaceAs(const char *path, const char *copy, slice content, mode_t mode,
                        fileFlush flush, fileFailure *failure) {
    check(failure);
    str real = STR_EMPTY;
    struct stat old;
    status st = followLinks(path, &real);
    bool is_old = st == OK && stat(strText(&real), &old) == 0;
    if (is_old) st = checkOld(strText(&real), &old);
    if (st != OK) {
        st = failed(failure, is_old && !S_ISREG(old.st_mode) ? FILE_RENAME : FILE_CREATE);
    } else if (copy && strcmp(strText(&real), path) != 0) {
        errno = EXDEV; /* its folder may be another one, which is not flushed here */
        st = failed(failure, FILE_LINK);
    } else {
        st = replaceFile(strText(&real), copy, content, is_old ? &old : NULL, mode, flush, failure);
    }
    strFree(&real);
    return st;
}

status fileReplaceAs(const char *path, slice content, mode_t mode, fileFlush flush,
                     fileFailure *failure) {
    return replaceAs(path, NULL, content, mode, flush, failure);
}

status fileReplaceBoth(const char *path, const char *copy, slice content, mode_t mode,
                       fileFailure *failure) {
    check(copy);
    return replaceAs(path, copy, content, mode, FILE_FLUSH_ALL, failure);
}

bool fileIsSame(const char *path, const char *other) {
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(other, &b) != 0) return false;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

status fileReplace(const char *path, slice content, mode_t mode, reason *why) {
    static const char *const steps[] = {
        [FILE_CREATE] = "write",
        [FILE_OWNER] = "set the owner of",
        [FILE_WRITE] = "write",
        [FILE_SYNC] = "fsync",
        [FILE_LINK] = "link",
        [FILE_RENAME] = "rename",
        [FILE_SYNC_FOLDER] = "fsync the directory of",
    };
    fileFailure failure;
    if (fileReplaceAs(path, content, mode, FILE_FLUSH_ALL, &failure) == OK) return OK;
    check((size_t)failure.step < sizeof(steps) / sizeof(*steps));
    errno = failure.error;
    return reasonSetErrno(why, "can't %s %s", steps[failure.step], path);
}

ssize_t fileReadText(const char *path, char *dst, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t len = 0;
    ssize_t got = 1;
    while (got > 0 && len + 1 < cap) {
        got = sysCallsNow()->read(fd, dst + len, cap - 1 - len);
        if (got > 0) len += (size_t)got;
        if (got < 0 && errno == EINTR) got = 1;
    }
    close(fd);
    dst[len] = 0;
    return got < 0 ? -1 : (ssize_t)len;
}

status fileWriteText(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return ERR_IO;
    size_t len = strlen(text);
    bool written = sysCallsNow()->write(fd, text, len) == (ssize_t)len;
    int error = errno;
    close(fd);
    errno = error;
    return written ? OK : ERR_IO;
}

bool fileIsWritable(const char *path) {
    if (access(path, W_OK) == 0) return true;
    if (errno != ENOENT) return false;
    str folder = folderOf(path);
    bool writable = access(folder.ptr, W_OK | X_OK) == 0;
    strFree(&folder);
    return writable;
}

status fileSyncFolder(const char *path, reason *why) {
    str folder = folderOf(path);
    const char *step;
    status st = syncFolder(folder.ptr, &step);
    if (st != OK) st = reasonSetErrno(why, "can't %s directory %s", step, folder.ptr);
    strFree(&folder);
    return st;
}

char *fileAbsolute(const char *path) {
    if (*path == '/') return memDup(path, strlen(path));
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof(folder))) return memDup(path, strlen(path));
    size_t len = strlen(folder);
    for (;;) {
        if (strncmp(path, "./", 2) == 0) {
            path += 2;
        } else if (strncmp(path, "../", 3) == 0) {
            path += 3;
            while (len > 0 && folder[len - 1] != '/') len--;
            if (len > 0) len--;
        } else {
            break;
        }
    }
    if (len > 0 && folder[len - 1] == '/') len--; /* the root directory */
    str absolute = strNew(sliceMake(folder, len));
    strAppendByte(&absolute, '/');
    strAppendText(&absolute, path);
    return absolute.ptr;
}

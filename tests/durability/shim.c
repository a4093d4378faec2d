/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library for LD_PRELOAD that stands between a server and its files.
 *
 *     SHIM_TRACE=PATH          appends a record of each change of a file to PATH: power.py replays
 *     them SHIM_FAULT=CALL:K:ERROR  the K-th call (from 1) of open, write, fsync, rename, unlink or
 *     ftruncate fails with
 *                              this errno; "short" instead of a number: write() writes half
 *     SHIM_RATE=BYTES          a slow disk: a thread writes so many bytes a second at most
 *     SHIM_HANG=PATH           while PATH exists no fsync ends, and a write waits for a fsync that
 *                              runs, as on ext4; with SHIM_HANG_WRITES=no it does not
 *     SHIM_SYNC_MS=MS          a fsync takes so long at least; a write waits for it likewise
 *     SHIM_COUNT=PATH          writes the number of calls of each kind to PATH at exit, for the
 *     choice of K
 *
 * Only files with relative paths count: those in the server's folder. A record is one line,
 * followed by the bytes of a write: "open ID PATH", "opendir ID PATH", "write ID LEN", "cut ID
 * SIZE", "sync ID" before and "synced ID" after an fsync(), "rename FROM TO", "unlink PATH", "mkdir
 * PATH". An ID is that of an open file in this and its child processes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FDS = 4096 };
enum { OPEN, WRITE, FSYNC, RENAME, UNLINK, FTRUNCATE, KINDS };

static const char *const names[KINDS] = {"open", "write", "fsync", "rename", "unlink", "ftruncate"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int trace_fd = -1;
static long ids[FDS]; /* 0: not one of ours */
static long last_id;
static int fault_kind = -1, fault_at, fault_error; /* -1: a short write */
static int *counts;                                /* of this and its child processes together */
static const char *count_path;
static long rate; /* bytes a second; 0: no limit */

static const char *hang_path;
static long sync_ms;
static int writes_wait = 1;
static pthread_rwlock_t disk = PTHREAD_RWLOCK_INITIALIZER; /* locked while a fsync hangs */

static void lockTrace(void) { pthread_mutex_lock(&lock); }
static void unlockTrace(void) { pthread_mutex_unlock(&lock); }

/* In a child there is no thread that would unlock it. */
static void resetInChild(void) {
    unlockTrace();
    disk = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

static void sleepMs(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* A fsync takes as long as it is told. */
static void hang(void) {
    if (!hang_path && !sync_ms) return;
    int saved = errno;
    if (writes_wait) pthread_rwlock_wrlock(&disk);
    if (sync_ms) sleepMs(sync_ms);
    while (hang_path && access(hang_path, F_OK) == 0) sleepMs(1);
    if (writes_wait) pthread_rwlock_unlock(&disk);
    errno = saved;
}

static void waitForSync(void) {
    if ((!hang_path && !sync_ms) || !writes_wait) return;
    pthread_rwlock_rdlock(&disk);
    pthread_rwlock_unlock(&disk);
}

static void __attribute__((constructor)) start(void) {
    const char *path = getenv("SHIM_TRACE"), *fault = getenv("SHIM_FAULT");
    counts =
        mmap(NULL, KINDS * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) abort();
    pthread_atfork(lockTrace, unlockTrace, resetInChild);
    if (getenv("SHIM_COUNT"))
        count_path = strdup(getenv("SHIM_COUNT")); /* the process title replaces the environment */
    if (path)
        trace_fd = (int)syscall(SYS_openat, AT_FDCWD, path,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (getenv("SHIM_HANG")) hang_path = strdup(getenv("SHIM_HANG"));
    if (getenv("SHIM_SYNC_MS")) sync_ms = atol(getenv("SHIM_SYNC_MS"));
    if (getenv("SHIM_HANG_WRITES")) writes_wait = strcmp(getenv("SHIM_HANG_WRITES"), "no") != 0;
    if (getenv("SHIM_RATE")) rate = atol(getenv("SHIM_RATE"));
    char kind[16] = "", error[16] = "";
    if (!fault || sscanf(fault, "%15[a-z]:%d:%15s", kind, &fault_at, error) != 3) return;
    for (int i = 0; i < KINDS; i++) {
        if (!strcmp(kind, names[i])) fault_kind = i;
    }
    fault_error = !strcmp(error, "short") ? -1 : atoi(error);
}

static void __attribute__((destructor)) stop(void) {
    if (!count_path) return;
    FILE *file = fopen(count_path, "w");
    for (int i = 0; file && i < KINDS; i++) fprintf(file, "%s %d\n", names[i], counts[i]);
    if (file) fclose(file);
}

static bool isOurs(int fd) { return fd >= 0 && fd < FDS && ids[fd]; }

/* Counts a call; true if it is to fail. */
static bool fails(int kind) {
    return __sync_add_and_fetch(&counts[kind], 1) == fault_at && kind == fault_kind;
}

/* One system call per record, because child processes append to the same file. */
static void record(const char *line, int line_len, const void *bytes, size_t len) {
    struct iovec parts[] = {{(void *)(uintptr_t)line, (size_t)line_len},
                            {(void *)(uintptr_t)bytes, len}};
    if (trace_fd >= 0 && syscall(SYS_writev, trace_fd, parts, 2) != (long)(len + (size_t)line_len))
        abort();
}

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    record(line, len, NULL, 0);
}

static int openFile(const char *path, int flags, mode_t mode) {
    bool ours = path[0] != '/' && ((flags & O_ACCMODE) != O_RDONLY || flags & O_DIRECTORY) &&
                strcmp(path, "log");
    if (ours && !(flags & O_DIRECTORY) && fails(OPEN)) {
        errno = fault_error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < FDS) {
        ids[fd] = ours ? ((long)getpid() << 20) + ++last_id : 0;
        if (ours) note("%s %ld %s\n", flags & O_DIRECTORY ? "opendir" : "open", ids[fd], path);
        if (ours && flags & O_TRUNC) note("cut %ld 0\n", ids[fd]);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return openFile(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return openFile(path, flags, mode);
}

/* Takes as long as a slow disk takes for `len` bytes. */
static void delay(size_t len) {
    if (!rate) return;
    long long ns = (long long)len * 1000000000 / rate;
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    if (!isOurs(fd)) return syscall(SYS_write, fd, bytes, len);
    if (fails(WRITE)) {
        if (fault_error > 0) {
            errno = fault_error;
            return -1;
        }
        len /= 2;
        if (len == 0) {
            errno = ENOSPC;
            return -1;
        }
    }
    waitForSync();
    pthread_mutex_lock(&lock);
    ssize_t written = syscall(SYS_write, fd, bytes, len);
    if (written > 0) {
        char line[64];
        record(line, snprintf(line, sizeof(line), "write %ld %zd\n", ids[fd], written), bytes,
               (size_t)written);
    }
    pthread_mutex_unlock(&lock);
    delay(len);
    return written;
}

static int syncFile(int fd, long call) {
    if (!isOurs(fd)) return (int)syscall(call, fd);
    if (fails(FSYNC)) {
        errno = fault_error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    long id = ids[fd];
    note("sync %ld\n", id);
    pthread_mutex_unlock(&lock);
    int result = (int)syscall(call, fd);
    hang();
    pthread_mutex_lock(&lock);
    if (result == 0) note("synced %ld\n", id);
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return syncFile(fd, SYS_fsync); }
int fdatasync(int fd) { return syncFile(fd, SYS_fdatasync); }

static int cutFile(int fd, off_t size) {
    if (!isOurs(fd)) return (int)syscall(SYS_ftruncate, fd, size);
    if (fails(FTRUNCATE)) {
        errno = fault_error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0) note("cut %ld %ld\n", ids[fd], (long)size);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size) { return cutFile(fd, size); }
int ftruncate64(int fd, off64_t size) { return cutFile(fd, size); }

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (isOurs(fd)) ids[fd] = 0;
    pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_close, fd);
}

int rename(const char *from, const char *to) {
    if (from[0] != '/' && fails(RENAME)) {
        errno = fault_error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (result == 0 && from[0] != '/') note("rename %s %s\n", from, to);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) {
    if (path[0] != '/' && fails(UNLINK)) {
        errno = fault_error;
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0 && path[0] != '/') note("unlink %s\n", path);
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (result == 0 && path[0] != '/') note("mkdir %s\n", path);
    pthread_mutex_unlock(&lock);
    return result;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that a program compiled with a new glibc calls and glibc 2.28 does not have. Linked into the programs of
 * `make tarball` (old_glibc.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>

/* ---- the start of a program ------------------------------------------------------------------ */

typedef int mainProc(int, char **, char **);
typedef void initProc(int, char **, char **);

/* Up to glibc 2.33 the program runs its own constructors, in a function that it passes to __libc_start_main(); later
 * versions do the same for a program that passes one. Start files of glibc 2.34 and later pass none. */
extern initProc *__init_array_start[] __attribute__((visibility("hidden")));
extern initProc *__init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);
int __real___libc_start_main(mainProc *entry, int argc, char **argv, initProc *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(mainProc *entry, int argc, char **argv, initProc *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end);

static void runConstructors(int argc, char **argv, char **environment) {
    _init();
    for (initProc **proc = __init_array_start; proc < __init_array_end; proc++) (*proc)(argc, argv, environment);
}

int __wrap___libc_start_main(mainProc *entry, int argc, char **argv, initProc *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end) {
    return __real___libc_start_main(entry, argc, argv, init ? init : runConstructors, fini, loader_fini, stack_end);
}

/* ---- files: functions since glibc 2.33, calls with the version of struct stat before -------------- */

#ifdef __x86_64__
enum { STAT_VERSION = 1 };
#else
enum { STAT_VERSION = 0 };
#endif

int __xstat(int version, const char *path, struct stat *result);
int __lxstat(int version, const char *path, struct stat *result);
int __fxstat(int version, int fd, struct stat *result);
int __fxstatat(int version, int folder, const char *path, struct stat *result, int flags);

int stat(const char *path, struct stat *result) { return __xstat(STAT_VERSION, path, result); }
int lstat(const char *path, struct stat *result) { return __lxstat(STAT_VERSION, path, result); }
int fstat(int fd, struct stat *result) { return __fxstat(STAT_VERSION, fd, result); }
int fstatat(int folder, const char *path, struct stat *result, int flags) {
    return __fxstatat(STAT_VERSION, folder, path, result, flags);
}

/* ---- programs that are started ---------------------------------------------------------------- */

/* As in a build with an old glibc (src/io/process.c): descriptors of the server are close-on-exec, those that it has
 * inherited stay open. */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from) {
    (void)actions, (void)from; /* there is no such action */
    return 0;
}

/* ---- stack frames ---------------------------------------------------------------------------- */

int _dl_find_object(void *pc, struct dl_find_object *result);

/* Asked by libgcc, which only the heap profile of jemalloc calls: a sample has no frames then. The server's crash report
 * uses backtrace() of the system. */
int _dl_find_object(void *pc, struct dl_find_object *result) {
    (void)pc, (void)result; /* not found */
    return -1;
}

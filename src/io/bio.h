/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs (close, fsync, read, append, replace: files; free: memory; resolve: names): one
 * thread per kind, jobs of one kind run in order. Submitted by the main thread; the job itself runs
 * on the worker. */
#ifndef IO_BIO_H
#define IO_BIO_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/loop.h"

typedef enum bioKind {
    BIO_CLOSE,
    BIO_FSYNC,
    BIO_FREE,
    BIO_READ,
    BIO_RESOLVE,
    BIO_APPEND,
    BIO_REPLACE,
    BIO_KINDS
} bioKind;
typedef void bioProc(void *arg);

/* Starts the workers if they are not running; `cpus` as in threadSetCpus(). */
void bioInit(const char *cpus);
void bioSubmit(bioKind kind, bioProc *proc, void *arg);
/* A job with a result: 0 or an errno. Runs on the worker. */
typedef int bioTaskProc(void *arg);
/* Receives the result on the main thread, called from the loop of bioAttach() or from
 * bioComplete(). */
typedef void bioDoneProc(void *arg, int error);
void bioSubmitTask(bioKind kind, bioTaskProc *task, bioDoneProc *done, void *arg);
/* Delivers results through this loop; NULL stops that, before the loop is freed. No descriptor is
 * opened before the first task. */
void bioAttach(loop *l);
/* Calls `done` for all finished tasks in order of completion. */
void bioComplete(void);
size_t bioPending(bioKind kind);
/* Waits until no job of `kind` is pending. */
void bioDrain(bioKind kind);
/* Stops the workers after all pending jobs are done. */
void bioShutdown(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs (close, fsync, free): one thread per kind, jobs of one kind run in order. Submitted by the
 * main thread; the job itself runs on the worker. */
#ifndef IO_BIO_H
#define IO_BIO_H

#include <stddef.h>
#include <stdint.h>

typedef enum bioKind { BIO_CLOSE, BIO_FSYNC, BIO_FREE, BIO_KINDS } bioKind;
typedef void bioProc(void *arg);

/* Starts the workers if they are not running; `cpus` as in threadSetCpus(). */
void bioInit(const char *cpus);
void bioSubmit(bioKind kind, bioProc *proc, void *arg);
size_t bioPending(bioKind kind);
/* Waits until no job of `kind` is pending. */
void bioDrain(bioKind kind);
/* Stops the workers after all pending jobs are done. */
void bioShutdown(void);

#endif

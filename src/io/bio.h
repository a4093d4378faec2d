/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs: close, fsync, free; one thread per kind, jobs of a kind in order.
 * Submit from the main thread; the job itself runs on the worker. */
#ifndef IO_BIO_H
#define IO_BIO_H

#include <stddef.h>
#include <stdint.h>

typedef enum bioKind { BIO_CLOSE, BIO_FSYNC, BIO_FREE, BIO_KINDS } bioKind;
typedef void bioProc(void *arg);

/* Starts the workers on first use; `cpus` as threadSetCpus(). */
void bioInit(const char *cpus);
void bioSubmit(bioKind kind, bioProc *proc, void *arg);
size_t bioPending(bioKind kind);
/* Waits until nothing of `kind` is pending. */
void bioDrain(bioKind kind);
/* Ends the workers after what is pending is done. */
void bioShutdown(void);

#endif

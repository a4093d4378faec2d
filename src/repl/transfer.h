/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A dataset that a primary sends: received and loaded, by way of a file or directly from the
 * connection. The dataset of this server is replaced only when the new one can be expected to be
 * good: a file is complete and its checksum right, and of a socket at least the header is known.
 * Main thread only, apart from the thread that writes the file. */
#ifndef REPL_TRANSFER_H
#define REPL_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "io/conn.h"
#include "psync/link.h"

/* What the owner is told; called from the event loop, never from a function of this file. */
typedef struct transferOwner {
    /* The dataset of this server is going to be removed. */
    void (*dataset_gone)(void *arg);
    /* Bytes have arrived since the last call. */
    void (*heard)(void *arg);
    /* The dataset needs more databases than there are; `ended` follows. */
    void (*lacks_databases)(void *arg);
    /* The transfer has ended; the connection is the owner's again. `rest`: bytes after the
     * dataset. */
    void (*ended)(void *arg, linkResult result, slice rest);
    void *arg;
} transferOwner;

/* Begins. `same_history`: old data may be served while data of the same history is loaded. The
 * connection, which has no callbacks, is the transfer's until it ends. */
void transferBegin(const linkTransfer *what, conn *c, slice received, bool same_history,
                   const transferOwner *owner);
/* Cancels; `ended` is not called. Closes the connection, perhaps later. No effect without a
 * transfer. */
void transferCancel(void);
/* Each 100 ms. */
void transferTick(int64_t now_ms);
/* INFO's fields master_sync_*. */
void transferPrintInfo(str *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of slot_export.h share: the state of an active job, its connection
 * (slot_export_link.c), what is sent over it (slot_export_stream.c), and how that is compressed
 * (slot_export_pack.c). Main thread only. */
#ifndef CLUSTER_SLOT_EXPORT_PRIV_H
#define CLUSTER_SLOT_EXPORT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/str.h"
#include "bus/slot_job.h"
#include "bus/slot_source.h"
#include "cluster/slot_migration.h"
#include "engine/session.h"
#include "io/conn.h"
#include "io/packer.h"
#include "resp/resp.h"

typedef struct exportWork {
    slotJob *job;
    conn *connection; /* until the target has accepted the job; then it is that of `who` */
    session *who;     /* NULL: there is none (any more) */
    str received;     /* the beginning of a reply */
    int db_id;        /* selected at the end of what was sent; -1: none */
    /* Bytes given to the link so far; where the last string that was lent ends in them, and its
     * length. */
    uint64_t given, lent_end;
    size_t lent;
    int64_t told_ms, sent_any_ms, began_ms;
    packer *pack;        /* NULL: the stream is not compressed */
    outbuf plain;        /* bytes to be compressed; empty without `pack` */
    compressCodec codec; /* that of `pack` */
} exportWork;

static inline exportWork *exportOf(const slotJob *job) { return job->work; }
/* The active exports, one after the other; NULL: the first one. Each has its exportWork. */
static inline slotJob *exportNext(const slotJob *after) {
    return slotLogNext(&slotMigrations.log, after, false);
}

/* ---- slot_export.c ---- */

void exportFail(slotJob *job, const char *message);
void exportOn(slotJob *job, slotJobEvent event);

/* ---- slot_export_link.c ---- */

void exportLinkAuth(slotJob *job, slice user_name, slice password);
void exportLinkEstablish(slotJob *job);
void exportLinkSend(slotJob *job, slice bytes);
/* The same by reference. */
void exportLinkLend(slotJob *job, blob *bytes);
/* Bytes that were not sent yet; those that are compressed already count as what they became. */
size_t exportLinkPending(const slotJob *job);
/* The same without those of the last string that was lent: they take no memory of the link. */
size_t exportLinkUnsent(const slotJob *job);
void exportLinkClose(slotJob *job);
/* Applies the output limits of class replica. */
void exportLinkLimit(slotJob *job);
size_t exportLinkMemory(const slotJob *job);

/* ---- slot_export_pack.c ---- */

/* Appends the codecs that this node offers to a target, separated by commas, the strongest one
 * first; nothing: none. */
void exportPackOffer(str *out);
/* The target has accepted the job and named a codec. ERR_NOT_FOUND: it was not offered. */
status exportPackBegin(slotJob *job, slice codec, reason *why) MUST_USE;
/* Bytes that the link was given; a stream that is not compressed has none. */
static inline size_t exportPackPending(const exportWork *w) { return outbufPending(&w->plain); }
/* The next turn compresses what was added to `plain`. */
void exportPackSoon(exportWork *w);
void exportPackEnd(slotJob *job);

/* ---- slot_export_stream.c ---- */

/* slotExportUnsent() without the last string that was lent. */
size_t exportStreamUnsent(const slotJob *job);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of slot_export.h share: the state of an active job, its connection
 * (slot_export_link.c), and what is sent over it (slot_export_stream.c). Main thread only. */
#ifndef CLUSTER_SLOT_EXPORT_PRIV_H
#define CLUSTER_SLOT_EXPORT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cluster/slot_job.h"
#include "cluster/slot_migration.h"
#include "engine/session.h"
#include "io/conn.h"

/* The walk over the keys waits while more than this is unsent. With twice as much, changes wait,
 * until it has been sent, and as many bytes of keys: so keys get half of what the target takes. */
enum { EXPORT_UNSENT_MAX = 512 * 1024 };
/* Before the hand-over, changes that are made faster than they are sent wait after this time. */
enum { EXPORT_BRAKE_MS = 100 };

typedef struct exportWork {
    slotJob *job;
    conn *connection; /* until the target has accepted the job; then it is that of `who` */
    session *who;     /* NULL: there is none (any more) */
    str received;     /* the beginning of a reply */
    int db_id;        /* selected at the end of what was sent; -1: none */
    bool streams;     /* changes are sent */
    bool pauses;      /* writes to the slots wait, until: */
    int64_t pause_end_ms;
    bool brakes;         /* it is because too much is unsent, */
    uint64_t walk_bytes; /* since so many bytes of keys were sent */
    int64_t since_ms;    /* of the connection attempt; of the pause, or of the wait for it */
    int64_t acked_ms, told_ms, sent_any_ms, began_ms;
    /* After the grant: the link is lost, and so many PONGs have arrived since. */
    bool is_lost;
    int pongs;
    int64_t pong_ms;
} exportWork;

static inline exportWork *exportOf(const slotJob *job) { return job->work; }
/* The active exports, one after the other; NULL: the first one. Each has its exportWork. */
static inline slotJob *exportNext(const slotJob *after) {
    return slotLogNext(&slotMigrations, after, false);
}

/* ---- slot_export.c ---- */

void exportFail(slotJob *job, const char *message);
/* The connection is lost: fails the job, unless the target may own the slots already. */
void exportLost(slotJob *job, const char *message);

/* ---- slot_export_link.c ---- */

void exportLinkOpen(slotJob *job);
void exportLinkAuth(slotJob *job, slice user_name, slice password);
void exportLinkEstablish(slotJob *job);
void exportLinkSend(slotJob *job, slice bytes);
void exportLinkClose(slotJob *job);
/* Applies the output limits of class replica. */
void exportLinkLimit(slotJob *job);
size_t exportLinkMemory(const slotJob *job);

/* ---- slot_export_stream.c ---- */

/* Begins to send the keys, as soon as that is possible. */
void exportStreamBegin(slotJob *job);
/* Nothing more is sent. */
void exportStreamEnd(slotJob *job);
/* Arms the sink if any job needs it. */
void exportStreamUpdate(void);
/* Bytes of keys that were sent so far; UINT64_MAX: all of them. */
uint64_t exportStreamSent(const slotJob *job);
typedef struct exportProgress {
    double percent, bytes_per_second;
    uint64_t keys_total;
    int64_t seconds_left;
} exportProgress;
exportProgress exportStreamProgress(const slotJob *job);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What replicas have confirmed (replication-quorum): which changes of this primary are on so many
 * replicas that their replies may leave, and whether that many replicas can be reached. A plain
 * struct without clock and sockets, for a simulation, too; one thread at a time.
 *
 * Replicas of this project announce the capability turn-acks. While the mode is on the stream has
 * REPLCONF GETACK TURN (other replicas take it for GETACK): from then on they acknowledge at the
 * end of each turn that has applied something, not each second. Only they count. An acknowledged
 * offset covers everything before it, so one round trip confirms all that a turn has executed.
 *
 * Invariants: confirmed <= the end of the stream; it decreases only when the settings change. The
 * probe, if any, is an offset at the end of the stream at probe_ms. */
#ifndef PSYNC_QUORUM_H
#define PSYNC_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "psync/primary.h"

typedef struct quorumSettings {
    int replicas; /* replication-quorum; 0: off */
    bool on_disk; /* replication-quorum-durability disk: there, and here */
    int64_t timeout_ms;
    int64_t lease_ms; /* replication-read-lease; 0: none */
} quorumSettings;

typedef struct replQuorum {
    quorumSettings settings;
    bool is_on;        /* the server is a primary, and the mode is on */
    bool is_held;      /* what is not confirmed so far stays so: quorumHold() */
    int64_t written;   /* the end of the last change */
    int64_t confirmed; /* everything before it is on enough replicas */
    bool refuses;      /* there are not enough replicas: nothing new is begun */
    int reachable;     /* replicas that count */
    int64_t lost_ms;   /* since when there have not been enough of them; -1: there are */
    /* An offset whose confirmation is awaited, and since when; -1: none. */
    int64_t probe, probe_ms;
    /* The last probe that was confirmed was at the end of the stream then: until then no other
     * server can have been promoted. -1: none was. */
    int64_t heard_ms;
} replQuorum;

/* The mode is switched on or off, or its settings change; `offset` is the end of the stream. What
 * precedes it was not confirmed under these settings. */
void quorumSet(replQuorum *q, const quorumSettings *settings, bool is_primary, int64_t offset,
               int64_t now_ms);
/* A change ends at `offset`. */
static inline void quorumWrote(replQuorum *q, int64_t offset) { q->written = offset; }
/* On: nothing more is confirmed, whatever the settings become, until it is off again. */
static inline void quorumHold(replQuorum *q, bool on) { q->is_held = on; }
/* Acknowledgements have come, replicas have come or gone, or the own file is on disk up to
 * `own_durable`, which is ignored unless the mode is on_disk (-1: it never is). True if more is
 * confirmed than before. */
bool quorumUpdate(replQuorum *q, const replPrimary *p, int64_t own_durable, int64_t now_ms);
/* Begins to wait for the confirmation of the stream up to `offset`, its end. No effect while
 * another one is awaited. */
void quorumProbe(replQuorum *q, int64_t offset, int64_t now_ms);
/* To be called each 100 ms or so: notices that there have not been enough replicas, or that they
 * have not confirmed anything, for timeout_ms. */
void quorumTick(replQuorum *q, int64_t now_ms);
/* True if this primary may show what it has: without a lease always. */
static inline bool quorumMayRead(const replQuorum *q, int64_t now_ms) {
    if (!q->settings.lease_ms) return true;
    return q->heard_ms >= 0 && now_ms - q->heard_ms < q->settings.lease_ms;
}

#endif

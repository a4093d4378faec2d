/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client tracking: sessions that are told of changes of keys which they may have cached. Main
 * thread only. */
#ifndef PUBSUB_TRACKING_H
#define PUBSUB_TRACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "ds/list.h"
#include "engine/hooks.h"
#include "engine/session_report.h"

enum trackFlag {
    TRACK_ON = 1 << 0,
    TRACK_BCAST = 1 << 1,
    TRACK_OPTIN = 1 << 2,
    TRACK_OPTOUT = 1 << 3,
    TRACK_NOLOOP = 1 << 4,
    TRACK_BROKEN = 1 << 5,  /* the session of the redirection has ended, and that was noticed */
    TRACK_CACHING = 1 << 6, /* CLIENT CACHING was called for the next command */
    TRACK_LINK = 1 << 7,    /* the link of a gateway: tracking_link.c */
};

/* Tracking of one session; exists from its first CLIENT TRACKING on. */
typedef struct tracker {
    session *who;
    uint32_t number;   /* identifies it in the table of keys; not reused while another one has it */
    uint32_t flags;    /* enum trackFlag */
    uint64_t redirect; /* id of the session that gets the invalidations; 0: itself */
    session *target;   /* that session; NULL: it has ended */
    listNode of_target, all;
    struct prefix **prefixes; /* broadcast mode */
    uint32_t prefix_count;
} tracker;

/* True if the table of keys is for it. A link has both modes. */
static inline bool trackerUsesTable(const tracker *t) {
    uint32_t modes = t->flags & (TRACK_ON | TRACK_BCAST);
    return modes == TRACK_ON || t->flags & TRACK_LINK;
}
/* The protocol of invalidations for a session that `t` sends them to: a gateway reads pushes
 * whatever the protocol of its clients is. */
static inline int trackerProto(const tracker *t, const session *target) {
    return t->flags & TRACK_LINK ? 3 : target->proto;
}

/* ---- tracking.c */

/* The tracker of a session, NULL if there is none. */
tracker *trackerOf(const session *s);
/* True if the keys that it reads are remembered now. */
bool trackerRemembers(const tracker *t);
/* The command, whose reads it has or has not remembered, has ended: CLIENT CACHING applies to one
 * command, or transaction. */
void trackerEndCaching(tracker *t, const ctx *c);
/* The tracker with that number, NULL if its session has ended. */
tracker *trackerByNumber(uint32_t number);
/* All trackers. */
list *trackersAll(void);
/* Implements on_session. */
void trackingOnSession(session *s, sessionEvent e);
/* Implements on_db. */
void trackingOnDb(const dbEvent *e);
/* Everything may have changed: tells every tracker. */
void trackingInvalidateAll(void);
/* Somebody may be told to forget something now. Between two equal numbers nobody was. */
void trackingNoteChange(void);
uint64_t trackingChanges(void);
/* True if there are trackers in broadcast mode that are no links. */
bool trackingBroadcasts(void);
/* Fills in the part of tracking. */
void trackingReport(const session *s, sessionReport *out);
/* Arms or disarms the key observer. */
void trackingUpdateArmed(void);
/* Appends the fields of INFO. */
void trackingPrintStats(str *out);
/* The number of sessions that track. */
uint64_t trackingCount(void);
/* Invalidates the keys of slots that this node does not serve any more. */
void trackingSlotsChanged(bool (*is_served)(int slot));
/* Stage job: sends what was collected for broadcasts in this turn. */
void trackingBeforeSleep(void);
/* Continues deferred work; false if nothing remains to be done. */
bool trackingWork(void);
/* Frees everything that does not belong to a session. */
void trackingClear(void);

/* ---- invalidate.c */

/* The session that gets the invalidations of a tracker; NULL if they are not sent. Notices a broken
 * redirection. */
session *invalidationTarget(tracker *t);
/* Sends an invalidation of keys (count -1: of everything) to the target of a tracker. */
void invalidate(tracker *t, const slice *keys, int64_t count);
/* Encodes the same for a protocol. */
struct blob *invalidationEncode(int proto, const slice *keys, int64_t count);

/* ---- tracking_table.c: default mode */

/* The tracker may have cached a key: it is told of the next change. `exists`: the key is in a
 * database. */
void tableRemember(const tracker *t, slice key, uint64_t hash, bool exists);
/* A key was changed, by `by` (NULL: by none). */
void tableChanged(slice key, uint64_t hash, const tracker *by);
/* Forgets all keys; the memory is freed later, in steps. */
void tableForgetAll(void);
uint64_t tableKeys(void);
/* Number of pairs of key and tracker. */
uint64_t tableItems(void);
/* Drops random keys beyond tracking-table-max-keys, with invalidations; at most `most`. True if
 * there are more. */
bool tableEvict(uint64_t most);
void tableDropSlots(bool (*is_served)(int slot));
/* Frees forgotten keys; false if none remain. */
bool tableWork(void);

/* ---- tracking_broadcast.c: broadcast mode */

/* The prefixes of a tracker. Removal is for all. */
void prefixAdd(tracker *t, slice name);
void prefixesRemove(tracker *t);
slice prefixName(const struct prefix *p);
uint64_t prefixesCount(void);
/* A key was changed; `db_id` -1: in some database of another node. */
void broadcastChanged(int db_id, slice key, const tracker *by);
/* Sends invalidations for the keys changed since the last call. */
void broadcastSend(void);
/* Frees what is kept between turns. */
void broadcastFree(void);

#endif

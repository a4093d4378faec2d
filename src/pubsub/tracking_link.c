/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client tracking over a gateway (gateway/README.md). The node that has a key tracks it for the
 * link over which the gateway reads it; the gateway tracks it in its own table for the clients that
 * have read it, as it does for its own keys. So an invalidation follows the reply over the same
 * connection to the gateway, and from there in the order of the client's replies.
 *
 * Invariant: while a client may have cached a key of another node, that node has the key in its
 * table for a link to this one. When such a link ends, all clients are told to forget everything.
 * Main thread only. */
#include "base/base.h"
#include "engine/ctx.h"
#include "pubsub/cmd_tracking.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"
#include "store/store.h"

/* ------------------------------------------------------------------ the node that has the keys */

/* The tracker of a link, switched on. */
static tracker *trackerOfLink(session *link) {
    tracker *t = trackerFor(link);
    if (!(t->flags & TRACK_LINK)) trackingOn(t, TRACK_LINK, NULL);
    return t;
}

void pubsubLinkNext(session *link, bool caches, bool silent) {
    tracker *t = trackerOfLink(link);
    check(t->flags & TRACK_LINK);
    t->flags &= ~(uint32_t)(TRACK_CACHING | TRACK_NOLOOP);
    if (caches) t->flags |= TRACK_CACHING;
    if (silent) t->flags |= TRACK_NOLOOP;
}

void pubsubLinkPrefix(session *link, slice prefix) {
    tracker *t = trackerOfLink(link);
    if (!(t->flags & TRACK_BCAST)) trackingOn(t, TRACK_LINK | TRACK_BCAST, NULL);
    prefixAdd(t, prefix);
    check(t->prefix_count > 0);
}

void pubsubLinkNoPrefixes(session *link) {
    tracker *t = trackerOfLink(link);
    prefixesRemove(t);
    check(t->prefix_count == 0);
}

/* ------------------------------------------------------------------ the gateway */

uint32_t pubsubTrackingOf(const session *s) {
    const tracker *t = trackerOf(s);
    if (!t || !(t->flags & TRACK_ON)) return 0;
    check(!(t->flags & TRACK_LINK));
    uint32_t wants = t->flags & TRACK_BCAST ? PUBSUB_BROADCASTS : 0;
    if (trackerRemembers(t)) wants |= PUBSUB_CACHES;
    if (t->flags & TRACK_NOLOOP) wants |= PUBSUB_SILENT;
    return wants;
}

bool pubsubBroadcasts(void) { return trackingBroadcasts(); }

void pubsubPassedOn(const ctx *c) {
    tracker *t = trackerOf(c->who);
    if (t && t->flags & TRACK_CACHING) t->flags &= ~(uint32_t)TRACK_CACHING;
}

void pubsubHasRead(session *s, slice key) {
    const tracker *t = trackerOf(s);
    bool wants = t && t->flags & TRACK_ON && trackerUsesTable(t);
    if (wants) tableRemember(t, key, storeHash(key), false);
    if (wants && tableEvict(100)) pubsubWorkLater();
}

void pubsubHasChanged(slice key, session *by) {
    const tracker *who = by ? trackerOf(by) : NULL;
    trackingNoteChange();
    if (tableKeys()) tableChanged(key, storeHash(key), who);
    if (trackingBroadcasts()) broadcastChanged(-1, key, who);
}

uint64_t pubsubChanges(void) { return trackingChanges(); }

void pubsubMustForget(session *s, slice key) {
    tracker *t = trackerOf(s);
    if (t && t->flags & TRACK_ON) invalidate(t, &key, 1);
}

/* Links are told of the keys of this node alone: two gateways that pass on what each hears of the
 * other would never end. What the table has of the keys is kept: links rely on it. */
void pubsubForgetAll(void) {
    list *all = trackersAll();
    trackingNoteChange();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        tracker *t = LIST_OWNER(n, tracker, all);
        if (t->flags & TRACK_ON && !(t->flags & TRACK_LINK)) invalidate(t, NULL, -1);
    }
}

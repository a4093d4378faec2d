/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests on slots that are being moved key by key: whether their keys are on this node. Nothing
 * is touched, expired or counted by it. Main thread only. */
#ifndef CLUSTER_OPEN_REQUESTS_H
#define CLUSTER_OPEN_REQUESTS_H

#include "engine/ctx.h"
#include "engine/hooks.h"

typedef enum openPresence {
    OPEN_ALL_HERE, /* also of a request without keys */
    OPEN_NONE_HERE,
    OPEN_SOME_HERE,   /* or the keys are in several databases, so that it cannot be said */
    OPEN_ONE_MISSING, /* there is one key, perhaps repeated, which is not here */
} openPresence;

/* Looks for the keys of a request, at EXEC for those of the whole transaction. The declared keys of
 * a script count as present, because they were when the script began. */
openPresence openRequestPresence(const ctx *c);

/* True for a request whose key is in two databases, in one of which it is missing. */
bool openRequestUsesDatabases(const ctx *c);

/* ASKING: what the session sends next is for slots that this node imports; observes until when. */
void openRequestsAsking(session *s);
extern const commandObserver openRequestsObserver;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the gateway treats each command: by a table of names, and by its spec for all others.
 * Pure. */
#ifndef GATEWAY_ROUTE_H
#define GATEWAY_ROUTE_H

#include "base/slice.h"
#include "engine/command.h"
#include "gateway/merge.h"

typedef enum routeKind {
    ROUTE_LOCAL,   /* executed by this node: it is about the connection or the node */
    ROUTE_ORDERED, /* the same, after all earlier replies: it changes the connection */
    ROUTE_SLOT,    /* by the owner of the slot of its keys; without keys by this node */
    ROUTE_SPLIT,   /* each owner executes it for its keys; the replies are merged */
    ROUTE_FETCH,   /* as ROUTE_SLOT; keys of several slots are fetched, if that is allowed */
    ROUTE_ALL,     /* all primaries execute it; the replies are merged */
    ROUTE_EACH,    /* the same, without keys: it may take long, so on links of their own */
    ROUTE_NODES,   /* all nodes that can be reached execute it; the replies are merged */
    ROUTE_PUBLISH,
    ROUTE_SHARD,    /* executed by this node, once the owners send the messages */
    ROUTE_TRACKING, /* executed by this node, once the others have been told */
    ROUTE_SCAN,     /* as CLUSTERSCAN */
    ROUTE_INFO,     /* executed here, with the texts of a standalone server */
    ROUTE_EXEC,
    ROUTE_WATCH,
    ROUTE_UNWATCH, /* DISCARD, UNWATCH */
    ROUTE_ABSENT,  /* what a server without cluster mode does not have */
    ROUTE_REFUSED
} routeKind;

typedef struct route {
    routeKind kind;
    mergeKind merge; /* of those that are merged */
    const char *why; /* of ROUTE_REFUSED: the end of the error */
} route;

/* `name` is that of the command at start, "config|get". */
route routeOf(slice name, const commandSpec *spec);
/* False for those that are not possible in a transaction. */
bool routeIsQueued(const route *r);
/* True for commands without keys that may be in a transaction which another node executes. */
bool routeMayBeQueued(slice name);

#endif

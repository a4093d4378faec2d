/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redirects that the gate does not reply. Main thread only. */
#ifndef CLUSTER_REDIRECT_H
#define CLUSTER_REDIRECT_H

#include "engine/ctx.h"

/* Ends the waits for keys that would not begin any more, with MOVED or CLUSTERDOWN: after changes
 * of slots, roles or the state of the cluster, when no command is being executed. */
void redirectBlocked(void);
/* A command that is running replies that the node which gets the slot is to be asked. The slot is
 * marked as given away. */
void redirectAsk(ctx *c, int slot);

#endif

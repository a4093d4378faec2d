/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Redirects of clients that are blocked. Main thread only. */
#ifndef CLUSTER_REDIRECT_H
#define CLUSTER_REDIRECT_H

/* Ends the waits for keys that would not begin any more, with MOVED or CLUSTERDOWN: after changes
 * of slots, roles or the state of the cluster, when no command is being executed. */
void redirectBlocked(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users, roles, functions and directives that all nodes share: cluster-shared-acl,
 * cluster-shared-functions and cluster-shared-config. The state and how it is merged are in
 * bus/shared_state.h; this connects it with the users, libraries and directives of this server,
 * shared_link.h with other nodes, shared_file.h with the disk. Main thread only. */
#ifndef CLUSTER_SHARED_STATE_H
#define CLUSTER_SHARED_STATE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "bus/shared_state.h"

extern sharedState serverShared;

/* True if a directive is on, and other nodes can prove that they are nodes: by cluster-bus-secret
 * or, without one, with tls-cluster. */
bool sharedIsOn(void);
/* At the start, when the users are loaded: those of the state replace them, before any client is
 * served, as one that was deleted may still be in the ACL file. */
void sharedReadUsers(void);
/* True if the directives say so, also while the server starts: new nodes wait for this one. */
bool sharedAnnouncesAcl(void);
bool sharedAnnouncesFunctions(void);
bool sharedAnnouncesConfig(void);
/* The dataset is loaded, too: from now on changes are shared. */
void sharedStart(void);
/* `apply` of the directives. */
status sharedApplyDirective(reason *why);
/* The end of a turn: what commands have changed is written and sent. */
void sharedStep(void);
/* Periodic job. */
void sharedTick(int64_t budget_us);
/* True if entries of other nodes can be taken now; what this node has changed so far is written. */
bool sharedMayTake(void);
/* Merges an entry of another node, by its label in logs; sharedApply() follows. */
void sharedTake(const sharedEntry *e, const char *from);
/* Makes users and functions of this node those of the chosen versions. */
void sharedApply(void);
/* CLUSTER RESET: the state begins anew with the users and functions of this node. */
void sharedReset(void);
/* Before the server ends. */
void sharedSaveNow(void);
/* Fields of CLUSTER INFO; none if nothing is shared. */
void sharedPrintInfo(str *out);

#endif

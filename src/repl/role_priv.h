/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What replication knows of the cluster: the functions of replSetCluster(). */
#ifndef REPL_ROLE_PRIV_H
#define REPL_ROLE_PRIV_H

#include "repl/role.h"

/* The id of this node; empty without a cluster. */
slice roleOwnNode(void);
/* The id of the node that this one is a replica of; empty: it is none of a cluster. */
slice rolePrimaryNode(void);
bool roleKnowsNode(slice id);

#endif

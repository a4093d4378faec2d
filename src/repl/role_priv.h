/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of the cluster, as replication knows them by the functions of replSetCluster(). */
#ifndef REPL_ROLE_PRIV_H
#define REPL_ROLE_PRIV_H

#include "base/str.h"
#include "repl/role.h"

/* The id of this node; empty without a cluster. */
slice roleOwnNode(void);
/* Appends what names the primary of this replica in a file: the id of its node; host:port if this
 * server is no replica of a cluster. */
void roleAppendPrimary(str *out);
bool roleKnowsNode(slice id);

#endif

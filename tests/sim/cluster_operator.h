/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What operators do to simulated nodes of a cluster. */
#ifndef TESTS_SIM_CLUSTER_OPERATOR_H
#define TESTS_SIM_CLUSTER_OPERATOR_H

#include "cluster_node.h"

/* A random node; it may not run. */
simNode *operatorAnyNode(void);
/* CLUSTER MEET by address. */
void operatorMeet(simNode *n, const simNode *other);
/* CLUSTER REPLICATE; nothing if it is refused. */
void operatorReplicate(simNode *n, const simNode *primary);
/* CLUSTER FAILOVER in one of its forms; nothing if it is refused. */
void operatorFailover(simNode *n, manualOrder order);
/* CLUSTER FORGET, at a random moment, of a node that has no vote; RESET of such a node. */
void operatorForget(simNode *n);
void operatorReset(simNode *n);
/* RESET of a node that may have a set of voters: the rules know that it forgets it. */
void operatorResetMember(simNode *n);
/* Takes slots with a new epoch, as the end of a slot migration does. */
void operatorTakeSlots(simNode *n);
/* Does what is left to do after failures, again and again, until nothing is: nodes that others do
 * not know are met, ids that no server has are forgotten, empty primaries become replicas. Returns
 * what it has done, NULL: nothing. */
const char *operatorRepair(void);

#endif

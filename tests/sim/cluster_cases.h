/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cases that random faults seldom lead to: each is begun on purpose in a cluster that works, with
 * random nodes, and has an expected end. */
#ifndef TESTS_SIM_CLUSTER_CASES_H
#define TESTS_SIM_CLUSTER_CASES_H

#include "cluster_node.h"

/* One of them, in a cluster of which all nodes agree and serve requests; they do so afterwards. */
void casesRun(void);

/* ---- cluster.c ---- */

/* A new cluster that works: `replicas` of each of `owners` primaries, in one network; `together`:
 * they are all of the first one. */
void clusterForm(int owners, int replicas, bool together);
/* All faults end, stopped nodes start, and operators do what is left to do: all nodes agree and
 * serve requests, or it fails. */
void clusterHeal(void);
/* Faults of the network and of nodes at random, in a step. */
void clusterInjectFaults(void);
/* The invariants of all maps. */
void clusterVerify(void);
/* A step of the clock, with all checks. */
void clusterStep(void);
/* A replica of the primary that may be elected: it has lost it only now. */
bool clusterHasCurrentReplica(const clusterNode *primary);
/* Until all nodes have the same picture; fails if it takes longer. */
void clusterAgree(void);
/* Until all nodes serve requests, and replicas have the data of their primary. */
void clusterAwaitService(void);

#endif

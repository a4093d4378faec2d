/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules about sets of voters (src/cluster/README.md) that a simulated cluster is checked
 * against. They are written from the description, not from the implementation. */
#ifndef TESTS_SIM_CLUSTER_VOTER_RULES_H
#define TESTS_SIM_CLUSTER_VOTER_RULES_H

#include "cluster_node.h"

void voterRulesReset(void);
/* The node has another id, or has lost its file. */
void voterRulesForget(const simNode *n);
/* The process has ended while it saved its map: the file has that set. */
void voterRulesLost(const simNode *n, voterStamp saved);
/* After everything that a node does: one set has one age, and one node makes the sets of a term. */
void voterRulesCheck(const simNode *n);
/* In each step: no two nodes could have majorities that have no node in common. */
void voterRulesCheckMajorities(void);

bool voterRulesMayVote(const clusterMap *m, const clusterNode *n);
/* True if the host has, or had last, that id. */
bool voterRulesHasId(int host, const char *id);
/* True if a majority of the voters agrees, as that map has them. */
typedef bool voterRulesTest(const void *arg, const char *id);
bool voterRulesAgree(const clusterMap *m, voterRulesTest *agrees, const void *arg);

#endif

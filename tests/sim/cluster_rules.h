/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of the bus that a simulated cluster is checked against when something happens: what has
 * been asked, voted and won so far, and what each node may conclude from what it knows. They are
 * written from the description of the protocol, not from its implementation. */
#ifndef TESTS_SIM_CLUSTER_RULES_H
#define TESTS_SIM_CLUSTER_RULES_H

#include "cluster_node.h"

/* A new run. `strict`: only elections change owners of slots, and nodes keep their files. */
void rulesReset(bool strict);
bool rulesAreStrict(void);
/* The node has another id or has lost its file: it may vote again. */
void rulesForgetVotes(const simNode *n);
/* A node has the epoch by TAKEOVER. */
void rulesTookOver(uint64_t epoch);
/* After CLUSTER RESET: a node with another id may vote again; the votes of the old one count. */
void rulesRename(const simNode *n, const char old_id[NODE_ID_LEN]);
/* Requests for votes, votes and elections. `candidate` NULL: it does not run. */
void rulesAsked(const simNode *candidate, const messageHeader *h);
void rulesVoted(const simNode *voter, const simNode *candidate, uint64_t epoch);
/* A node decides that; the message leaves it later, or never if it ends before. */
void rulesAsks(const simNode *candidate, const messageHeader *h);
void rulesVotes(const simNode *voter, const simNode *candidate, uint64_t epoch);
/* A vote is refused; the candidate is told. */
void rulesRefused(const simNode *voter, const simNode *candidate, const message *m);
void rulesWon(const simNode *winner, uint64_t epoch);
/* The node, which makes sets of voters, was elected for it in that epoch. */
bool rulesMayLead(const simNode *n, uint64_t epoch);
/* A node has told that another one has failed. */
void rulesToldFailed(const simNode *n, const char *id);
/* A replica follows another primary from now on, by order or not. */
void rulesFollow(simNode *n, const clusterNode *primary);
/* After everything that a node does. */
void rulesCheck(simNode *n);
/* No two nodes own a slot in the same epoch. */
void rulesCheckOwners(void);

#endif

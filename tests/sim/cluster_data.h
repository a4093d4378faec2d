/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datasets of simulated nodes of a cluster. A version stands for a dataset; each write makes a new
 * one from that of its primary, so versions form a tree, and a dataset includes the writes on the
 * way to the root. Replication itself is simulated by the scenario of that name; here a replica
 * that reaches its primary takes its version after a while, at once if it is a later one of its
 * own, else by a synchronisation during which it has none. */
#ifndef TESTS_SIM_CLUSTER_DATA_H
#define TESTS_SIM_CLUSTER_DATA_H

#include "cluster_node.h"

enum { VERSION_EMPTY = 0, VERSION_NONE = -1, VERSIONS_MAX = 1 << 16 };

void dataReset(void);
/* The empty dataset. */
void dataInit(simNode *n);
/* A primary has started with its data: its replicas get a stream that begins anew, in which
 * offsets are small, or the one that was saved, under another id. */
void dataRestartStream(simNode *n, bool anew);
/* A node is promoted: what follows has another id. */
void dataNewId(simNode *n);
/* True if offsets of both versions are of one stream, or of its continuation under another id. */
bool dataIsOneStream(int version, int other);
/* The stream of its primary ends. */
void dataDisconnect(simNode *n);
/* Replication in a step of the clock. */
void dataStep(simNode *n);
/* A change of its dataset, whose version is returned. */
int dataAppend(simNode *n);
/* The version that a version was made from. */
int dataParent(int version);
/* True if the dataset of `later` has that of `earlier`, a known version. */
bool dataIncludes(int later, int earlier);
/* A write of a client, if the node accepts it. */
void dataWrite(simNode *n);
/* Deletes the keys of slots that other nodes own. */
void dataDropForeign(simNode *n);
/* A slot of another node of which a primary has keys; -1: none. */
int dataForeignSlot(const simNode *n);
/* Of its stream; 0 without data. Of a known version. */
int64_t dataOffset(const simNode *n);
int64_t dataOffsetOf(int version);
/* True if the stream of its present primary arrives. */
bool dataIsLinked(const simNode *n);
/* ms since it had the data of its primary; -1: never. */
int64_t dataAge(const simNode *n);
/* Fails the simulation if a node that becomes a primary lacks writes that it must have. */
void dataPromoted(const simNode *n);
/* True if the replica has exactly the data of its primary. */
bool dataIsSame(const simNode *replica, const simNode *primary);

#endif

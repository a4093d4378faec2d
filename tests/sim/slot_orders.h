/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots of the simulation that are moved key by key: CLUSTER SETSLOT at a node, which its replicas
 * execute first (src/cluster/cmd_setslot.c), MIGRATE of one key, whose two sides change in one step
 * of the clock, and the operator who gives these orders, as valkey-cli does, and continues after
 * failures with the primaries that there are then. */
#ifndef TESTS_SIM_SLOT_ORDERS_H
#define TESTS_SIM_SLOT_ORDERS_H

#include "slot_node.h"

/* Before nodes are made. */
void ordersReset(void);
/* Begins to move the slot, if it is not being moved already: to the shard of that node. */
void ordersMove(int slot, const simNode *to);
/* What the operator and the nodes that wait for replicas do in a step of the clock. `owner`: the
 * host of the slot's owner. */
void ordersStep(int slot, int owner);
/* A node that keeps its dataset and its stream stops: orders that wait there are undone. */
void ordersStopping(const simNode *n);
/* True if a move has begun and has not ended. */
bool ordersRun(int slot);

/* Where a client is sent by that owner that asks for the key: NULL: not elsewhere. */
simSlots *ordersAskedFor(const simSlots *owner, int key);
/* Whether the node executes a command of a client that sent ASKING. */
bool ordersServe(const simSlots *s, int key, bool is_write);
/* The host to which the node moves the slot, by its mark; -1: none. */
int ordersPeerOf(const simSlots *s, int slot);
/* Fails the simulation if a replica has other marks than its primary. */
void ordersCheckMarks(const simNode *replica, const simNode *primary);

typedef struct simOrderCounts {
    uint64_t moves, ended, orders, refused, undone, waits, keys;
} simOrderCounts;
extern simOrderCounts order_counts;

#endif

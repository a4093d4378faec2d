/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two sides of a simulated server. */
#ifndef TESTS_SIM_SERVER_PRIV_H
#define TESTS_SIM_SERVER_PRIV_H

#include "server.h"

extern const primaryEnv simPrimaryEnv; /* primary_side.c */
extern const linkEnv simLinkEnv;       /* replica_side.c */

void simPrimaryStep(simServer *s);
void simReplicaStep(simServer *s);
/* The connection of a replica has ended. */
void simForgetPeer(simServer *s, wire *w);
void simServerMoved(simServer *s);

#endif

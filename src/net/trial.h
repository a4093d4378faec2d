/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections on trial: a few connections beyond maxclients are accepted, because they may be
 * replicas or slot migrations, which a storm of clients must not keep out. If such a connection
 * sends any other command, the command is refused with the error for too many clients, and the
 * connection is closed. Main thread only. */
#ifndef NET_TRIAL_H
#define NET_TRIAL_H

#include "net/client.h"

/* Number of connections beyond maxclients that may exist, those on trial and those that have passed
 * it. */
enum { TRIAL_PLACES = 8 };
/* True if another connection may be accepted on trial. */
bool trialHasPlace(void);
/* Puts the client on trial. `text`, a constant, is the error for connections that are no
 * replication. There must be a place. */
void trialBegin(client *cl, slice text);
/* Ends the trial: the client has become a replica, or is being closed. Does nothing if the client
 * is not on trial. */
void trialEnd(client *cl);

#endif

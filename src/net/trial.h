/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections beyond maxclients that may turn out to be replication: a few are accepted on trial,
 * so that a storm of clients does not keep replicas and slot migrations out. Other commands are
 * refused with the error that the connection would have got, and end it. Main thread only. */
#ifndef NET_TRIAL_H
#define NET_TRIAL_H

#include "net/client.h"

/* How many connections beyond maxclients there may be on trial, or that have passed it. */
enum { TRIAL_PLACES = 8 };
/* True if another connection may be accepted on trial. */
bool trialHasPlace(void);
/* `text`: the error for what is no replication, constant. There must be a place. */
void trialBegin(client *cl, slice text);
/* The client has become a replica, or is being closed. May be called for others. */
void trialEnd(client *cl);

#endif

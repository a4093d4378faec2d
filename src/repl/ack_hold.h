/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Acknowledgements that are held back by order of a client, which is about to promote a replica:
 * REPLCONF HOLD-ACKS. Sentinel does so with replication-quorum, so that the old primary confirms
 * nothing that the promoted replica lacks. Main thread only.
 *
 * Invariant: only the connection with the last order may promote this replica, and only in the
 * first half of the time that it has ordered. So who orders the same of several replicas knows
 * that none of them acknowledges anything before the promotion or its refusal, whenever the order
 * to promote is executed. */
#ifndef REPL_ACK_HOLD_H
#define REPL_ACK_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/session.h"

enum { ACK_HOLD_MAX_MS = 3600 * 1000 };

/* This replica acknowledges nothing more than what it has now for `ms` from now on, at most
 * ACK_HOLD_MAX_MS; 0 ends the last order of `by`. Orders of other connections are never
 * shortened. Fails, and changes nothing, if the order cannot be kept on disk: it lasts over a
 * restart (ack_hold_file.h). */
status ackHoldOrder(session *by, int64_t ms, reason *why) MUST_USE;
/* At the start, before the link to the primary: an order to the former process is in force again,
 * for its whole time. The client that has ordered it may promote this replica only after a new
 * order. */
void ackHoldResume(void);
/* False: `by` has ordered it, but the time in which it may promote has passed, or another
 * connection has ordered it since. */
bool ackHoldAllowsPromotion(const session *by);
/* False: `by` has ordered it, and another connection since, whose order is in force: that one
 * relies on it, so this replica must not follow another primary either. */
bool ackHoldAllowsFollowing(const session *by);
/* How long acknowledgements are held, in ms from now; 0: they are not. */
int64_t ackHoldRestMs(void);
/* This replica follows another primary, replConf has it already, or is one. */
void ackHoldForget(void);
void ackHoldTick(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output of sessions that waits for replicas (replication-quorum). While the mode is on stage WRITE
 * asks here what may leave: output waits until the offset is confirmed that the stream had when the
 * output was made. So whatever tells of a change waits for it: replies, messages, invalidations,
 * what scripts and waits reply. Two refinements:
 *
 * - A session whose requests since its last output have only read single keys waits for the last
 *   changes of these keys' slots alone (in any mode a slot is 1 of 16384 by the hash of the key),
 *   or for some of the next ones (slot_offsets.h).
 * - Commands that are known to tell nothing of the dataset (CMD_TELLS_NOTHING: PING, INFO, CONFIG,
 *   CLIENT, ...) do not wait. All others do, those of modules, too.
 *
 * Order is kept: nothing leaves before what precedes it on the same connection. Not held: streams
 * to replicas and from a primary, and slots that are exported. Main thread only. */
#ifndef REPL_HELD_OUTPUT_H
#define REPL_HELD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/hooks.h"
#include "repl/quorum.h"

/* After all other gates, armed while the mode is on: notes what the output of a read depends on.
 * Refuses nothing. */
extern const gate heldOutputGate;
/* In place of replicasSink while the mode is on: adds to the stream, and notes what has changed. */
extern const sink heldOutputSink;

/* The mode begins: what is in the keyspace waits for the offset q->written. `q` is borrowed. */
void heldOutputBegin(replQuorum *q);
/* It ends; everything leaves. */
void heldOutputEnd(void);
/* It ends because this server is a primary no more: sessions whose output waits are closed. */
void heldOutputAbandon(void);
/* More was confirmed: what has waited for it leaves in this turn. */
void heldOutputRelease(void);
/* Output that has waited for as long as the timeout is replaced by an error, after which its
 * connection is closed. `now_ms`: monotonic. */
void heldOutputExpire(int64_t now_ms);
/* All keys may have been changed by what precedes q->written. */
void heldOutputNoteAll(void);
/* A request of the session was refused: its reply tells nothing. */
void heldOutputNoteRefusal(session *s);
/* The offset on which the reply to the request depends; 0: it tells nothing of the keyspace. */
int64_t heldOutputNeed(const ctx *c);
/* True if the reply tells nothing of the dataset: the command has CMD_TELLS_NOTHING; of EXEC: all
 * commands of the transaction have it, and no key is watched. */
bool heldOutputTellsNothing(const ctx *c);

typedef struct heldOutputStats {
    size_t clients, bytes; /* whose output waits */
    uint64_t expired;      /* since the start or CONFIG RESETSTAT */
} heldOutputStats;
heldOutputStats *heldOutputStatistics(void);
/* True if output of the session waits. */
bool heldOutputIsHeld(const session *s);

#endif

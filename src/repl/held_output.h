/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output of sessions that waits until changes are safe. A hold numbers changes by positions that
 * ascend: replication-quorum by offsets of the stream (quorum_server.c), the append only file by
 * the numbers of changes (aof_output.c). While a hold is on stage WRITE asks here what may leave:
 * output waits until the position is confirmed that the last change had when the output was made.
 * So whatever tells of a change waits for it: replies, messages, invalidations, what scripts and
 * waits reply. Two refinements:
 *
 * - A session whose requests since its last output have only read single keys waits for the last
 *   changes of these keys' slots alone (in any mode a slot is 1 of 16384 by the hash of the key),
 *   or for some of the next ones (slot_offsets.h).
 * - Commands that are known to tell nothing of the dataset (CMD_TELLS_NOTHING: PING, INFO, CONFIG,
 *   CLIENT, ...) do not wait. All others do, those of modules, too.
 *
 * Order is kept: nothing leaves before what precedes it on the same connection. With several holds
 * output leaves when all of them permit it. Not held: streams to replicas and from a primary, and
 * slots that are exported. Main thread only. */
#ifndef REPL_HELD_OUTPUT_H
#define REPL_HELD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/list.h"
#include "engine/hooks.h"
#include "engine/session_slot.h"
#include "psync/slot_offsets.h"

enum { OUTPUT_HOLDS_MAX = 2 };

typedef struct heldOutputStats {
    size_t clients, bytes; /* whose output waits */
    uint64_t expired;      /* since the start or CONFIG RESETSTAT */
} heldOutputStats;

/* A hold, of static lifetime. The owner sets the first three fields. */
typedef struct outputHold {
    const char *latency_event;          /* how long output has waited */
    const int64_t *written, *confirmed; /* the last change; everything up to this one is safe */
    int index;                          /* of the session slot */
    uint64_t period;                    /* how many times it was switched on */
    list held;
    int64_t all; /* the last change of unknown keys */
    slotOffsets slots;
    heldOutputStats statistics;
} outputHold;

/* Before anything else. `slot` has the two functions below. */
void heldOutputInit(outputHold *o, const sessionSlot *slot);
void heldOutputFree(session *s, void *state);
size_t heldOutputMemory(const void *state);

/* For a gate of the hold that comes after all others and is armed while the hold is on: notes what
 * the output of a read depends on. Refuses nothing. */
bool heldOutputSelects(const commandSpec *spec);
gateVerdict heldOutputNote(outputHold *o, ctx *c);
/* For a sink: `p` is the change at `end`. False: it changes no key. The owner changes what
 * `written` refers to. */
bool heldOutputWrote(outputHold *o, const propagated *p, int64_t end);

/* The hold begins: what is in the keyspace waits for the position *written. */
void heldOutputBegin(outputHold *o);
/* It ends, if it is on; everything leaves. */
void heldOutputEnd(outputHold *o);
/* It ends because this server is a primary no more: sessions whose output waits are closed. */
void heldOutputAbandon(outputHold *o);
/* More was confirmed: what has waited for it leaves in this turn. */
void heldOutputRelease(outputHold *o);
/* Output that has waited for as long as the timeout is replaced by an error, after which its
 * connection is closed. `now_ms`: monotonic. */
void heldOutputExpire(outputHold *o, int64_t now_ms, int64_t timeout_ms);
/* All keys may have been changed by what precedes *written. */
void heldOutputNoteAll(outputHold *o);
/* A request of the session was refused: its reply tells nothing. */
void heldOutputNoteRefusal(outputHold *o, session *s);
/* The position on which the reply to the request depends; 0: it tells nothing of the keyspace. */
int64_t heldOutputNeed(outputHold *o, const ctx *c);
/* True if the reply tells nothing of the dataset: the command has CMD_TELLS_NOTHING; of EXEC: all
 * commands of the transaction have it, and no key is watched. */
bool heldOutputTellsNothing(const ctx *c);
/* True if output of the session waits. */
bool heldOutputIsHeld(const outputHold *o, const session *s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault injection for readers in the hostile build: short reads, batches of random length, and
 * after each batch the input is moved and its old location poisoned. No effect in other builds. */
#ifndef NET_READER_HOSTILE_H
#define NET_READER_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

#include "net/client.h"

#ifdef HOSTILE_BUILD

/* Between 1 and `max`. */
int hostileBatchMax(int max);
size_t hostileReadMax(size_t max);
/* For tests of what happens within one turn: false switches short reads off. */
void hostileShortReads(bool on);
/* Moves the unparsed bytes of a run to a new buffer of the client and poisons the old one. */
void hostileMoveBuffer(client *cl, char **buf, size_t *len, size_t *pos);
/* Overwrites the bytes of executed requests, to detect slices that were kept. */
void hostilePoison(const request *requests, int count);
/* Sometimes true for a client named "hostile-victim...": it is closed before its next command. */
bool hostileCloses(const client *cl);
/* Sometimes true: the client moves to another I/O thread. */
bool hostileMovesClient(void);

#else

static inline int hostileBatchMax(int max) { return max; }
static inline size_t hostileReadMax(size_t max) { return max; }
static inline void hostileShortReads(bool on) { (void)on; /* no effect in other builds */ }
static inline void hostileMoveBuffer(client *cl, char **buf, size_t *len, size_t *pos) {
    (void)cl, (void)buf, (void)len, (void)pos; /* no effect in other builds */
}
static inline void hostilePoison(const request *requests, int count) {
    (void)requests, (void)count; /* no effect in other builds */
}
static inline bool hostileCloses(const client *cl) {
    (void)cl; /* no effect in other builds */
    return false;
}
static inline bool hostileMovesClient(void) { return false; }

#endif
#endif

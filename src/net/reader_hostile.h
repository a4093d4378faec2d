/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the hostile build does to readers: short reads, batches of random length, and after each batch the
 * input moves to a new place and the old one is poisoned. Nothing at all in other builds. */
#ifndef NET_READER_HOSTILE_H
#define NET_READER_HOSTILE_H

#include <stddef.h>

#include "net/client.h"

#ifdef HOSTILE_BUILD

/* Between 1 and `max`. */
int hostileBatchMax(int max);
size_t hostileReadMax(size_t max);
/* Moves the bytes of a run that still has to be parsed into a new own buffer of the client, poisons the old
 * place. */
void hostileMoveBuffer(client *cl, char **buf, size_t *len, size_t *pos);
/* Overwrites the bytes of requests that have run: whoever kept a slice of them reads rubbish. */
void hostilePoison(const request *requests, int count);
/* True now and then for a client named "hostile-victim...": it dies before its next command. */
bool hostileKills(const client *cl);

#else

static inline int hostileBatchMax(int max) { return max; }
static inline size_t hostileReadMax(size_t max) { return max; }
static inline void hostileMoveBuffer(client *cl, char **buf, size_t *len, size_t *pos) {
    (void)cl, (void)buf, (void)len, (void)pos; /* release builds leave input where it is */
}
static inline void hostilePoison(const request *requests, int count) {
    (void)requests, (void)count; /* release builds leave input as it is */
}
static inline bool hostileKills(const client *cl) {
    (void)cl; /* nobody dies in release builds */
    return false;
}

#endif
#endif

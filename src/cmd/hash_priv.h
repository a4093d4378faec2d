/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of hash commands share. */
#ifndef CMD_HASH_PRIV_H
#define CMD_HASH_PRIV_H

#include <stdbool.h>

#include "engine/ctx.h"
#include "store/type_hash.h"

/* Up to where a hash is kept packed. */
packLimits hashLimits(void);
/* The hash at argument 1, for a command that reads, or one that writes. False: WRONGTYPE was replied. NULL when it
 * is missing. */
bool hashFindRead(ctx *c, robj **out);
bool hashFindWrite(ctx *c, robj **out);

/* The value of a field, or null; `o` may be NULL. */
void hashReplyField(ctx *c, const robj *o, slice field);

#endif

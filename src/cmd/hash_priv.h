/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of hash commands. */
#ifndef CMD_HASH_PRIV_H
#define CMD_HASH_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "engine/hooks.h"
#include "store/type_hash.h"

/* Limits of the packed encoding. */
packLimits hashLimits(void);
/* Looks up the hash at argument 1 for reading or writing. *out is NULL if the key is missing.
 * False: WRONGTYPE was replied. */
bool hashFindRead(ctx *c, robj **out);
bool hashFindWrite(ctx *c, robj **out);

/* Replies the value of a field, or null; `o` may be NULL. */
void hashReplyField(ctx *c, const robj *o, slice field);

/* Counts and publishes that values replaced `count` expired fields of the key at argument 1. */
void hashNoteReplaced(ctx *c, uint64_t count);

/* Implements on_session: RESET frees the fieldsets of HIMPORT. */
void hashImportSessionEvent(session *s, sessionEvent e);

#endif

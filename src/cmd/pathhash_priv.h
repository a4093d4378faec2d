/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of path hash commands. */
#ifndef CMD_PATHHASH_PRIV_H
#define CMD_PATHHASH_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/type_pathhash.h"

/* Parses the number of fields at argument `arg_index`. False: the error was replied. */
bool pathHashArgFields(ctx *c, int arg_index, int64_t *out);
/* Looks up the path hash at argument 1 for reading. *out is NULL if the key is missing. False:
 * WRONGTYPE was replied. */
bool pathHashFindRead(ctx *c, const pathHash **out);
/* Replies all fields as a map, or the values of some fields as an array, with null for each that is
 * missing. `fields` may be NULL: all are missing. */
void pathHashReplyAll(ctx *c, const pathFields *fields);
void pathHashReplyValues(ctx *c, const pathFields *fields, const slice *names, int64_t count);

#endif

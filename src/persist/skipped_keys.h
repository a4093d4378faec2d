/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys whose values were skipped (foreign-values skip) while this server follows another one, or
 * reads an append only file: their names are kept as placeholders (store/placeholder.h), until this
 * server is a primary. Main thread. */
#ifndef PERSIST_SKIPPED_KEYS_H
#define PERSIST_SKIPPED_KEYS_H

#include "base/slice.h"
#include "base/str.h"
#include "engine/ctx.h"
#include "store/object.h"

void skippedKeysInit(void);
/* A placeholder for a key of a file; NULL: there are too many, which is counted. The caller owns
 * it. */
robj *skippedKeysNew(slice key, const char *type);
/* A command of a stream or file that changes a value of a type that is not here: its key exists on
 * the other server, or, if it `deletes` the key, does not any more. */
void skippedKeysChanged(ctx *c, const char *type, bool deletes);
/* This server is a primary, or has read its file: removes all placeholders, and logs how many. */
void skippedKeysDrop(void);
/* Fields of INFO; none if there never was a placeholder. */
void skippedKeysPrintInfo(str *out);

#endif

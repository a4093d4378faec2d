/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys whose values were skipped (foreign-values skip) while this server replicates another one, or
 * reads an append only file. Their names are kept as placeholders (store/placeholder.h) until this
 * server becomes a primary, or has read the file as one. Main thread. */
#ifndef PERSIST_SKIPPED_KEYS_H
#define PERSIST_SKIPPED_KEYS_H

#include "base/slice.h"
#include "base/str.h"
#include "engine/ctx.h"
#include "store/object.h"

void skippedKeysInit(void);
/* Creates a placeholder for a key of an RDB file; the caller owns it. NULL: there are too many
 * placeholders; the key is counted as unknown. */
robj *skippedKeysNew(slice key, const char *type);
/* Called for a command of a stream or file that changes a value of a type which this server does
 * not have. Adds a placeholder for its key, which exists on the other server; removes it if the
 * command deletes the key, or removes the last element of a value whose elements are known. */
void skippedKeysChanged(ctx *c, const char *type);
/* Removes all placeholders, and logs how many. Called when this server becomes a primary, or has
 * read its file as one. */
void skippedKeysDrop(void);
/* Fields of INFO; none if there never was a placeholder. */
void skippedKeysPrintInfo(str *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The elements of skipped values, as far as commands of a stream tell them. Main thread. */
#ifndef PERSIST_SKIPPED_ITEMS_H
#define PERSIST_SKIPPED_ITEMS_H

#include <stdbool.h>

#include "engine/ctx.h"
#include "store/object.h"

/* True if this command of a type that this server does not have only removes elements, or the key.
 */
bool skippedItemsAreRemoved(const ctx *c);
/* Applies the command to the elements of the placeholder of its key. False: the key does not exist
 * any more. */
bool skippedItemsChange(const ctx *c, robj *o);

#endif

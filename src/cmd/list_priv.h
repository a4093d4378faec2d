/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of list commands. */
#ifndef CMD_LIST_PRIV_H
#define CMD_LIST_PRIV_H

#include "engine/ctx.h"
#include "store/type_list.h"

listLimits listLimitsNow(void);
/* Replies an array of `count` elements from `index` on. */
void listReplyRange(ctx *c, const robj *o, size_t index, size_t count, bool backwards);
/* Replies the first or the last element. */
void listReplyEnd(ctx *c, const robj *o, bool front);
/* Removes `count` elements from one end of the list at argument `arg_index`, which must be the most
 * recent lookup, and the key with the last element. Notifies. */
void listRemoveEnd(ctx *c, int arg_index, robj *o, size_t count, bool front);

#endif

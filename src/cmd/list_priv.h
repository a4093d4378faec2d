/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of list commands share. */
#ifndef CMD_LIST_PRIV_H
#define CMD_LIST_PRIV_H

#include "engine/ctx.h"
#include "store/type_list.h"

listLimits listLimitsNow(void);
/* Replies an array of `count` elements from `index` on. */
void listReplyRange(ctx *c, const robj *o, size_t index, size_t count, bool backwards);
/* Replies the first or the last element. */
void listReplyEnd(ctx *c, const robj *o, bool front);
/* Takes `count` elements off one end of the list at argument `place`, which was looked up last, and the key with
 * the last one; tells of it. */
void listTakeEnd(ctx *c, int place, robj *o, size_t count, bool front);

#endif

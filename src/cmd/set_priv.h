/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of set commands share. */
#ifndef CMD_SET_PRIV_H
#define CMD_SET_PRIV_H

#include "engine/ctx.h"
#include "store/type_set.h"

/* Up to where a set is kept packed, as the directives say now. */
setLimits setLimitsNow(void);
/* All members, as a set. */
void setReplyAll(ctx *c, const robj *o);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of set commands. */
#ifndef CMD_SET_PRIV_H
#define CMD_SET_PRIV_H

#include "engine/ctx.h"
#include "store/type_set.h"

/* Current limits of the packed encodings. */
setLimits setLimitsNow(void);
/* Replies all members as a set. */
void setReplyAll(ctx *c, const robj *o);

#endif

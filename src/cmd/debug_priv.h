/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of DEBUG share. */
#ifndef CMD_DEBUG_PRIV_H
#define CMD_DEBUG_PRIV_H

#include "base/str.h"
#include "base/str.h"
#include "engine/ctx.h"
#include "store/object.h"
#include "store/object.h"

/* Words that end the process; arguments have been counted. */
void debugSegfault(ctx *c);
void debugPanic(ctx *c);
void debugAssert(ctx *c);
void debugOom(ctx *c);
void debugLeak(ctx *c);
void debugRestart(ctx *c);
void debugCrashAndRecover(ctx *c);

/* The object of argument 2 as it stands, dead or not; the error is replied when there is none. */
const robj *debugFind(ctx *c);
/* What DEBUG OBJECT adds for a quicklist; nothing for other values. */
void debugAppendQuicklist(str *text, const robj *o, bool fast);
void debugQuicklist(ctx *c);
void debugQuicklistPackedThreshold(ctx *c);

#endif

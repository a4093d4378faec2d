/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the two files of DEBUG share. */
#ifndef CMD_DEBUG_PRIV_H
#define CMD_DEBUG_PRIV_H

#include "engine/ctx.h"

/* Words that end the process; arguments have been counted. */
void debugSegfault(ctx *c);
void debugPanic(ctx *c);
void debugAssert(ctx *c);
void debugOom(ctx *c);
void debugLeak(ctx *c);
void debugRestart(ctx *c);
void debugCrashAndRecover(ctx *c);

#endif

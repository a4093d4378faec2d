/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raising hooks from inside the engine. */
#ifndef ENGINE_HOOKS_PRIV_H
#define ENGINE_HOOKS_PRIV_H

#include "engine/hooks.h"

/* 2. Hands a propagated command to every armed sink. */
void hooksSinks(const propagated *p);
/* 3. Tells every armed observer. */
void hooksKeyChanged(db *d, slice key, const char *event);
void hooksKeyEvent(db *d, slice key, const char *event);
/* 14. Before and after a command. */
void hooksSeenBefore(ctx *c);
void hooksSeenAfter(ctx *c, int64_t duration_ns);
/* Disarms all that are armed for this session. */
void hooksForgetSession(session *s);
/* The installed features, in the roof's order. */
int hooksFeatureCount(void);
const feature *hooksFeature(int index);

#endif

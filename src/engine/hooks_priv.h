/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signalling of events within the engine. */
#ifndef ENGINE_HOOKS_PRIV_H
#define ENGINE_HOOKS_PRIV_H

#include "engine/hooks.h"

/* Passes a propagated command to all armed sinks. */
void hooksSinks(const propagated *p);
/* Calls all armed key observers. */
void hooksKeyChanged(db *d, slice key, const keyEvent *event);
void hooksKeyEvent(db *d, slice key, const keyEvent *event);
void hooksKeyRemoving(db *d, const robj *o, storeRemoval why);
/* Calls the command observers before and after a command. */
void hooksBeforeCommand(ctx *c);
void hooksAfterCommand(ctx *c, int64_t duration_ns);
void hooksCommandWorked(ctx *c, int64_t duration_ns);
/* Arms or disarms what makes every request special: command observers, request filters. */
void hooksUpdateSpecial(void);
/* A request of the session was refused. */
void hooksRefusedCommand(ctx *c, size_t pending);
/* Disarms all command observers of this session. */
void hooksForgetSession(session *s);
/* The installed features in order. */
int hooksFeatureCount(void);
const feature *hooksFeature(int index);

#endif

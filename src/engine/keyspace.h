/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands share of the care of the keyspace. Main thread only. */
#ifndef ENGINE_KEYSPACE_H
#define ENGINE_KEYSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"

/* A command gives a key, which is there, a time that has passed: it goes at once, and stream and observers
 * see nothing else of the command. */
void keyspaceExpireNow(ctx *c, slice key, uint64_t hash);
/* True when a key given this time must go at once: it has passed, and nobody else decides (import mode,
 * replay). */
bool keyspaceIsPast(const ctx *c, int64_t expire_ms);
/* What the stream calls it when a command takes a key away as a whole: UNLINK or DEL. */
slice keyspaceDeleteWord(void);
/* Import mode: dead keys stay, unseen by all but the sources. */
void keyspaceSetImportMode(bool on);
bool keyspaceIsImporting(void);
/* While it is frozen no key goes because of its time or for lack of memory; dead ones are not seen. */
void keyspaceSetFrozen(bool on);
/* How the commands of a session with SESSION_OWN_LOOK see the keyspace. */
storeLook keyspaceSpecialLook(const session *s, int64_t now_ms);
/* How the commands of a session see the keyspace. */
static inline storeLook keyspaceLookOf(const session *s, int64_t now_ms) {
    return likely(!(s->flags & SESSION_OWN_LOOK)) ? lookAt(now_ms) : keyspaceSpecialLook(s, now_ms);
}
/* Off: keys whose time has come go only when they are met. */
void keyspaceSetActiveExpire(bool on);
/* Ms until expiry that is behind wants to go on, so that the loop does not sleep longer; -1: it is not behind. */
int64_t keyspaceNextMs(void);
/* True when objects count accesses (an LFU policy), not the time since the last one. */
bool keyspaceCountsAccesses(void);

#endif

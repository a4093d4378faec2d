/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WATCH: keys whose change lets a session's next EXEC do nothing. Who changes a key pays one lookup while
 * anybody watches and nothing otherwise; EXEC tests a flag and a time. Main thread only. */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "engine/session.h"

/* Watches a key of the session's database. Nothing more to do when one it watched has changed already. */
void watchKey(session *s, slice key, uint64_t hash, int64_t now_ms);
/* Forgets the session's keys, and that one of them has changed. */
void watchForget(session *s);

/* Keys the session watches. */
size_t watchCount(const session *s);
/* Bytes of memory its watches take; a key that several watch counts for each. */
size_t watchMemory(const session *s);
/* Keys that somebody watches, and sessions that watch some. */
uint64_t watchedKeyCount(void);
uint64_t watchingSessionCount(void);

#endif

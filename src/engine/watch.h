/* SPDX-License-Identifier: BSD-3-Clause
 *
 * WATCH: if one of the watched keys changes, the session's next EXEC does nothing. Changing a key
 * costs one lookup while keys are watched, and nothing otherwise; EXEC tests a flag and a time.
 * Main thread only. */
#ifndef ENGINE_WATCH_H
#define ENGINE_WATCH_H

#include "engine/session.h"

/* Watches a key of the session's database. No effect if a key watched before has changed
 * already. */
void watchKey(session *s, slice key, uint64_t hash, int64_t now_ms);
/* Drops the session's watches, including the mark that a key has changed. */
void watchForget(session *s);

/* Number of keys the session watches. */
size_t watchCount(const session *s);
/* Memory of its watches in bytes; a key watched by several sessions counts for each. */
size_t watchMemory(const session *s);
/* Number of watched keys, and of sessions that watch keys. */
uint64_t watchedKeyCount(void);
uint64_t watchingSessionCount(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions on the keyspace shared by commands. Main thread only. */
#ifndef ENGINE_KEYSPACE_H
#define ENGINE_KEYSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "store/object.h"

/* Deletes an existing key because a command has set an expiry time in the past. Only the deletion
 * is propagated and published. */
void keyspaceExpireNow(ctx *c, slice key, uint64_t hash);
/* True if a key with this expiry time must be deleted at once: it is not in the future (a command
 * that sets the present time deletes), and expiry is not controlled elsewhere (import mode,
 * replay). */
bool keyspaceIsPast(const ctx *c, int64_t expire_ms);
/* True while key observers hear of a key that expired or was evicted, whichever command found
 * it. */
bool keyspaceRemovesAlone(void);
/* The command propagated for the deletion of a whole key by another command: UNLINK or DEL. */
slice keyspaceDeleteCommandName(void);
/* The value found under `key` (NULL: none), as a command that reads it shall see it: without the
 * members of a set or sorted set that have expired by `look`. This is the one place that decides
 * how. A command that may write removes them, which is propagated before the command: on a replica
 * and in the append only file nothing expires by itself, so what the command stores elsewhere would
 * be another thing there. Other commands hide them. */
robj *keyspaceShow(const ctx *c, db *d, slice key, uint64_t hash, robj *o, storeLook look);
/* The same for a field of a hash: true if it has expired. A command that may write has removed it,
 * and the key with its last field, so `o` must not be used any more. */
bool keyspaceFieldExpired(const ctx *c, db *d, slice key, uint64_t hash, robj *o, slice field);
/* The same for all fields of a hash that a module opens, whose command may be propagated as it is:
 * true if some were removed, so that the value has to be looked up again. */
bool keyspaceExpireFields(const ctx *c, db *d, slice key, uint64_t hash, storeLook look);
/* The command propagated for the removal of expired fields or members of a value of this type. */
slice keyspaceRemovalCommandName(valueType type);
/* Deletes the keys of a slot of the main keyspace in all databases without a command. They are gone
 * at once; the AOF, replicas and observers are told of each key, by UNLINK, in the steps that
 * follow, before anything may be added to the slot again. There are no messages of keyspace events,
 * but modules are told `del`; if one listens, all is told at once. Not while a command that has
 * looked up keys is executed. */
void keyspaceDropSlot(int slot);
/* Deletes the keys of a slot one by one, and passes each to `tell` in a unit of its own: callbacks
 * may change any key. Returns the number of those that were deleted. */
uint64_t keyspaceDeleteEach(db *d, int slot, void (*tell)(void *arg, db *d, slice key), void *arg);
/* Tells until this time (clockMonoUs()); true: there is more. Not while a command is executed. */
bool keyspaceDropStep(int64_t end_us);
/* True while a snapshot needs the next keys before. */
bool keyspaceDropWaits(void);
/* Tells all: keys are about to be added to slots that were dropped. */
void keyspaceDropAll(void);
/* Tells nothing more: this server follows another one, or loads other data. */
void keyspaceDropForget(void);
/* Import mode: expired keys are kept, and visible only to import sources. */
void keyspaceSetImportMode(bool on);
bool keyspaceIsImporting(void);
/* A replica keeps expired keys, invisibly, until its primary deletes them. */
void keyspaceSetReplica(bool on);
/* True if nothing expires by itself here, on a replica or in import mode: a load keeps what has
 * expired. */
bool keyspaceKeepsExpired(void);
/* While frozen, keys are neither deleted on expiry nor evicted; expired keys are not visible. */
void keyspaceSetFrozen(bool on);
/* How commands of a session with SESSION_OWN_LOOK see the keyspace. */
storeLook keyspaceSessionLook(const session *s, int64_t now_ms);
/* How commands of a session see the keyspace. */
static inline storeLook keyspaceLookOf(const session *s, int64_t now_ms) {
    return likely(!(s->flags & SESSION_OWN_LOOK)) ? lookAt(now_ms) : keyspaceSessionLook(s, now_ms);
}
/* Off: expired keys are removed only when accessed. */
void keyspaceSetActiveExpire(bool on);
bool keyspaceExpiresActively(void);
/* Ms until active expiry continues after reaching its time limit, to limit the sleep of the loop;
 * -1: it has not. */
int64_t keyspaceNextMs(void);
/* lazyfree-lazy-user-flush: whether commands that flush free in the background unless told
 * otherwise. */
bool keyspaceFlushesLater(void);
/* True until all that was given to the background thread is free; then waits of BLOCK_CUSTOM are
 * asked. */
bool keyspaceTakesBack(void);
/* Calls `free` in the background, on another thread, which may free any memory. */
void keyspaceFreeLater(void (*free)(void *garbage), void *garbage);
/* True if objects count accesses (an LFU policy) instead of recording the time of the last one. */
bool keyspaceCountsAccesses(void);
/* True if eviction goes by the time of the last access (an LRU policy). */
bool keyspaceRecordsAccess(void);

#endif

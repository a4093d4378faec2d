/* SPDX-License-Identifier: BSD-3-Clause
 *
 * maxmemory and maxmemory-dataset: keys are evicted until used memory, or that of the dataset
 * alone, fits; if that is not possible, commands that would use more are refused. Checked before
 * each batch of requests, so a batch of small writes may exceed a limit by its own size. Main
 * thread only. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "store/store.h"

/* Refuses commands that may need memory, including those queued by MULTI, while no key can be
 * evicted. */
extern const gate memoryGate;
/* The bit of that gate, for commands that may exceed maxmemory. */
uint64_t memoryGateMask(void);
/* The same bit with the gates of memoryParts, for scripts with allow-oom. The gates of memoryParts
 * check the commands of such a script one by one. */
uint64_t memoryGatesOfStart(void);

/* Evicts until memory fits, for at most the time allowed by maxmemory-eviction-tenacity, and arms
 * the gate if no key is left to evict. Only if engineHot.memory_limited. */
void memoryKeep(void);
/* While suspended, nothing is evicted and nothing refused: a replica leaves that to its primary. */
void memorySetSuspended(bool on);
/* Bytes in use that do not count for maxmemory. */
void memorySetExcluded(size_t bytes);
/* Sets the memory of clients that have not logged in, which does not count either: they must not
 * have keys evicted. */
void memorySetBeforeAuth(size_t bytes);
size_t memoryExcluded(void);
/* Bytes in use that count for it; true if they, or the dataset, exceed their limit. */
size_t memoryCounted(void);
bool memoryIsOver(void);
/* True if commands that may need memory are refused, as no key is left to evict. */
bool memoryRefuses(void);
/* Calls `tell` for an evicted key. Messages to clients that track the key do not count while they
 * are on their way: otherwise each eviction could require more of them. */
void memoryTellEvicted(void (*tell)(db *d, slice key), db *d, slice key);
/* maxmemory in bytes, 0 if there is no limit. */
uint64_t memoryLimit(void);
/* Called after maxmemory has changed, and after maxmemory-dataset. */
status memoryApplyLimit(reason *why);
status memoryApplyDatasetLimit(reason *why);
/* Functions that measure memory which is not the dataset's: `lasting` and `passing` are
 * used_memory_overhead of INFO together, and only `passing` may be called often; `unfinished` is
 * the memory of commands of which a part was received. */
typedef struct memoryMeasures {
    size_t (*lasting)(void), (*passing)(void), (*unfinished)(void);
} memoryMeasures;
void memorySetMeasures(const memoryMeasures *measures);

/* Limits of parts of the dataset (databases, the keys of users), which are enforced together with
 * maxmemory. */
typedef struct memoryParts {
    bool (*exist)(void);
    /* Measures the parts, then evicts, if allowed, for at most `length_us`. Returns true if there
     * was not enough time. */
    bool (*keep)(int64_t length_us, bool may_evict);
    void (*disarm)(void);             /* nothing is evicted or refused until the next keep() */
    uint64_t (*gates_of_start)(void); /* see memoryGatesOfStart() */
} memoryParts;
void memorySetParts(const memoryParts *parts);
/* Updates engineHot.memory_limited. Called after a limit or a part was added or removed. */
void memoryUpdateLimited(void);
/* Chooses keys by maxmemory-policy; false: no key may be evicted now. */
bool memoryEvictRule(evictRule *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * OBJECT and MEMORY: encoding and memory use of values. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "store/store.h"

/* ------------------------------------------------------------------ OBJECT */

/* The object of the key at argument 2; replies null if it is missing. Does not count as an
 * access. */
static const robj *findWithoutAccess(ctx *c) {
    hotCheck(c->argc > 2);
    slice key = c->argv[2];
    const robj *o = dbFindSilent(c->db, key, storeHash(key), c->look);
    if (!o) replyNull(c);
    return o;
}

/* OBJECT ENCODING key. */
void objectEncodingCommand(ctx *c) {
    const robj *o = findWithoutAccess(c);
    if (o) replyBulkText(c, objectEncoding(o));
}

/* OBJECT REFCOUNT key. Reply: 1, because objects are not shared. */
void objectRefcountCommand(ctx *c) {
    if (findWithoutAccess(c)) replyInteger(c, 1);
}

/* OBJECT FREQ key. Reply: the logarithmic access counter. */
void objectFreqCommand(ctx *c) {
    const robj *o = findWithoutAccess(c);
    if (!o) return;
    if (keyspaceCountsAccesses()) {
        replyInteger(c, storeFrequency(o));
    } else {
        replyError(c, SLICE("ERR An LFU maxmemory policy is not selected, access frequency not "
                            "tracked. Please note that when switching between policies at runtime "
                            "LRU and LFU data will take some time to adjust."));
    }
}

/* OBJECT IDLETIME key. Reply: seconds since the last access. */
void objectIdletimeCommand(ctx *c) {
    const robj *o = findWithoutAccess(c);
    if (!o) return;
    if (!keyspaceCountsAccesses()) {
        replyInteger(c, storeIdleSeconds(o));
    } else {
        replyError(c,
                   SLICE("ERR An LFU maxmemory policy is selected, idle time not tracked. Please "
                         "note that when switching between policies at runtime LRU and LFU data "
                         "will take some time to adjust."));
    }
}

/* OBJECT HELP. */
void objectHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
        NULL,
    };
    replyHelp(c, lines);
}

/* ------------------------------------------------------------------ MEMORY */

/* Elements whose memory is asked for. Modules' values are measured in one piece. */
static uint64_t mostSampled(const robj *o, uint64_t samples) {
    if (objectType(o) == TYPE_STRING || objectType(o) == TYPE_MODULE) return 0;
    uint64_t length = objectLength(o);
    return samples ? sizeMin(samples, length) : length;
}

/* MEMORY USAGE key [SAMPLES count]. Reply: bytes, null if the key is missing. Expired keys are
 * included, as they use memory. */
void memoryUsageCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    int64_t samples = 5;
    for (int i = 3; i < c->argc; i += 2) {
        if (!ctxArgIs(c, i, "samples") || i + 1 == c->argc) {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
        if (!ctxArgInt(c, i + 1, &samples)) return;
        if (samples < 0) {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
    }
    slice key = c->argv[2];
    const robj *o = dbPeek(c->db, key, storeHash(key));
    if (o && jobStart(c, mostSampled(o, (uint64_t)samples))) return;
    if (o) {
        replyInteger(c, (int64_t)objectMemoryAt(o, dbId(c->db), (size_t)samples));
    } else {
        replyNull(c);
    }
}

/* MEMORY PURGE. Reply: OK. */
void memoryPurgeCommand(ctx *c) {
    memPurge();
    replyOk(c);
}

/* MEMORY MALLOC-STATS. Reply: the statistics of the allocator. */
void memoryMallocStatsCommand(ctx *c) {
    char *text = memAllocatorStats();
    replyVerbatim(c, sliceOf(text), "txt");
    memFree(text);
}

/* MEMORY HELP. */
void memoryHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "DOCTOR",
        "    Return memory problems reports.",
        "EXPLAIN [SAMPLES <count>]",
        "    Tell in words where the memory is, by type, by encoding and by prefix of",
        "    the keys, as estimated from <count> of them (default: 10000).",
        "MALLOC-STATS",
        "    Return internal statistics report from the memory allocator.",
        "PURGE",
        "    Attempt to purge dirty pages for reclamation by the allocator.",
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nested values are",
        "    sampled up to <count> times (default: 5, 0 means sample all).",
        NULL,
    };
    replyHelp(c, lines);
}

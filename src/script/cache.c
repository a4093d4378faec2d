/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The script cache. Invariant: each entry is in one chain of both tables, and either pinned or in
 * the list of scripts that may be evicted, the one used last at its end. Memory is allocated at the
 * first script. */
#include "script/cache.h"

#include <openssl/sha.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "ds/list.h"
#include "engine/keyspace.h"
#include "script/engines.h"
#include "script/header.h"
#include "script/run.h"
#include "script/script_priv.h"

enum { BUCKETS_FIRST = 16 };

typedef struct entry entry;
struct entry {
    script of;
    bool pinned;
    listNode use;
    uint64_t text_hash, digest_hash;
    entry *next_text, *next_digest;
    char text[];
};

static struct {
    entry **by_text, **by_digest;
    size_t buckets; /* a power of two */
    size_t count, evictable, bytes, evictable_bytes;
    uint64_t evicted;
    list uses;
} cache;

void scriptDigest(slice text, char digest[SCRIPT_DIGEST_LEN + 1]) {
    hotCheck(threadIsMain());
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[SHA_DIGEST_LENGTH];
    const unsigned char *done = SHA1((const unsigned char *)text.ptr, text.len, bytes);
    check(done == bytes);
    for (int i = 0; i < SHA_DIGEST_LENGTH; i++) {
        digest[2 * i] = hex[bytes[i] >> 4];
        digest[2 * i + 1] = hex[bytes[i] & 15];
    }
    digest[SCRIPT_DIGEST_LEN] = 0;
}

static void *vmOf(const scriptEngine *e) { return scriptEngineVm(e, SCRIPT_USE_EVAL, true); }

/* ------------------------------------------------------------------ tables */

static void link(entry *e) {
    hotCheck(cache.buckets > 0);
    entry **text = &cache.by_text[e->text_hash & (cache.buckets - 1)];
    e->next_text = *text;
    *text = e;
    entry **digest = &cache.by_digest[e->digest_hash & (cache.buckets - 1)];
    e->next_digest = *digest;
    *digest = e;
}

static void grow(void) {
    if (cache.count < cache.buckets) return;
    entry **old = cache.by_text;
    size_t old_buckets = cache.buckets;
    if (!old_buckets) listInit(&cache.uses);
    cache.buckets = old_buckets ? old_buckets * 2 : BUCKETS_FIRST;
    memFree(cache.by_digest);
    cache.by_text = memNewArray(entry *, cache.buckets);
    cache.by_digest = memNewArray(entry *, cache.buckets);
    for (size_t i = 0; i < old_buckets; i++) {
        for (entry *e = old[i], *next; e; e = next) {
            next = e->next_text;
            link(e);
        }
    }
    memFree(old);
}

static void removeEntry(entry *e) {
    hotCheck(cache.count > 0);
    hotCheck(cache.buckets > 0);
    entry **at = &cache.by_text[e->text_hash & (cache.buckets - 1)];
    while (*at != e) at = &(*at)->next_text;
    *at = e->next_text;
    at = &cache.by_digest[e->digest_hash & (cache.buckets - 1)];
    while (*at != e) at = &(*at)->next_digest;
    *at = e->next_digest;
    if (!e->pinned) {
        listRemove(&cache.uses, &e->use);
        cache.evictable--;
        cache.evictable_bytes -= memSizeOf(e);
    }
    cache.count--;
    cache.bytes -= memSizeOf(e);
}

static void noteUse(entry *e) {
    hotCheck(e->pinned || cache.evictable > 0);
    if (e->pinned) return;
    listRemove(&cache.uses, &e->use);
    listAppend(&cache.uses, &e->use);
}

static entry *findText(slice body, uint64_t hash) {
    if (!cache.buckets) return NULL;
    entry *e = cache.by_text[hash & (cache.buckets - 1)];
    while (e && (e->text_hash != hash || !sliceEqual(e->of.body, body))) e = e->next_text;
    return e;
}

const script *scriptCacheFindText(slice body) {
    hotCheck(threadIsMain());
    entry *e = findText(body, hashBytes(body.ptr, body.len));
    if (!e) return NULL;
    noteUse(e);
    return &e->of;
}

const script *scriptCacheFindDigest(slice digest) {
    hotCheck(threadIsMain());
    if (digest.len != SCRIPT_DIGEST_LEN || !cache.buckets) return NULL;
    uint64_t hash = hashBytesFold(digest.ptr, digest.len);
    entry *e = cache.by_digest[hash & (cache.buckets - 1)];
    while (e && (e->digest_hash != hash ||
                 !sliceEqualFold(sliceMake(e->of.digest, SCRIPT_DIGEST_LEN), digest)))
        e = e->next_digest;
    if (!e) return NULL;
    noteUse(e);
    return &e->of;
}

/* ------------------------------------------------------------------ add, evict, flush */

static bool isOverLimit(void) {
    size_t limit = (size_t)scriptConf.maxmemory_scripts;
    hotCheck(cache.evictable_bytes <= cache.bytes);
    if (cache.evictable > SCRIPT_EVAL_MAX) return true;
    return limit && cache.evictable_bytes > limit && cache.evictable > 1;
}

/* The script that was added last stays, as it is about to be run. */
static void evict(void) {
    hotCheck(cache.evictable <= cache.count);
    while (isOverLimit()) {
        entry *oldest = LIST_OWNER(cache.uses.head.next, entry, use);
        removeEntry(oldest);
        oldest->of.engine->drop(vmOf(oldest->of.engine), oldest->of.handle);
        memFree(oldest);
        cache.evicted++;
    }
    hotCheck(cache.evictable <= SCRIPT_EVAL_MAX);
}

const script *scriptCacheAdd(slice body, str *error) {
    hotCheck(threadIsMain());
    scriptHeader header;
    if (!scriptHeaderParse(body, &header, error)) return NULL;
    str why = STR_EMPTY;
    int handle = header.engine->compile(vmOf(header.engine), header.code, &why);
    if (handle < 0) {
        strAppendText(error, "ERR ");
        strAppendSlice(error, strSlice(&why));
        strFree(&why);
        return NULL;
    }
    grow();
    entry *e = memAlloc(sizeof(*e) + body.len);
    memset(e, 0, sizeof(*e));
    memcpy(e->text, body.ptr, body.len);
    e->of.engine = header.engine;
    e->of.handle = handle;
    e->of.flags = header.flags;
    e->of.body = sliceMake(e->text, body.len);
    scriptDigest(body, e->of.digest);
    e->text_hash = hashBytes(body.ptr, body.len);
    e->digest_hash = hashBytesFold(e->of.digest, SCRIPT_DIGEST_LEN);
    link(e);
    listAppend(&cache.uses, &e->use);
    cache.count++;
    cache.evictable++;
    cache.bytes += memSizeOf(e);
    cache.evictable_bytes += memSizeOf(e);
    evict();
    return &e->of;
}

void scriptCachePin(const script *s) {
    hotCheck(threadIsMain());
    entry *e = (entry *)((char *)s - offsetof(entry, of));
    if (e->pinned) return;
    listRemove(&cache.uses, &e->use);
    cache.evictable--;
    cache.evictable_bytes -= memSizeOf(e);
    e->pinned = true;
}

/* What a flush frees: all entries, by the table of texts. */
typedef struct cacheGarbage {
    takenVms *vms;
    entry **by_text, **by_digest;
    size_t buckets;
} cacheGarbage;

static void freeGarbage(void *state) {
    cacheGarbage *g = state;
    for (size_t i = 0; i < g->buckets; i++) {
        for (entry *e = g->by_text[i], *next; e; e = next) {
            next = e->next_text;
            memFree(e);
        }
    }
    memFree(g->by_text);
    memFree(g->by_digest);
    takenVmsFree(g->vms);
    memFree(g);
}

void scriptCacheFlush(bool later) {
    hotCheck(threadIsMain());
    cacheGarbage *g = memNew(cacheGarbage);
    *g = (cacheGarbage){scriptEnginesTake(SCRIPT_USE_EVAL), cache.by_text, cache.by_digest,
                        cache.buckets};
    cache.by_text = cache.by_digest = NULL;
    cache.buckets = cache.count = cache.evictable = cache.bytes = cache.evictable_bytes = 0;
    if (later && takenVmsCloseAnywhere(g->vms)) {
        keyspaceFreeLater(freeGarbage, g);
    } else {
        freeGarbage(g);
    }
    scriptEnginesReset(SCRIPT_USE_EVAL, later);
}

void scriptCacheRemoveOf(const scriptEngine *engine) {
    for (size_t i = 0; i < cache.buckets; i++) {
        for (entry *e = cache.by_text[i], *next; e; e = next) {
            next = e->next_text;
            if (e->of.engine != engine) continue;
            removeEntry(e);
            engine->drop(vmOf(engine), e->of.handle);
            memFree(e);
        }
    }
}

scriptCacheUse scriptCacheUseNow(void) {
    hotCheck(threadIsMain());
    return (scriptCacheUse){.scripts = cache.count,
                            .bytes = cache.bytes + cache.buckets * 2 * sizeof(entry *),
                            .evicted = cache.evicted};
}

void scriptCacheResetStats(void) { cache.evicted = 0; }

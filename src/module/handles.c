/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles of modules by address. */
#include "module/handles.h"

#include <pthread.h>

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable.h"
#include "module/checks.h"

enum { QUARANTINE_BLOCKS = 4096 };

bool handlesChecked;

static struct {
    pthread_mutex_t lock;
    hashtable table;
    list all;
    void *freed[QUARANTINE_BLOCKS]; /* a ring */
    int next;
    size_t counts[HANDLE_KINDS];
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hashOfRecord(const void *entry) {
    return hashAddress(((const handleRecord *)entry)->address);
}

static bool recordMatches(const void *entry, const void *key, size_t len) {
    (void)len; /* keys are addresses */
    return ((const handleRecord *)entry)->address == key;
}

static const hashtableType record_type = {.hash_of = hashOfRecord, .match = recordMatches};

static void removeRecord(const void *address) {
    handleRecord *r = hashtableDelete(&handles.table, &record_type, hashAddress(address), address,
                                      sizeof(address));
    if (!r) return;
    handles.counts[r->kind]--;
    listRemove(&handles.all, &r->node);
    memFree(r);
}

void handleTrack(handleKind kind, const void *address, bool is_lent) {
    hotCheck(address);
    hotCheck(kind < HANDLE_KINDS);
    handleRecord *r = memNew(handleRecord);
    *r = (handleRecord){.address = address, .kind = kind, .is_lent = is_lent};
    checksCurrentCall(&r->maker, &r->caller);
    pthread_mutex_lock(&handles.lock);
    removeRecord(address); /* of a stack frame that was left without an end */
    handles.counts[kind]++;
    if (!handles.all.head.next) listInit(&handles.all);
    listAppend(&handles.all, &r->node);
    hashtableInsert(&handles.table, &record_type, hashAddress(address), r, 0);
    pthread_mutex_unlock(&handles.lock);
}

void handleUntrack(const void *address) {
    pthread_mutex_lock(&handles.lock);
    removeRecord(address);
    pthread_mutex_unlock(&handles.lock);
}

void handleMove(const void *from, const void *to) {
    pthread_mutex_lock(&handles.lock);
    handleRecord *r =
        hashtableDelete(&handles.table, &record_type, hashAddress(from), from, sizeof(from));
    if (r) {
        r->address = to;
        hashtableInsert(&handles.table, &record_type, hashAddress(to), r, 0);
    }
    pthread_mutex_unlock(&handles.lock);
}

void handleQuarantine(void *block) {
    pthread_mutex_lock(&handles.lock);
    void *oldest = handles.freed[handles.next];
    handles.freed[handles.next] = block;
    handles.next = (handles.next + 1) % QUARANTINE_BLOCKS;
    pthread_mutex_unlock(&handles.lock);
    memFree(oldest);
}

size_t handleCount(handleKind kind) {
    hotCheck(kind < HANDLE_KINDS);
    pthread_mutex_lock(&handles.lock);
    size_t count = handles.counts[kind];
    pthread_mutex_unlock(&handles.lock);
    return count;
}

handleKind handleKindOf(const void *address) {
    pthread_mutex_lock(&handles.lock);
    const handleRecord *r =
        hashtableFind(&handles.table, &record_type, hashAddress(address), address, sizeof(address));
    handleKind kind = r ? r->kind : HANDLE_NONE;
    pthread_mutex_unlock(&handles.lock);
    return kind;
}

void handlesEach(handleVisitProc *visit, void *arg) {
    hotCheck(visit);
    pthread_mutex_lock(&handles.lock);
    listNode *n = handles.all.head.next ? listFirst(&handles.all) : NULL;
    for (; n; n = listNext(&handles.all, n)) visit(LIST_OWNER(n, handleRecord, node), arg);
    pthread_mutex_unlock(&handles.lock);
}

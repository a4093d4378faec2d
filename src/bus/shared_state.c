/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users and functions that nodes share: their versions, and merging them (shared_state.h).
 *
 * Invariants: entries are sorted by kind and name; each has at least one version, and none of them
 * has seen another one. The digest is the sum of the hashes of all entries. Finding an entry takes
 * O(log n), adding one O(n). */
#include "bus/shared_state.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"

/* ------------------------------------------------------------------ versions */

static int compareIds(const uint8_t *a, const uint8_t *b) { return memcmp(a, b, SHARED_ID_BYTES); }

/* By number and writer. */
static int compareVersions(const sharedVersion *a, const sharedVersion *b) {
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return compareIds(a->by, b->by);
}

static const sharedSeen *seenOf(const sharedVersion *v, const uint8_t *id) {
    for (int i = 0; i < v->seen_count; i++)
        if (compareIds(v->seen[i].id, id) == 0) return &v->seen[i];
    return NULL;
}

/* True if the writer of `v` had seen version `number` of `id`. */
static bool hasSeen(const sharedVersion *v, const uint8_t *id, uint64_t number) {
    const sharedSeen *seen = seenOf(v, id);
    return seen && seen->number >= number;
}

static void dropOldestSeen(sharedVersion *v) {
    int oldest = -1;
    check(v->seen_count > 1);
    for (int i = 0; i < v->seen_count; i++) {
        if (compareIds(v->seen[i].id, v->by) == 0) continue;
        if (oldest < 0 || v->seen[i].number < v->seen[oldest].number) oldest = i;
    }
    v->seen_count--;
    memmove(v->seen + oldest, v->seen + oldest + 1,
            (size_t)(v->seen_count - oldest) * sizeof(sharedSeen));
}

/* Adds to what the version has seen. */
static void addSeen(sharedVersion *v, const sharedSeen *more) {
    int at = 0;
    while (at < v->seen_count && compareIds(v->seen[at].id, more->id) < 0) at++;
    if (at < v->seen_count && compareIds(v->seen[at].id, more->id) == 0) {
        sharedSeen *own = &v->seen[at];
        if (own->number < more->number) own->number = more->number;
        if (own->taken < more->taken) own->taken = more->taken;
        return;
    }
    v->seen = memRealloc(v->seen, (size_t)(v->seen_count + 1) * sizeof(sharedSeen));
    memmove(v->seen + at + 1, v->seen + at, (size_t)(v->seen_count - at) * sizeof(sharedSeen));
    v->seen[at] = *more;
    v->seen_count++;
    if (v->seen_count > SHARED_WRITERS_MAX) dropOldestSeen(v);
    check(v->seen_count <= SHARED_WRITERS_MAX);
}

static void addAllSeen(sharedVersion *v, const sharedVersion *of) {
    for (int i = 0; i < of->seen_count; i++) addSeen(v, &of->seen[i]);
}

static void clearVersion(sharedVersion *v) {
    strFree(&v->body);
    memFree(v->seen);
    v->seen = NULL;
    v->seen_count = 0;
}

static sharedVersion copyVersion(const sharedVersion *v) {
    sharedVersion copy = *v;
    copy.body = strNew(strSlice(&v->body));
    copy.seen = memNewArray(sharedSeen, (size_t)v->seen_count);
    memcpy(copy.seen, v->seen, (size_t)v->seen_count * sizeof(sharedSeen));
    return copy;
}

/* Two contents under one number: what nodes had before they shared it, or a node that has lost its
 * file. The choice must not depend on the order. */
static bool isPreferred(const sharedVersion *a, const sharedVersion *b) {
    if (a->form != b->form) return a->form > b->form;
    return sliceCompare(strSlice(&a->body), strSlice(&b->body)) < 0;
}

/* ------------------------------------------------------------------ the chosen version */

/* True if rights were taken away by what `v` has seen and `other` has not. */
static bool hasNewsFor(const sharedVersion *v, const sharedVersion *other) {
    for (int i = 0; i < v->seen_count; i++) {
        const sharedSeen *seen = &v->seen[i];
        if (seen->taken && !hasSeen(other, seen->id, seen->taken)) return true;
    }
    return false;
}

/* 0: no news for any other version; else more for what allows less. */
static int rankOf(const sharedEntry *e, int at) {
    for (int i = 0; i < e->count; i++)
        if (i != at && hasNewsFor(&e->versions[at], &e->versions[i]))
            return 1 + (int)e->versions[at].form;
    return 0;
}

static void choose(sharedEntry *e) {
    int best = 0;
    check(e->count > 0);
    e->chosen = 0; /* versions are sorted, so of equal ranks the last one has the greatest number */
    for (int i = 0; i < e->count; i++) {
        int rank = rankOf(e, i);
        if (rank < best) continue;
        best = rank;
        e->chosen = i;
    }
}

bool sharedIsConflict(const sharedEntry *e) {
    const sharedVersion *chosen = sharedChosen(e);
    for (int i = 0; i < e->count; i++) {
        const sharedVersion *v = &e->versions[i];
        if (v->form != chosen->form || !sliceEqual(strSlice(&v->body), strSlice(&chosen->body)))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ entries */

void sharedEntryClear(sharedEntry *e) {
    for (int i = 0; i < e->count; i++) clearVersion(&e->versions[i]);
    memFree(e->versions);
    strFree(&e->name);
    e->versions = NULL;
    e->count = 0;
}

static void hashEntry(sharedEntry *e) {
    static const uint8_t key[16] = "shared by nodes";
    str bytes = STR_EMPTY;
    sharedEntryAppend(e, &bytes);
    e->hash = hashSip13(bytes.ptr, bytes.len, key);
    strFree(&bytes);
}

static void removeVersion(sharedEntry *e, int at) {
    check(at >= 0);
    check(at < e->count);
    clearVersion(&e->versions[at]);
    e->count--;
    memmove(e->versions + at, e->versions + at + 1,
            (size_t)(e->count - at) * sizeof(sharedVersion));
}

static bool isSeenByOther(const sharedEntry *e, int at) {
    const sharedVersion *v = &e->versions[at];
    for (int i = 0; i < e->count; i++)
        if (i != at && hasSeen(&e->versions[i], v->by, v->number)) return true;
    return false;
}

/* Two contents of one number have seen more together than each alone. */
static void dropSeen(sharedEntry *e) {
    for (int i = 0; i < e->count;) {
        if (isSeenByOther(e, i)) {
            removeVersion(e, i);
        } else {
            i++;
        }
    }
    check(e->count > 0);
}

/* Too many versions remain: those that allow most are forgotten first, then older ones. */
static void limitVersions(sharedEntry *e) {
    while (e->count > SHARED_VERSIONS_MAX) {
        int least = 0;
        for (int i = 1; i < e->count; i++)
            if (e->versions[i].form < e->versions[least].form) least = i;
        removeVersion(e, least);
    }
    check(e->count > 0);
}

static void insertVersionTake(sharedEntry *e, sharedVersion v) {
    int at = e->count;
    while (at > 0 && compareVersions(&v, &e->versions[at - 1]) < 0) at--;
    e->versions = memRealloc(e->versions, (size_t)(e->count + 1) * sizeof(sharedVersion));
    memmove(e->versions + at + 1, e->versions + at,
            (size_t)(e->count - at) * sizeof(sharedVersion));
    e->versions[at] = v;
    e->count++;
}

/* Adds a version of another node that has the number and the writer of an own one. True if the
 * content has changed. */
static bool joinVersion(sharedVersion *own, const sharedVersion *other) {
    addAllSeen(own, other);
    if (!isPreferred(other, own)) return false;
    strFree(&own->body);
    own->body = strNew(strSlice(&other->body));
    own->form = other->form;
    return true;
}

/* Adds a version to those of an entry, unless one of them has seen it, and removes those that it
 * has seen. True if it replaces the content of one with its number. */
static bool addVersion(sharedEntry *e, const sharedVersion *v) {
    for (int i = 0; i < e->count; i++)
        if (compareVersions(&e->versions[i], v) == 0) return joinVersion(&e->versions[i], v);
    for (int i = 0; i < e->count; i++)
        if (hasSeen(&e->versions[i], v->by, v->number)) return false;
    for (int i = e->count - 1; i >= 0; i--)
        if (hasSeen(v, e->versions[i].by, e->versions[i].number)) removeVersion(e, i);
    insertVersionTake(e, copyVersion(v));
    return false;
}

/* ------------------------------------------------------------------ the state */

static int compareKey(const sharedEntry *e, sharedKind kind, slice name) {
    if (e->kind != kind) return e->kind < kind ? -1 : 1;
    return sliceCompare(strSlice(&e->name), name);
}

/* Position of the first entry that is not before that one. */
static int lowerBound(const sharedState *s, sharedKind kind, slice name) {
    int low = 0, high = s->count;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (compareKey(s->list[mid], kind, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

sharedEntry *sharedFind(const sharedState *s, sharedKind kind, slice name) {
    int at = lowerBound(s, kind, name);
    if (at == s->count || compareKey(s->list[at], kind, name) != 0) return NULL;
    return s->list[at];
}

static sharedEntry *findOrAdd(sharedState *s, sharedKind kind, slice name) {
    int at = lowerBound(s, kind, name);
    check(name.len <= SHARED_NAME_MAX);
    if (at < s->count && compareKey(s->list[at], kind, name) == 0) return s->list[at];
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->list = memRealloc(s->list, (size_t)s->cap * sizeof(sharedEntry *));
    }
    memmove(s->list + at + 1, s->list + at, (size_t)(s->count - at) * sizeof(sharedEntry *));
    sharedEntry *e = memNew(sharedEntry);
    *e = (sharedEntry){.kind = kind, .name = strNew(name)};
    s->list[at] = e;
    s->count++;
    return e;
}

static bool isDeleted(const sharedEntry *e) {
    return e->count && sharedChosen(e)->form == SHARED_DELETED;
}

/* Before an entry of the state changes. */
static void unlinkEntry(sharedState *s, const sharedEntry *e) {
    if (!e->count) return;
    s->digest -= e->hash;
    s->deleted -= isDeleted(e);
    check(s->deleted >= 0);
}

/* After it. */
static void linkEntry(sharedState *s, sharedEntry *e) {
    dropSeen(e);
    limitVersions(e);
    choose(e);
    hashEntry(e);
    e->is_applied = false;
    s->digest += e->hash;
    s->deleted += isDeleted(e);
}

static void removeAt(sharedState *s, int at) {
    sharedEntry *e = s->list[at];
    unlinkEntry(s, e);
    sharedEntryClear(e);
    memFree(e);
    s->count--;
    memmove(s->list + at, s->list + at + 1, (size_t)(s->count - at) * sizeof(sharedEntry *));
}

/* The same on all nodes with the same entries. */
static void limitDeleted(sharedState *s) {
    while (s->deleted > SHARED_DELETED_MAX) {
        int oldest = -1;
        for (int i = 0; i < s->count; i++) {
            if (!isDeleted(s->list[i])) continue;
            if (oldest < 0 ||
                compareVersions(sharedChosen(s->list[i]), sharedChosen(s->list[oldest])) < 0)
                oldest = i;
        }
        check(oldest >= 0);
        removeAt(s, oldest);
    }
}

void sharedClear(sharedState *s) {
    for (int i = 0; i < s->count; i++) {
        sharedEntryClear(s->list[i]);
        memFree(s->list[i]);
    }
    memFree(s->list);
    *s = (sharedState){0};
}

/* ------------------------------------------------------------------ changes */

static void packId(uint8_t to[SHARED_ID_BYTES], const char *id) {
    for (int i = 0; i < SHARED_ID_BYTES; i++)
        to[i] = (uint8_t)((hexDigit(id[2 * i]) & 15) << 4 | (hexDigit(id[2 * i + 1]) & 15));
}

void sharedWrite(sharedState *s, sharedKind kind, slice name, sharedForm form, slice body,
                 bool takes, const char id[NODE_ID_LEN], int64_t now_ms) {
    sharedEntry *e = findOrAdd(s, kind, name);
    sharedVersion v = {.number = now_ms > 0 ? (uint64_t)now_ms : 1, .form = form};
    check(body.len <= SHARED_BODY_MAX);
    packId(v.by, id);
    unlinkEntry(s, e);
    for (int i = 0; i < e->count; i++) {
        addAllSeen(&v, &e->versions[i]);
        for (int k = 0; k < e->versions[i].seen_count; k++)
            if (v.number <= e->versions[i].seen[k].number)
                v.number = e->versions[i].seen[k].number + 1;
    }
    if (v.number > SHARED_NUMBER_MAX) v.number = SHARED_NUMBER_MAX;
    sharedSeen own = {.number = v.number, .taken = takes ? v.number : 0};
    memcpy(own.id, v.by, SHARED_ID_BYTES);
    addSeen(&v, &own);
    if (form != SHARED_DELETED) strAppendSlice(&v.body, body);
    while (e->count) removeVersion(e, 0);
    insertVersionTake(e, v);
    linkEntry(s, e);
    limitDeleted(s);
}

void sharedSeed(sharedState *s, sharedKind kind, slice name, sharedForm form, slice body) {
    if (sharedFind(s, kind, name)) return;
    sharedEntry *e = findOrAdd(s, kind, name);
    sharedVersion v = {.number = 1, .form = form, .body = strNew(body)};
    const sharedSeen own = {.number = 1};
    check(form != SHARED_DELETED);
    addSeen(&v, &own);
    insertVersionTake(e, v);
    linkEntry(s, e);
}

sharedMerged sharedMerge(sharedState *s, const sharedEntry *from) {
    sharedEntry *e = findOrAdd(s, from->kind, strSlice(&from->name));
    uint64_t before = e->count ? e->hash : 0;
    bool was_new = e->count == 0, was_applied = e->is_applied;
    check(from->count > 0);
    unlinkEntry(s, e);
    bool replaces = false;
    for (int i = 0; i < from->count; i++) replaces |= addVersion(e, &from->versions[i]);
    linkEntry(s, e);
    uint64_t after = e->hash;
    sharedMerged result = replaces || sharedIsConflict(e) ? SHARED_CONFLICT : SHARED_CHANGED;
    if (!was_new && after == before) {
        e->is_applied = was_applied;
        return SHARED_KNOWN;
    }
    limitDeleted(s); /* may remove this one */
    return result;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memberTimes (member_times.h): a table by name and an index by time, which share the entries. An
 * entry is a heap block: time, length, text, and a score if it is of a sorted set. */
#include "store/member_times.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable.h"
#include "ds/ordered.h"

typedef struct timeEntry {
    int64_t time_ms;
    uint32_t len;
    char bytes[]; /* member; score */
} timeEntry;

struct memberTimes {
    hashtable by_name;
    orderedIndex by_time;
    uint64_t hidden;
    size_t bytes; /* of entries */
    bool scored;
};

static uint64_t hashOfEntry(const void *entry) {
    const timeEntry *e = entry;
    return hashBytes(e->bytes, e->len);
}

static bool hasName(const void *entry, const void *name, size_t len) {
    const timeEntry *e = entry;
    return e->len == len && memcmp(e->bytes, name, len) == 0;
}

static uint64_t rankOf(const void *entry) { return (uint64_t)((const timeEntry *)entry)->time_ms; }

static slice textOf(const void *entry) {
    const timeEntry *e = entry;
    return sliceMake(e->bytes, e->len);
}

static const hashtableType name_type = {.hash_of = hashOfEntry, .match = hasName};
static const orderedType time_type = {.rank_of = rankOf, .text_of = textOf};

memberTimes *memberTimesNew(bool scored) {
    memberTimes *t = memNew(memberTimes);
    t->scored = scored;
    return t;
}

static size_t entrySize(const memberTimes *t, size_t len) {
    hotCheck(len <= UINT32_MAX);
    return offsetof(timeEntry, bytes) + len + (t->scored ? sizeof(double) : 0);
}

static timeEntry *add(memberTimes *t, slice member, int64_t time_ms) {
    check(member.len <= UINT32_MAX);
    hotCheck(time_ms >= 0);
    timeEntry *e = memAlloc(entrySize(t, member.len));
    e->time_ms = time_ms;
    e->len = (uint32_t)member.len;
    bytesCopy(e->bytes, member.ptr, member.len);
    hashtableInsert(&t->by_name, &name_type, hashOfEntry(e), e, 0);
    orderedInsert(&t->by_time, &time_type, e);
    t->bytes += memSizeOf(e);
    return e;
}

static double readScore(const timeEntry *e) {
    hotCheck(e->time_ms >= 0);
    double score;
    memcpy(&score, e->bytes + e->len, sizeof(score));
    return score;
}

static void writeScore(timeEntry *e, double score) {
    memcpy(e->bytes + e->len, &score, sizeof(score));
}

memberTimes *memberTimesCopy(const memberTimes *from) {
    memberTimes *t = memberTimesNew(from->scored);
    orderedCursor cursor;
    const timeEntry *e = from->by_time.count ? orderedSeek(&from->by_time, 0, &cursor) : NULL;
    for (uint64_t i = 0; e; e = orderedNext(&cursor), i++) {
        timeEntry *copy = add(t, textOf(e), e->time_ms);
        if (t->scored && i < from->hidden) writeScore(copy, readScore(e));
    }
    t->hidden = from->hidden;
    check(t->hidden <= t->by_time.count);
    return t;
}

static void freeEntry(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    memFree(entry);
}

void memberTimesFree(memberTimes *t) {
    if (!t) return;
    orderedFree(&t->by_time);
    hashtableFree(&t->by_name, freeEntry, NULL);
    memFree(t);
}

uint64_t memberTimesCount(const memberTimes *t) { return t ? t->by_time.count : 0; }

size_t memberTimesBytes(const memberTimes *t) {
    return t ? memSizeOf(t) + t->bytes + hashtableBytes(&t->by_name) + t->by_time.bytes : 0;
}

static timeEntry *find(const memberTimes *t, slice member) {
    return hashtableFind(&t->by_name, &name_type, hashBytes(member.ptr, member.len), member.ptr,
                         member.len);
}

int64_t memberTimesGet(const memberTimes *t, slice member) {
    const timeEntry *e = t ? find(t, member) : NULL;
    return e ? e->time_ms : MEMBER_NO_TIME;
}

void memberTimesSet(memberTimes *t, slice member, int64_t time_ms) {
    check(time_ms >= 0);
    check(t->hidden == 0);
    timeEntry *e = find(t, member);
    if (!e) {
        (void)add(t, member, time_ms); /* it has no score yet */
        return;
    }
    bool kept = orderedPrepareRank(&t->by_time, &time_type, e, (uint64_t)time_ms);
    e->time_ms = time_ms;
    if (!kept) orderedInsert(&t->by_time, &time_type, e);
}

static void removeEntry(memberTimes *t, timeEntry *e) {
    hotCheck(t->by_time.count == hashtableCount(&t->by_name));
    hotCheck(t->bytes >= memSizeOf(e));
    orderedDelete(&t->by_time, &time_type, e);
    check(hashtableDeleteEntry(&t->by_name, &name_type, hashOfEntry(e), e));
    t->bytes -= memSizeOf(e);
    memFree(e);
}

void memberTimesForget(memberTimes *t, slice member) {
    hotCheck(t != NULL);
    timeEntry *e = find(t, member);
    if (!e) return;
    hotCheck(orderedIndexOf(&t->by_time, &time_type, e) >= t->hidden);
    removeEntry(t, e);
}

static timeEntry *entryAt(const memberTimes *t, uint64_t index) {
    check(index < t->by_time.count);
    orderedCursor cursor;
    return orderedSeek(&t->by_time, index, &cursor);
}

timedMember memberTimesAt(const memberTimes *t, uint64_t index) {
    const timeEntry *e = entryAt(t, index);
    bool has_score = t->scored && index < t->hidden;
    return (timedMember){textOf(e), e->time_ms, has_score ? readScore(e) : 0};
}

uint64_t memberTimesDue(const memberTimes *t, int64_t now_ms) {
    if (now_ms < 0) return 0;
    orderedPoint point = {.by = ORDERED_BY_RANK, .after = false, .rank = (uint64_t)now_ms};
    return orderedCountBefore(&t->by_time, &time_type, &point);
}

uint64_t memberTimesHidden(const memberTimes *t) { return t ? t->hidden : 0; }

void memberTimesHide(memberTimes *t, double score) {
    hotCheck(t->hidden < t->by_time.count);
    hotCheck(t->scored || score == 0);
    timeEntry *e = entryAt(t, t->hidden++);
    if (t->scored) writeScore(e, score);
}

void memberTimesShow(memberTimes *t) {
    check(t->hidden > 0);
    t->hidden--;
}

void memberTimesRemoveFirst(memberTimes *t) {
    removeEntry(t, entryAt(t, 0));
    if (t->hidden > 0) t->hidden--;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nodes share, as bytes: whatever they are, they are refused or make a valid state, which is
 * the same after it was printed and parsed, and to which the same bytes add nothing again.
 *
 * Input: entries, as in messages and, between a name and a checksum, in the file. */
#include <string.h>

#include "base/base.h"
#include "bus/shared_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Merges all entries at the start of the bytes; the number of those that were new. */
static int mergeBytes(sharedState *s, slice bytes) {
    int changed = 0;
    sharedEntry e;
    while (bytes.len && sharedEntryTake(&bytes, &e) == OK) {
        check(e.count > 0);
        changed += sharedMerge(s, &e) != SHARED_KNOWN;
        sharedEntryClear(&e);
    }
    return changed;
}

static void checkState(const sharedState *s) {
    uint64_t sum = 0;
    int deleted = 0;
    for (int i = 0; i < s->count; i++) {
        const sharedEntry *e = s->list[i];
        check(sharedFind(s, e->kind, strSlice(&e->name)) == e);
        check(e->count <= SHARED_VERSIONS_MAX);
        sum += e->hash;
        deleted += sharedChosen(e)->form == SHARED_DELETED;
    }
    check(sum == sharedDigest(s));
    check(deleted == s->deleted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char id[] = "0123456789abcdef0123456789abcdef01234567";
    size_t before = memUsed();
    slice bytes = sliceMake((const char *)data, size);
    sharedState s = {0}, again = {0};
    str text = STR_EMPTY;
    (void)mergeBytes(&s, bytes); /* any number */
    checkState(&s);
    sharedStatePrint(&s, &text);
    check(sharedStateParse(&again, strSlice(&text)) == OK);
    check(sharedDigest(&again) == sharedDigest(&s));
    for (int i = 0; i < s.count; i++) check(sharedMerge(&again, s.list[i]) == SHARED_KNOWN);
    if (s.count) {
        sharedKind kind = s.list[0]->kind;
        str name = strNew(strSlice(&s.list[0]->name));
        sharedWrite(&s, kind, strSlice(&name), SHARED_ON, SLICE("on"), true, id, 1000);
        check(sharedFind(&s, kind, strSlice(&name))->count == 1);
        checkState(&s);
        strFree(&name);
    }
    sharedClear(&again);
    (void)sharedStateParse(&again, bytes); /* the checksum is mostly wrong */
    checkState(&again);
    sharedClear(&again);
    sharedClear(&s);
    strFree(&text);
    check(memUsed() == before);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users, roles, libraries of functions and directives that all nodes of a cluster share: what a
 * node knows of them, and how the states of two nodes are merged. A state machine without sockets,
 * clock and files; it knows neither rules of users nor code.
 *
 * Example: nodes A and B are separated. A gives user u one more right twice, B takes one away.
 *
 *   | version of u | seen by its writer | takes rights away |
 *   |---|---|---|
 *   | A at 1000, then A at 2000 | A:2000 | no |
 *   | B at 1500 | B:1500 | yes |
 *
 * When they meet again, both keep both versions, as neither writer has seen the other's. The one of
 * B is chosen, although it is older: it takes away a right and A had not seen that. The next change
 * has seen both, and replaces them.
 *
 * A version has a number and a writer, a node. The number is the writer's time in ms, or one more
 * than the greatest number of the versions that it replaces: so numbers grow along each chain of
 * changes, whatever the clocks are. Epochs of the cluster are not used: they decide about slots,
 * and a change of a user needs no vote. A version lists, per writer, the last version of that one
 * that its own writer had seen. A version that another one has seen is replaced by it.
 *
 * Rules for the versions that remain:
 *
 * 1. A version has news for another one if a change that took rights away is among what it has seen
 *    and not among what the other one has seen.
 * 2. Versions with news are chosen before others; among them those of a deleted user before those
 *    of a disabled one before others.
 * 3. Else the greater number is chosen, then the greater id of the writer.
 *
 * So a right that was taken away comes back only by a change whose author has seen that.
 *
 * sharedMerge() is commutative, associative and idempotent, so nodes that have got the same
 * versions in any order, and however often, have the same state: the result is the set of all
 * versions that none of them has seen, and what a version has seen does not depend on the order.
 * That holds within these bounds: versions of an entry, writers in a version (the oldest are
 * forgotten), deleted entries. A deleted entry is kept, as a node that was away may have an older
 * version. At most SHARED_DELETED_MAX are: the oldest is forgotten first. Only a node that has
 * been away while so many others were deleted can bring such a user back.
 *
 * One thread at a time. */
#ifndef BUS_SHARED_STATE_H
#define BUS_SHARED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "bus/protocol.h"

enum {
    SHARED_ID_BYTES = NODE_ID_LEN / 2,
    SHARED_NAME_MAX = 64 * 1024 - 1,
    SHARED_BODY_MAX = 4 << 20, /* rules of a user, code of a library, a value */
    SHARED_VERSIONS_MAX = 16,  /* of an entry */
    SHARED_WRITERS_MAX = 64,   /* that a version has seen */
    SHARED_DELETED_MAX = 16384,
};

/* The greatest number of a version, which no clock reaches: then it stays the same. */
static const uint64_t SHARED_NUMBER_MAX = UINT64_MAX / 2;

typedef enum sharedKind {
    SHARED_ROLE,
    SHARED_USER,
    SHARED_LIBRARY,
    SHARED_DIRECTIVE,
    SHARED_KINDS
} sharedKind;

/* In the order in which versions with news are chosen. */
typedef enum sharedForm { SHARED_ON, SHARED_OFF, SHARED_DELETED, SHARED_FORMS } sharedForm;

/* The last version of a writer that another one has seen, and its last one that took rights
 * away; 0: none. */
typedef struct sharedSeen {
    uint8_t id[SHARED_ID_BYTES];
    uint64_t number, taken;
} sharedSeen;

typedef struct sharedVersion {
    uint8_t by[SHARED_ID_BYTES];
    uint64_t number;
    sharedForm form;
    str body; /* empty if it is deleted */
    /* Sorted by id; the version itself is among them. */
    sharedSeen *seen;
    int seen_count;
} sharedVersion;

typedef struct sharedEntry {
    sharedKind kind;
    str name;
    sharedVersion *versions; /* none has seen another one; sorted by number and id */
    int count;
    int chosen;
    uint64_t hash;   /* of all that */
    bool is_applied; /* kept by the owner: what is chosen is in effect at this node; false after
                       * each change */
} sharedEntry;

/* A zeroed one is empty. */
typedef struct sharedState {
    sharedEntry **list; /* sorted by kind and name */
    int count, cap;
    int deleted; /* entries whose chosen version is a deletion */
    uint64_t digest;
} sharedState;

void sharedClear(sharedState *s);
/* NULL if there is none of that name. Borrowed until the state is changed. */
sharedEntry *sharedFind(const sharedState *s, sharedKind kind, slice name);
static inline const sharedVersion *sharedChosen(const sharedEntry *e) {
    return &e->versions[e->chosen];
}
/* True if versions of different content remain. */
bool sharedIsConflict(const sharedEntry *e);
/* A number that is equal on nodes with equal states. */
static inline uint64_t sharedDigest(const sharedState *s) { return s->digest; }

/* This node, `id` (hexadecimal digits), has changed an entry. `takes`: the change takes rights
 * away; a deletion always does, but of a library. */
void sharedWrite(sharedState *s, sharedKind kind, slice name, sharedForm form, slice body,
                 bool takes, const char id[NODE_ID_LEN], int64_t now_ms);
/* Adds an entry that a node had before it shared anything. All nodes make the same version of it,
 * which every change replaces. If nodes had different ones, that is chosen which is off, or whose
 * text is less: one with a password before one without. No effect if the entry exists. */
void sharedSeed(sharedState *s, sharedKind kind, slice name, sharedForm form, slice body);

typedef enum sharedMerged {
    SHARED_KNOWN,   /* nothing is new */
    SHARED_CHANGED, /* the entry has changed, maybe also what is chosen */
    SHARED_CONFLICT /* the same, and there are versions of different content now */
} sharedMerged;
/* Merges an entry of another node. */
sharedMerged sharedMerge(sharedState *s, const sharedEntry *from);
void sharedEntryClear(sharedEntry *e);

/* ---- shared_codec.c: entries as bytes, in messages and in the file ---- */

void sharedEntryAppend(const sharedEntry *e, str *out);
/* Takes an entry from the start of `bytes`; it is to be freed with sharedEntryClear(). ERR_SYNTAX:
 * it is invalid, nothing is allocated. */
status sharedEntryTake(slice *bytes, sharedEntry *out) MUST_USE;
/* The whole state with a checksum. sharedStateParse() takes it into an empty state; ERR_SYNTAX
 * leaves that empty. */
void sharedStatePrint(const sharedState *s, str *out);
status sharedStateParse(sharedState *s, slice text) MUST_USE;
/* The hashes of all entries, sorted, 8 bytes each. */
void sharedSummaryAppend(const sharedState *s, str *out);
/* True if the summary, as it was received, lists the entry as it is. Its length is a multiple of
 * 8; it need not be sorted, then entries are sent in vain. */
bool sharedSummaryHas(slice summary, const sharedEntry *e);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of tables share: entries with a number for a key, hash functions good and
 * hostile, and a generator whose seed is printed. */
#ifndef TESTS_C_DS_DS_TEST_H
#define TESTS_C_DS_DS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ds/hashtable.h"

/* A build in which everything takes many times longer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESTS_SANITIZED
#endif
#endif

/* An entry: its key is `id`. */
typedef struct item {
    uint64_t id;
    uint64_t unused;
} item;

/* How ids are hashed. All but the first are what an attacker, or a bug, might bring about. */
typedef enum hashKind {
    HASH_GOOD,
    HASH_ALL_EQUAL,
    HASH_ALL_LAST,  /* in the last 2^-40 of hash space */
    HASH_ALL_FIRST, /* in the first 2^-30 */
    HASH_FOUR_HOMES,
    HASH_HALF_CLUMPED,
    HASH_SEQUENTIAL,
    HASH_KINDS,
} hashKind;

extern hashKind itemHashKind;
extern const hashtableType itemType;

uint64_t itemHash(uint64_t id);
item *itemNew(uint64_t id);
/* Looks an id up, or takes it out. */
item *itemFind(const hashtable *t, uint64_t id);
item *itemDelete(hashtable *t, uint64_t id);
/* Adds a new item with this id, and returns it. */
item *itemAdd(hashtable *t, uint64_t id, unsigned flags);
/* A hashtableVisitProc that frees items. */
void itemFreeVisit(void *context, void *entry, unsigned flags);

/* How much longer than usual random tests shall run: TEST_SCALE, or 1. */
uint64_t testScale(void);
/* Seeds the generators of test and product with TEST_SEED, or a fixed number, and prints it. */
void testSeed(const char *name);

#define assert_valid(t) assert_string_equal(soundOr(hashtableVerify((t), &itemType)), "sound")
static inline const char *soundOr(const char *wrong) { return wrong ? wrong : "sound"; }

#endif

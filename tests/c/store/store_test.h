/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the tests of store/: cmocka and its includes, a printed seed, and a child process that
 * may crash. */
#ifndef TESTS_C_STORE_STORE_TEST_H
#define TESTS_C_STORE_STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "store/object.h"
#include "store/store.h"

/* A build in which everything takes many times longer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESTS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESTS_SANITIZED
#endif
#endif

/* How much longer than usual random tests shall run: TEST_SCALE, or 1. */
uint64_t testScale(void);
/* Seeds the generator with TEST_SEED, or a fixed number, and prints it. */
void testSeed(const char *name);
/* Runs `proc` in a child process whose output is dropped; true when it returned there. */
bool testSurvives(void (*proc)(void));
/* A copy of an object, which is freed; both have the same digest. */
robj *testCopied(robj *o);
/* Group teardown: fails if an object is left; the store of objects is given back. */
int testNoObjects(void **state);

/* Copies a key to another one, in place of what is there. */
static inline status copyKey(const dbKey *from, const dbKey *to) {
    robj *copy;
    status st = dbCopy(from, to, &copy);
    if (st == OK) dbPut(to, copy);
    return st;
}

/* Gives the value of a key to another one, in place of what is there: a copy, or the value itself.
 * Nothing if the key is missing. */
void testGiveName(const dbKey *from, slice name, bool copies);

#endif

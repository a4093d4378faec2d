/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small command table and helpers for the tests of acl/. */
#ifndef TESTS_C_ACL_TEST_H
#define TESTS_C_ACL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "acl/catalog.h"
#include "acl/check.h"
#include "acl/rules.h"
#include "base/base.h"

/* Installs the commands get, set, select, config|get, config|set, copy, mget, publish,
 * psubscribe. */
int setupTestCommands(void **state);
int teardownTestCommands(void **state);

/* Splits a text at blanks; at most 16 words. */
typedef struct testWords {
    slice at[16];
    int count;
} testWords;
testWords wordsOf(const char *text);

/* Applies rules to a new user; NULL or the error text of the first that fails. */
const char *applyAll(aclDraft *d, const char *rules);
/* The list form of a new user with these rules; valid until the next call. */
const char *listed(const char *rules);

#endif

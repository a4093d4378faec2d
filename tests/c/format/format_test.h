/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by the tests of format/. */
#ifndef TESTS_C_FORMAT_FORMAT_TEST_H
#define TESTS_C_FORMAT_FORMAT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "format/rdb_dump.h"
#include "format/rdb_value.h"

/* cmocka's setup and teardown of a group: a store with one database. */
int testSetUp(void **state);
int testTearDown(void **state);
/* Valkey's defaults. */
rdbReadOptions testOptions(void);
/* Converts hexadecimal digits, with optional blanks, to bytes; the caller frees them. */
str testBytes(const char *hex);
/* Reads a value with its type byte; *why receives the reason of a failure. */
status testRead(slice payload, const rdbReadOptions *options, robj **out, reason *why);
/* True if types, values and the expiry times of fields are equal. */
bool testEqual(const robj *a, const robj *b);

#endif

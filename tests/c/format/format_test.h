/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of format/ share. */
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

/* Valkey's defaults. */
rdbReadOptions testOptions(void);
/* The bytes that hexadecimal digits (blanks between them) name; the caller frees. */
str testBytes(const char *hex);
/* Reads a value with its type byte; *why gets the reason of a failure. */
status testRead(slice payload, const rdbReadOptions *options, robj **out, reason *why);
/* True when both have equal types, values and fields' times. */
bool testEqual(const robj *a, const robj *b);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of the cluster share. */
#ifndef TESTS_C_BUS_BUS_TEST_H
#define TESTS_C_BUS_BUS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "bus/map.h"
#include "bus/map_blacklist.h"

/* An id that consists of one digit; 0 to 15. */
typedef struct testId {
    char text[NODE_ID_LEN];
} testId;

static inline testId idOf(int number) {
    testId id;
    memset(id.text, "0123456789abcdef"[number], NODE_ID_LEN);
    return id;
}

static inline clusterNode *addNode(clusterMap *m, int number) {
    return clusterMapAdd(m, idOf(number).text, 1000);
}

#define assert_map_valid(m) \
    do { \
        const char *violated = clusterMapVerify(m); \
        assert_string_equal(violated ? violated : "valid", "valid"); \
    } while (0)

#endif

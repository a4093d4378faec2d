/* SPDX-License-Identifier: BSD-3-Clause
 *
 * route.c: the table of routes, and commands that have no row. */
#include "gateway/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const keySpec one_key = {.begin = KEY_BEGIN_INDEX, .begin_at = 1};
static const keySpec channel = {.flags = KEY_NOT_KEY, .begin = KEY_BEGIN_INDEX, .begin_at = 1};

static routeKind kindOf(const char *name, const commandSpec *spec) {
    return routeOf(sliceOf(name), spec).kind;
}

static void test_rows(void **state) {
    (void)state;
    const commandSpec any = {.name = "any"};
    assert_int_equal(ROUTE_SPLIT, kindOf("mget", &any));
    assert_int_equal(MERGE_VALUES, routeOf(SLICE("mget"), &any).merge);
    assert_int_equal(ROUTE_ABSENT, kindOf("cluster|slots", &any));
    assert_int_equal(ROUTE_ABSENT, kindOf("cluster", &any));
    assert_int_equal(ROUTE_ABSENT, kindOf("clusterscan", &any));
    assert_int_equal(ROUTE_REFUSED, kindOf("himport|set", &any));
    assert_non_null(routeOf(SLICE("himport|set"), &any).why);
    assert_int_equal(ROUTE_ALL, kindOf("script|load", &any));
    route scan = routeOf(SLICE("scan"), &any), sets = routeOf(SLICE("sunion"), &any);
    assert_int_equal(ROUTE_FETCH, sets.kind);
    assert_true(routeIsQueued(&sets));
    assert_false(routeIsQueued(&scan));
    assert_true(routeMayBeQueued(SLICE("ping")));
    assert_false(routeMayBeQueued(SLICE("config|get")));
}

static void test_others(void **state) {
    (void)state;
    const commandSpec keyed = {.name = "x", .key_specs = &one_key, .key_spec_count = 1};
    const commandSpec plain = {.name = "x"};
    const commandSpec shard = {.name = "x",
                               .key_specs = &channel,
                               .key_spec_count = 1,
                               .first_key = 1,
                               .flags = CMD_PUBSUB};
    const commandSpec message = {.name = "x", .flags = CMD_PUBSUB};
    assert_int_equal(ROUTE_SLOT, kindOf("newcommand", &keyed));
    assert_int_equal(ROUTE_LOCAL, kindOf("newcommand", &plain));
    assert_int_equal(ROUTE_SLOT, kindOf("newcommand", &shard));
    assert_int_equal(ROUTE_LOCAL, kindOf("newcommand", &message));
}

int test_route(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}

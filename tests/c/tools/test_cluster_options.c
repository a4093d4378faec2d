/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options of the cluster manager. */
#include "tools/cli/cluster_manager.h"
#include "tools_test.h"

static void optionsTakeTheirValues(void **state) {
    clusterOptions o;
    char *words[] = {(char *)"--cluster-replicas",
                     (char *)"2",
                     (char *)"--cluster-yes",
                     (char *)"--cluster-threshold",
                     (char *)"1.5",
                     (char *)"--cluster-from",
                     (char *)"a,b",
                     (char *)"--cluster-slots"};
    clusterOptionsInit(&o);
    assert_int_equal(o.timeout_ms, 60000);
    assert_int_equal(o.pipeline, 10);
    assert_true(o.threshold_percent == 2.0);
    assert_int_equal(clusterOptionsTake(&o, 8, words, 0), 2);
    assert_int_equal(clusterOptionsTake(&o, 8, words, 2), 1);
    assert_int_equal(clusterOptionsTake(&o, 8, words, 3), 2);
    assert_int_equal(clusterOptionsTake(&o, 8, words, 5), 2);
    assert_int_equal(o.replicas, 2);
    assert_true(o.yes);
    assert_true(o.threshold_percent == 1.5);
    assert_string_equal(o.from, "a,b");
    assert_int_equal(clusterOptionsTake(&o, 8, words, 7), 0); /* no value */
    assert_int_equal(clusterOptionsTake(&o, 8, words, 1), 0); /* not an option */
}

static void weightsEndAtTheNextOption(void **state) {
    clusterOptions o;
    char *words[] = {(char *)"--cluster-weight", (char *)"a=1", (char *)"b=2",
                     (char *)"--cluster-yes",    (char *)"c=3", (char *)"--cluster-weight"};
    clusterOptionsInit(&o);
    assert_int_equal(clusterOptionsTake(&o, 6, words, 5), 0);
    assert_int_equal(clusterOptionsTake(&o, 6, words, 0), 3);
    assert_int_equal(o.weight_count, 2);
    assert_string_equal(o.weights[1], "b=2");
    assert_int_equal(clusterOptionsTake(&o, 6, words, 0), -1);
}

static void theEnvironmentAnswersPrompts(void **state) {
    clusterOptions o;
    assert_return_code(setenv("REDISCLI_CLUSTER_YES", "1", 1), 0);
    clusterOptionsInit(&o);
    assert_true(o.yes);
    assert_return_code(setenv("REDISCLI_CLUSTER_YES", "0", 1), 0);
    clusterOptionsInit(&o);
    assert_false(o.yes);
    assert_return_code(unsetenv("REDISCLI_CLUSTER_YES"), 0);
}

int test_cluster_options(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optionsTakeTheirValues),
        cmocka_unit_test(weightsEndAtTheNextOption),
        cmocka_unit_test(theEnvironmentAnswersPrompts),
    };
    return cmocka_run_group_tests_name("cluster_options", tests, NULL, NULL);
}

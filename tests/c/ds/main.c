/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the test groups of ds/. */
#include <stdio.h>

int test_fenwick(void);
int test_geo_shape(void);
int test_geohash(void);
int test_hashtable(void);
int test_hashtable_model(void);
int test_hashtable_walk(void);
int test_hyperloglog(void);
int test_id_tree(void);
int test_intset(void);
int test_key_sort(void);
int test_kvstore(void);
int test_listpack(void);
int test_ordered(void);
int test_quicklist(void);
int test_radix_tree(void);
int test_size_sample(void);
int test_stream(void);
int test_stream_producers(void);

int main(void) {
    int failed = 0;
    failed += test_fenwick();
    failed += test_geo_shape();
    failed += test_geohash();
    failed += test_hashtable();
    failed += test_hashtable_model();
    failed += test_hashtable_walk();
    failed += test_hyperloglog();
    failed += test_id_tree();
    failed += test_intset();
    failed += test_key_sort();
    failed += test_kvstore();
    failed += test_listpack();
    failed += test_ordered();
    failed += test_quicklist();
    failed += test_radix_tree();
    failed += test_size_sample();
    failed += test_stream();
    failed += test_stream_producers();
    if (failed) fprintf(stderr, "%d test(s) of ds failed\n", failed);
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the test groups of store/. */
#include <stdio.h>

int test_compact(void);
int test_compressed(void);
int test_compressed_fields(void);
int test_compressed_packed(void);
int test_db(void);
int test_dictionary(void);
int test_evict(void);
int test_hidden(void);
int test_items(void);
int test_keyspace(void);
int test_members(void);
int test_object(void);
int test_packed(void);
int test_placeholder(void);
int test_record(void);
int test_removal(void);
int test_reading(void);
int test_saving(void);
int test_shape(void);
int test_slab(void);
int test_slab_model(void);
int test_survey(void);
int test_taken(void);
int test_type_hash(void);
int test_type_list(void);
int test_type_pathhash(void);
int test_type_set(void);
int test_type_stream(void);
int test_type_string(void);
int test_type_zset(void);

int main(void) {
    int failed = 0;
    failed += test_compact();
    failed += test_compressed();
    failed += test_compressed_fields();
    failed += test_compressed_packed();
    failed += test_db();
    failed += test_dictionary();
    failed += test_evict();
    failed += test_hidden();
    failed += test_items();
    failed += test_keyspace();
    failed += test_members();
    failed += test_object();
    failed += test_packed();
    failed += test_placeholder();
    failed += test_record();
    failed += test_removal();
    failed += test_reading();
    failed += test_saving();
    failed += test_shape();
    failed += test_slab();
    failed += test_slab_model();
    failed += test_survey();
    failed += test_taken();
    failed += test_type_hash();
    failed += test_type_list();
    failed += test_type_pathhash();
    failed += test_type_set();
    failed += test_type_stream();
    failed += test_type_string();
    failed += test_type_zset();
    if (failed) fprintf(stderr, "%d test(s) of store failed\n", failed);
    return failed != 0;
}

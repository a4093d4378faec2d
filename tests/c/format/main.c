/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of format/. */
int test_aof_manifest(void);
int test_aof_reader(void);
int test_rdb_hostile(void);
int test_rdb_module(void);
int test_rdb_envelope(void);
int test_rdb_recode(void);
int test_rdb_primitives(void);
int test_rdb_values(void);

int main(void) {
    int failed = 0;
    failed += test_aof_manifest();
    failed += test_aof_reader();
    failed += test_rdb_hostile();
    failed += test_rdb_module();
    failed += test_rdb_envelope();
    failed += test_rdb_recode();
    failed += test_rdb_primitives();
    failed += test_rdb_values();
    return failed != 0;
}

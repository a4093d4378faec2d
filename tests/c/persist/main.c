/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of persist/. */
int test_rdb_slots(void);
int test_snapshot_stream(void);
int test_snapshot_stream_failures(void);

int main(void) {
    int failed = 0;
    failed += test_rdb_slots();
    failed += test_snapshot_stream();
    failed += test_snapshot_stream_failures();
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of psync/. */
int test_backlog(void);
int test_birth(void);
int test_change_window(void);
int test_history(void);
int test_primary(void);
int test_link(void);
int test_quorum(void);
int test_slot_offsets(void);

int main(void) {
    int failed = 0;
    failed += test_backlog();
    failed += test_birth();
    failed += test_change_window();
    failed += test_history();
    failed += test_primary();
    failed += test_link();
    failed += test_quorum();
    failed += test_slot_offsets();
    return failed != 0;
}

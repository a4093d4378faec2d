/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of cluster/. */
int test_server_file(void);
int test_scan_cursor(void);

int main(void) {
    int failed = 0;
    failed += test_server_file();
    failed += test_scan_cursor();
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of gateway/. */
int test_reply_order(void);
int test_info(void);
int test_merge(void);
int test_split(void);
int test_route(void);
int test_scan(void);

int main(void) {
    int failed = test_reply_order();
    failed += test_info();
    failed += test_merge();
    failed += test_split();
    failed += test_route();
    failed += test_scan();
    return failed != 0;
}

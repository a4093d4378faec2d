/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of acl/. */
int test_rules(void);
int test_texts(void);
int test_check(void);

int main(void) {
    int failed = 0;
    failed += test_rules();
    failed += test_texts();
    failed += test_check();
    return failed != 0;
}

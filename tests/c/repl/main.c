/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of repl/. */
int test_lag_throttle(void);
int test_role(void);

int main(void) {
    int failed = 0;
    failed += test_lag_throttle();
    failed += test_role();
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of script/. */
int test_debug_frame(void);
int test_functions(void);
int test_walk(void);

int main(void) {
    int failed = 0;
    failed += test_debug_frame();
    failed += test_functions();
    failed += test_walk();
    return failed != 0;
}

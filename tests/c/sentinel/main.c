/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of sentinel/. */
int test_lines(void);
int test_scripts(void);
int test_machine(void);
int test_quorum_choice(void);

int main(void) {
    int failed = 0;
    failed += test_lines();
    failed += test_scripts();
    failed += test_machine();
    failed += test_quorum_choice();
    return failed != 0;
}

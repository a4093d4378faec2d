/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of metrics/. */
int test_history(void);
int test_info_fields(void);
int test_http_parse(void);

int main(void) {
    int failed = 0;
    failed += test_history();
    failed += test_info_fields();
    failed += test_http_parse();
    return failed != 0;
}

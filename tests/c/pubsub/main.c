/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of pubsub/. */
int test_channels(void);
int test_tracking_table(void);

int main(void) {
    int failed = 0;
    failed += test_channels();
    failed += test_tracking_table();
    return failed != 0;
}

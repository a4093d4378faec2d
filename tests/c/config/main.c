/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of config/. */
int test_config(void);

int main(void) { return test_config() != 0; }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of account/. */
int test_cpu_bucket(void);

int main(void) { return test_cpu_bucket() != 0; }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of net/. */
int test_client(void);

int main(void) { return test_client() != 0; }

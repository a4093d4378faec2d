/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of net/. */
int test_accept(void);
int test_client(void);
int test_hand_over(void);

int main(void) { return (test_accept() + test_client() + test_hand_over()) != 0; }

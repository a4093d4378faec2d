/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of cmd/. */
int test_allocations(void);
int test_reply_sink(void);

int main(void) { return test_allocations() + test_reply_sink() != 0; }

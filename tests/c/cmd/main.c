/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of cmd/. */
int test_allocations(void);

int main(void) { return test_allocations() != 0; }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the test groups of base/. */
#include "base_test.h"

int main(void) {
    int failed = 0;
    failed += test_alloc();
    failed += test_assert();
    failed += test_bits();
    failed += test_blob();
    failed += test_bytes();
    failed += test_clock();
    failed += test_error();
    failed += test_fiber();
    failed += test_glob();
    failed += test_hash();
    failed += test_histogram();
    failed += test_log();
    failed += test_map();
    failed += test_number();
    failed += test_number_double();
    failed += test_progress_meter();
    failed += test_random();
    failed += test_slice();
    failed += test_str();
    return failed != 0;
}

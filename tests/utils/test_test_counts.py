# SPDX-License-Identifier: BSD-3-Clause
"""The counts of tests in the pages are not more than there is."""

import os
import sys
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
import test_counts  # noqa: E402


class TestCounts(unittest.TestCase):
    def page(self, number):
        return f"text\n{test_counts.BEGIN}| tests | at least |\n|---|---|\n| tests of x | {number:,} |\n{test_counts.END}\n"

    def faults(self, claimed, real):
        with mock.patch.object(test_counts, "counts", lambda: [("tests of x", real)]):
            return list(test_counts.faults("page", self.page(claimed)))

    def test_a_page_that_claims_more_or_much_less_is_refused(self):
        self.assertEqual([], self.faults(1000, 1000))
        self.assertEqual([], self.faults(1000, 1099))
        self.assertIn("there are 999", self.faults(1000, 999)[0])
        self.assertIn("there are 1,200", self.faults(1000, 1200)[0])

    def test_a_count_that_is_missing_is_named(self):
        with mock.patch.object(test_counts, "counts", lambda: [("tests of y", 3)]):
            self.assertIn("tests of y", next(test_counts.faults("page", self.page(3))))

    def test_numbers_are_rounded_down_to_two_digits(self):
        self.assertEqual([9, 12, 120, 2300, 99000], [test_counts.rounded(n) for n in (9, 12, 129, 2399, 99999)])

    def test_each_kind_of_tests_of_this_tree_is_counted(self):
        for what, number in test_counts.counts():
            with self.subTest(what=what):
                self.assertGreater(number, 5)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""The counts of tests in the pages are not more than there is."""

import os
import sys
import tempfile
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

    def ended(self, names, failed=0):
        return "\n".join(f"{name}|100|{failed}|1|60|log|0|30" for name in names) + "\n"

    def test_a_run_is_kept_if_it_is_whole_and_nothing_failed(self):
        names = sorted(test_counts.WHOLE) + ["hostile peers"]
        self.assertEqual({"phases": 5, "passed": 500, "flaky": 5, "cpu_seconds": 150}, test_counts.read_run(self.ended(names)))
        with self.assertRaisesRegex(ValueError, "failed: check, "):
            test_counts.read_run(self.ended(names, failed=1))
        with self.assertRaisesRegex(ValueError, "not a whole run, without: durability, simulation, suite release RESP3"):
            test_counts.read_run(self.ended(["check"]))

    def test_a_run_of_another_tree_is_kept_with_its_commit(self):
        with tempfile.TemporaryDirectory() as root, mock.patch.object(test_counts, "ROOT", root):
            os.makedirs(os.path.join(root, "docs"))
            phases = os.path.join(root, "tested", test_counts.PHASES)
            os.makedirs(phases)
            for name, text in (("ended", self.ended(sorted(test_counts.WHOLE))), ("commit", "0123abcd\n")):
                with open(os.path.join(phases, name), "w", encoding="utf-8") as file:
                    file.write(text)
            test_counts.keep_run(os.path.join(root, "tested"))
            self.assertIn("(commit 0123abcd), in 4 phases, none failed", test_counts.run_row()[0][0])

    def test_a_run_of_changes_without_a_commit_is_refused(self):
        with self.assertRaisesRegex(ValueError, "changes without a commit"):
            test_counts.read_commit("0123abcd\nchanged\n")
        with self.assertRaisesRegex(ValueError, "not known"):
            test_counts.read_commit("")

    def test_a_page_may_have_the_row_of_a_run(self):
        """README.md is at its limit of lines when it has one."""
        row = [] if test_counts.run_row() else ["the row"]
        lines = test_counts.read("README.md").splitlines() + row
        self.assertLessEqual(len(lines), 150)

    def test_a_run_that_was_kept_is_a_row(self):
        with tempfile.TemporaryDirectory() as root, mock.patch.object(test_counts, "ROOT", root):
            self.assertEqual([], test_counts.run_row())
            os.makedirs(os.path.join(root, "docs"))
            with open(os.path.join(root, test_counts.RUN), "w", encoding="utf-8") as file:
                file.write('{"phases": 20, "passed": 12345, "flaky": 0, "cpu_seconds": 9, "date": "2026-01-02", "commit": "0123abcd"}')
            self.assertEqual([("checks that passed in the run of 2026-01-02 (commit 0123abcd), in 20 phases, none failed", 12345)],
                             test_counts.run_row())

    def test_each_kind_of_tests_of_this_tree_is_counted(self):
        for what, number in test_counts.counts():
            with self.subTest(what=what):
                self.assertGreater(number, 5)


if __name__ == "__main__":
    unittest.main()

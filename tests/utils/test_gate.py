#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tests/bench/gate.py: that it fails when it should."""

import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
import gate  # noqa: E402

FILE = """# words
compiler: gcc 12

GET, P1 | 1000.0 | instructions
a key   |   50.0 | bytes       
"""


def failures(measured, text=FILE):
    report = gate.Report()
    with contextlib.redirect_stdout(io.StringIO()):
        gate.judge_budgets(report, measured, gate.parse_budgets(text)[1])
    return report.failed


def measured(instructions, bytes_a_key):
    return {"GET, P1": (instructions, "instructions"), "a key": (bytes_a_key, "bytes")}


class Budgets(unittest.TestCase):
    def test_what_fits_passes(self):
        self.assertEqual(failures(measured(1000.0, 50.0)), 0)
        self.assertEqual(failures(measured(1019.9, 50.4)), 0)
        self.assertEqual(failures(measured(500.0, 20.0)), 0)

    def test_what_costs_more_than_the_room_fails(self):
        self.assertEqual(failures(measured(1025.2, 50.0)), 1)
        self.assertEqual(failures(measured(1000.0, 50.8)), 1)
        self.assertEqual(failures(measured(2000.0, 99.0)), 2)

    def test_what_exceeds_the_room_by_under_half_a_percent_is_reported_and_passes(self):
        report, output = gate.Report(), io.StringIO()
        with contextlib.redirect_stdout(output):
            gate.judge_budgets(report, measured(1025.0, 50.7), gate.parse_budgets(FILE)[1])
        self.assertEqual((report.passed, report.failed), (2, 0))
        lines = output.getvalue().splitlines()
        self.assertRegex(lines[0], r"^OVER    GET, P1 .*1025\.0 of 1000\.0 instructions; 0\.49% above")
        self.assertRegex(lines[1], r"^OVER    a key .*50\.7 of 50\.0 bytes; 0\.40% above")

    def test_a_lowered_budget_fails(self):
        self.assertEqual(failures(measured(1000.0, 50.0), FILE.replace("1000.0", " 970.0")), 1)

    def test_a_row_without_a_budget_fails(self):
        self.assertEqual(failures({**measured(1000.0, 50.0), "new": (1.0, "bytes")}), 1)

    def test_a_budget_without_a_row_fails(self):
        self.assertEqual(failures({"GET, P1": (1000.0, "instructions")}), 1)

    def test_a_budget_in_another_unit_fails(self):
        self.assertEqual(failures({**measured(1000.0, 50.0), "GET, P1": (1.0, "bytes")}), 1)


class File(unittest.TestCase):
    def test_only_what_is_cheaper_is_lowered(self):
        text = gate.lowered(FILE, measured(900.04, 51.0))
        self.assertEqual(text, FILE.replace("1000.0", " 900.0"))
        self.assertEqual(gate.lowered(FILE, measured(1000.0, 50.0)), FILE)

    def test_rows_are_read(self):
        compiler, rows = gate.parse_budgets(FILE)
        self.assertEqual(compiler, "gcc 12")
        self.assertEqual(rows["a key"], (50.0, "bytes"))

    def test_what_is_incomplete_is_refused(self):
        for old, new in (("| bytes ", "| ells "), ("compiler: gcc 12", ""),
                         ("GET, P1 | 1000.0 | instructions", "GET, P1 | 1000.0"),
                         ("a key  ", "GET, P1")):
            with self.assertRaises(ValueError, msg=new):
                gate.parse_budgets(FILE.replace(old, new, 1))

    def test_the_file_in_use_is_complete(self):
        with open(os.path.join(gate.ROOT, gate.BUDGETS), encoding="utf-8") as file:
            self.assertGreater(len(gate.parse_budgets(file.read())[1]), 70)


class Processors(unittest.TestCase):
    def good(self, base, head):
        return gate.judge_cpu(base, head)[0]

    def test_noise_passes_and_a_loss_fails(self):
        self.assertTrue(self.good([1.0, 1.01, 1.02], [1.1, 1.12, 1.13]))
        self.assertFalse(self.good([1.0, 1.01, 1.02], [1.2, 1.21, 1.22]))

    def test_a_noisy_base_widens_the_band(self):
        self.assertTrue(self.good([1.0, 1.1, 1.4], [1.2, 1.3, 1.4]))
        self.assertFalse(self.good([1.0, 1.1, 1.4], [1.7, 1.7, 1.7]))


if __name__ == "__main__":
    unittest.main()

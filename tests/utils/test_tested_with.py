# SPDX-License-Identifier: BSD-3-Clause
"""docs/tested-with.md is made from its results alone."""

import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
import tested_with  # noqa: E402

ROW = {"kind": "clients", "name": "a 1.0", "date": "2026-11-30", "result": "5 passed", "repeat": "run a"}


class TestedWith(unittest.TestCase):
    def read(self, **changes):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"results": [dict(ROW, **changes)]}, file)
            file.flush()
            return tested_with.read_results(file.name)

    def test_a_result_is_a_row_below_its_kind(self):
        text = tested_with.page(self.read())
        self.assertIn("## Clients\n", text)
        self.assertIn("| a 1.0 | 2026-11-30 | 5 passed | run a |\n", text)

    def test_a_result_without_a_date_a_repetition_or_with_a_line_break_is_refused(self):
        for changes in ({"date": "soon"}, {"repeat": ""}, {"result": "5\npassed"}, {"name": "a|b"}):
            with self.subTest(changes=changes), self.assertRaises(ValueError):
                self.read(**changes)

    def test_a_new_result_takes_the_place_of_that_of_the_same_name(self):
        other = dict(ROW, name="b 1.0", result="1 passed")
        rows = tested_with.add([ROW, other], list(dict(ROW, result="6 passed").values()))
        self.assertEqual(["6 passed", "1 passed"], [row["result"] for row in rows])
        self.assertEqual(["a 1.0", "b 1.0", "c 1.0"], [row["name"] for row in tested_with.add(rows, list(dict(ROW, name="c 1.0").values()))])


if __name__ == "__main__":
    unittest.main()

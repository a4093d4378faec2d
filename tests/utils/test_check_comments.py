# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_comments.py finds wide comments and torn declarations, and mends them."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
from check_comments import faults, fix  # noqa: E402

WORDS = "word " * 21


class CheckComments(unittest.TestCase):
    def test_a_wide_comment_is_wrapped_without_losing_a_word(self):
        lines = [f"/* {WORDS}ends. */", "int x;"]
        self.assertEqual(1, len(list(faults(lines))))
        fixed = fix(list(lines))
        self.assertEqual([], list(faults(fixed)))
        self.assertEqual(22, sum(line.count("word") + line.count("ends") for line in fixed))
        self.assertEqual("int x;", fixed[-1])

    def test_a_comment_that_tears_a_declaration_is_put_above(self):
        lines = ["    bool", "        again; /* evaluate it again */"]
        self.assertEqual([1], [number for number, _ in faults(lines)])
        self.assertEqual(["    /* Evaluate it again. */", "    bool again;"], fix(list(lines)))

    def test_a_wide_text_is_no_comment(self):
        self.assertEqual([], list(faults([f'    puts("{WORDS}");'])))

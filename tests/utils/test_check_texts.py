# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_texts.py finds files without a head, and names in comments that do not exist."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
from check_texts import faults, known_words  # noqa: E402

HEAD = "/* Licence\n *\n * What it is. */\n"
TEXTS = {"src/ds/tree.c": HEAD + "void treeAdd(void) {}\n", "src/ds/tree.h": HEAD}


class CheckTexts(unittest.TestCase):
    def found(self, text, path="src/ds/new.c"):
        return [what for _, what in faults(path, text, known_words(TEXTS), {"tree.c", "tree.h"}, TEXTS)]

    def test_a_file_without_a_head_is_found(self):
        self.assertEqual([], self.found(HEAD))
        self.assertIn("no head", self.found("/* Licence */\nint x;\n")[0])
        self.assertEqual([], self.found("/* Licence */\n", "tests/c/ds/new.c"))

    def test_a_name_that_does_not_exist_is_found(self):
        self.assertEqual([], self.found(HEAD + "/* See treeAdd() and tree.h, ds/tree.c. */\n"))
        self.assertEqual(["no such name: treeGrow"], self.found(HEAD + "/* See treeGrow(). */\n"))
        self.assertEqual(["no such file: bush.c"], self.found(HEAD + "/* See bush.c. */\n"))
        self.assertEqual(["no such file: io/tree.c"], self.found(HEAD + "/* See io/tree.c. */\n"))

    def test_a_remark_that_each_callback_repeats_is_found(self):
        self.assertIn("there is one", self.found(HEAD + "void f(void *a) {\n    (void)a; /* there is one bus */\n}\n")[0])


if __name__ == "__main__":
    unittest.main()

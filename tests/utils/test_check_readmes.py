# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_readmes.py finds what a README of a folder lacks, and what it names in vain."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
from check_readmes import check_tree  # noqa: E402

GOOD = "# ds\n\nSee [the architecture](../README.md).\n\n## Files\n\n- `a.h`, `a.c`: a\n"


class CheckReadmes(unittest.TestCase):
    def faults(self, readme, files=("a.c", "a.h"), architecture="# Architecture\n"):
        with tempfile.TemporaryDirectory() as folder:
            src = os.path.join(folder, "src")
            os.makedirs(f"{src}/ds/spec")
            os.makedirs(f"{src}/ds/generated")
            for name in files:
                open(f"{src}/ds/{name}", "w").close()
            open(f"{src}/ds/spec/ds.json", "w").close()
            for path, text in (("README.md", architecture), ("ds/README.md", readme)):
                if text is not None:
                    with open(f"{src}/{path}", "w") as file:
                        file.write(text)
            return list(check_tree(src))

    def test_a_complete_readme_has_no_fault(self):
        self.assertEqual([], self.faults(GOOD))

    def test_a_header_need_not_be_named(self):
        self.assertEqual([], self.faults(GOOD, ("a.c", "a.h", "b.h")))

    def test_a_source_that_is_not_named_is_found(self):
        self.assertEqual(['src/ds/README.md: add b.c to the section "Files"'],
                         self.faults(GOOD.replace("# ds\n", "# ds, `b.c`\n"), ("a.c", "a.h", "b.c")))

    def test_generated_files_are_named_by_the_folder_above(self):
        files = ("a.c", "a.h", "generated/table.c")
        self.assertEqual([], self.faults(GOOD + "- `generated/table.c`: a table\n", files))
        self.assertEqual(['src/ds/README.md: add generated/table.c to the section "Files"'], self.faults(GOOD, files))

    def test_a_name_without_file_is_found(self):
        self.assertEqual(["src/ds/README.md: no such file: a.h"], self.faults(GOOD, ("a.c",)))

    def test_a_link_to_nothing_is_found(self):
        self.assertEqual(["src/ds/README.md: no such file: ../DESIGN.md"],
                         self.faults(GOOD.replace("../README.md", "../DESIGN.md")))

    def test_a_folder_of_sources_without_readme_is_found(self):
        self.assertEqual(1, len(self.faults(None)))
        self.assertEqual(['src/ds/README.md: no section "Files"'], self.faults("# ds\n"))

    def test_long_lines_and_a_long_architecture_are_found(self):
        self.assertEqual(["src/ds/README.md:8: 101 columns, 100 at most"], self.faults(GOOD + "x" * 101))
        self.assertEqual([], self.faults(GOOD + "x" * 100, architecture="x\n" * 200))
        self.assertEqual(["src/README.md: 201 lines, 1 to 200 expected"],
                         self.faults(GOOD, architecture="x\n" * 201))

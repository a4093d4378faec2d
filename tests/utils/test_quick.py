# SPDX-License-Identifier: BSD-3-Clause
"""What `make quick` selects for a change: tests/support/quick_files.txt."""

import os
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.dirname(TESTS)
sys.path.insert(0, TESTS)
import quick_files

JOBS = 10  # of two processors
SECONDS_MAX = 60


def source_files():
    found = []
    for folder, _, names in os.walk(os.path.join(TREE, "src")):
        found += [os.path.relpath(os.path.join(folder, name), TREE) for name in names if "." in name or name == "Makefile"]
    return found


def known_seconds():
    with open(os.path.join(TESTS, "support", "long_files.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in rows}


class Quick(unittest.TestCase):
    def setUp(self):
        self.rows = quick_files.read_rows()
        self.files = quick_files.tcl_files()

    def select(self, *changed):
        return quick_files.select(changed, self.rows, self.files)

    def test_every_pattern_names_files(self):
        names = [name[len("src/"):] for name in source_files()]
        for sources, tests in self.rows:
            for pattern in sources:
                self.assertTrue(quick_files.matching(names, [pattern]), f"no source file: {pattern}")
            for pattern in tests:
                self.assertTrue(quick_files.matching(self.files, [pattern]), f"no Tcl file: {pattern}")

    def test_no_single_file_selects_more_than_a_minute(self):
        seconds = known_seconds()
        for path in source_files():
            taken = [seconds.get(name, 2) for name in self.select(path)]
            expected = max(sum(taken) / JOBS, max(taken, default=0))
            self.assertLessEqual(expected, SECONDS_MAX, path)

    def test_new_command_runs_its_family_only(self):
        changed = ["src/cmd/set.c", "src/cmd/procs.h", "src/cmd/spec/set.json", "src/server/generated/command_table.c",
                   "src/tools/cli/generated/command_table.c", "docs/commands.md", "CHANGELOG.md", "utils/completion/_valkey-cli"]
        self.assertEqual(self.select(*changed), {"unit/type/set", "unit/type/member_times"})

    def test_what_all_commands_use_runs_a_part_of_each_kind(self):
        chosen = self.select("src/engine/execute.c")
        self.assertEqual(chosen, self.select())
        self.assertLess(len(chosen), len(self.files) / 3)
        self.assertEqual({name.split("/")[0] for name in chosen}, {"unit", "integration", "cluster"})

    def test_changed_test_runs_itself(self):
        self.assertEqual(self.select("tests/unit/sort.tcl", "docs/tour.md"), {"unit/sort"})

    def test_documents_and_tables_select_nothing(self):
        self.assertEqual(self.select("docs/tour.md", "src/server/generated/command_table.c", "src/cmd/README.md"), set())

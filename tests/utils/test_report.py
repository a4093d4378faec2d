# SPDX-License-Identifier: BSD-3-Clause
"""The page of tests/bench/report.py is made from the figures alone."""

import os
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import report_page  # noqa: E402

RUN = {"date": "2026-01-02 03:04 UTC", "quick": True, "rounds": 3, "ours": "v=9.1.2 sha=1", "peer": "v=9.1.0 sha=2", "other_load": 0.0}
CPU = [{"command": command, "pipeline": p, "ours": 1.0, "ours_least": 1.0, "ours_most": 2.0, "peer": 3.0, "peer_least": 3.0,
        "peer_most": 4.0} for command in ("GET", "SET") for p in (1, 16, 100)]


def save_rows(alone, saving):
    return [{"server": server, "command": command, "saving": saves, "p99": 1, "p99.9": saving if saves else alone, "longest": 9,
             "seconds": 1.0, "memory_mb": 5} for server in ("ours", "peer") for command in ("SET", "GET") for saves in (False, True)]


def results(alone=100, saving=1000):
    return {"machine": {"processors": 2, "model": "A <fast> one", "memory_gb": 8.0, "kernel": "6"},
            "cpu": {"run": RUN, "figures": CPU},
            "memory": {"run": RUN, "figures": [{"value": 16, "keys": [1000, 2000], "ours": [50, 52], "peer": [60, 80]}]},
            "save": {"run": RUN, "figures": {"keys": 2000000, "value": 64, "rate": 1000, "rows": save_rows(alone, saving)}},
            "sync": {"run": RUN, "figures": {"keys": 2000000, "value": 64, "ours": 1.0, "peer": 2.0, "ours_cpu": 1, "peer_cpu": 3}}}


class Report(unittest.TestCase):
    def files(self, figures):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("before\n" + "\nold\n".join(report_page.MARKS) + "\nafter\n")
            return {os.path.relpath(path, root): text for path, text in report_page.files(figures, root).items()}

    def test_plots_are_xml_and_all_files_are_made(self):
        files = self.files(results())
        self.assertEqual({"README.md", "docs/benchmarks.md", "docs/benchmarks/cpu.svg", "docs/benchmarks/memory.svg",
                          "docs/benchmarks/save.svg"}, set(files))
        for path, text in files.items():
            if path.endswith(".svg"):
                xml.dom.minidom.parseString(text)

    def test_only_what_is_between_the_marks_of_the_readme_is_replaced(self):
        readme = self.files(results())["README.md"]
        self.assertTrue(readme.startswith("before\n") and readme.endswith("\nafter\n"))
        self.assertNotIn("old", readme)
        self.assertIn("| memory of a key of 16 bytes and its value of 16 | 51.0 bytes | 70.0 bytes | 1.4 |", readme)

    def test_latencies_of_a_busy_machine_are_not_compared(self):
        self.assertIn("p99.9 of SET", self.files(results())["README.md"])
        busy = self.files(results(alone=900))
        self.assertNotIn("p99.9 of SET", busy["README.md"])
        self.assertIn("too busy to judge", busy["docs/benchmarks.md"])

    def test_a_part_that_was_not_measured_is_left_out(self):
        figures = results()
        del figures["save"]
        self.assertNotIn("Latency during a save", self.files(figures)["docs/benchmarks.md"])


if __name__ == "__main__":
    unittest.main()

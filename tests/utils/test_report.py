# SPDX-License-Identifier: BSD-3-Clause
"""The page of tests/bench/report.py is made from the figures alone."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock
import xml.dom.minidom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import report  # noqa: E402
import report_page  # noqa: E402

RUN = {"date": "2026-01-02 03:04 UTC", "quick": True, "rounds": 3, "ours": "v=9.1.2 sha=1", "peer": "v=9.1.0 sha=2", "other_load": 0.0,
       "machine": {"processors": 2, "model": "A <fast> one", "memory_gb": 8.0, "kernel": "6"}}
CPU = [{"command": command, "pipeline": p, "ours": 1.0, "ours_least": 1.0, "ours_most": 2.0, "peer": 3.0, "peer_least": 3.0,
        "peer_most": 4.0} for command in ("GET", "SET") for p in (1, 16, 100)]


def save_rows(alone, saving):
    return [{"server": server, "command": command, "saving": saves, "p99": 1, "p99.9": saving if saves else alone, "longest": 9,
             "seconds": 1.0, "memory_mb": 5} for server in ("ours", "peer") for command in ("SET", "GET") for saves in (False, True)]


def pair(ours, peer):
    """Figures with a spread of a tenth."""
    return {name + suffix: figure + more * figure // 10 for name, figure in (("ours", ours), ("peer", peer))
            for suffix, more in (("", 0), ("_least", -1), ("_most", 1))}


def results(alone=100, saving=1000):
    return {"cpu": {"run": RUN, "figures": CPU},
            "memory": {"run": RUN, "figures": [{"value": 16, "keys": [1000, 2000], "ours": [50, 52], "peer": [60, 80]}]},
            "save": {"run": RUN, "figures": {"keys": 2000000, "value": 64, "rate": 1000, "method": "In turn.",
                                              "rows": save_rows(alone, saving)}},
            "sync": {"run": RUN, "figures": {"keys": 2000000, "value": 64, "ours": 1.0, "peer": 2.0, "ours_cpu": 1, "peer_cpu": 3}}}


class Report(unittest.TestCase):
    def files(self, figures):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write("before\n" + "\nold\n".join(report_page.MARKS) + "\nafter\n")
            return {os.path.relpath(path, root): text for path, text in report_page.files(figures, root).items()}

    def test_parts_of_several_machines_say_which(self):
        figures = results()
        figures["sync"] = figures["sync"] | {"run": RUN | {"machine": RUN["machine"] | {"model": "Another"}, "date": "2020-01-01 10:00 UTC"}}
        files = self.files(figures)
        self.assertIn("; synchronisation 2020-01-01 on 2 x Another", files["README.md"])
        self.assertIn("on Another (quick form), ", files["docs/benchmarks.md"])
        self.assertNotIn("synchronisation", report_page.measured(results()))

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

    def test_the_words_of_the_readme_are_made_from_the_figures(self):
        figures = results()
        figures["cpu"]["figures"] = [row | {"peer": row["peer"] + (row["command"] == "SET")} for row in CPU]
        words = self.files(figures)["README.md"].replace("\n", " ")
        self.assertIn("CPU per request is 3.0 to 4.0 times less over 2 commands without pipelines, where nearly all of the time is the "
                      "kernel's; 3.0 to 4.0 times with pipelines of 16, 3.0 to 4.0 with 100.", words)
        self.assertIn("Overhead per key is 2.0 times less, by", words)
        self.assertIn("p99.9 of SET was 0.1 ms, the peer's 0.1 ms", words)
        figures["cpu"]["figures"] = [row | {"peer_least": 1.5} for row in CPU]
        self.assertIn("the kernel's and rounds of both servers overlap; 3.0 times with", self.files(figures)["README.md"].replace("\n", " "))
        self.assertNotIn("Without a save", self.files(results(alone=900))["README.md"])

    def test_latencies_of_a_busy_machine_are_not_compared(self):
        self.assertIn("p99.9 of SET", self.files(results())["README.md"])
        busy = self.files(results(alone=900))
        self.assertNotIn("p99.9 of SET", busy["README.md"])
        self.assertIn("too busy to judge", busy["docs/benchmarks.md"])

    def test_a_part_that_was_not_measured_is_left_out(self):
        figures = results()
        del figures["save"]
        self.assertNotIn("Latency during a save", self.files(figures)["docs/benchmarks.md"])

    def test_figures_whose_rounds_overlap_are_called_equal(self):
        figures = results()
        figures["speed"] = {"run": RUN, "figures": [{"command": "GET", "rate": 60000, **pair(100000, 105000), "latencies": {
            "p50": pair(100, 110), "p99": pair(100, 300), "p99.9": pair(3000, 1000)}}]}
        page = self.files(figures)["docs/benchmarks.md"]
        self.assertIn("| 100,000 (90,000 to 110,000) | 105,000 (94,500 to 115,500) | 1.0 (rounds overlap) |", page)
        self.assertIn("| GET, 60,000 a second | p50 | 100 (90 to 110) | 110 (99 to 121) | equal |", page)
        self.assertIn("| p99 | 100 (90 to 110) | 300 (270 to 330) | 3.0 times less |", page)
        self.assertIn("| p99.9 | 3,000 (2,700 to 3,300) | 1,000 (900 to 1,100) | 3.0 times more |", page)

    def test_settings_have_their_rows(self):
        figures = results()
        figures["settings"] = {"run": RUN, "figures": [{"setting": "TLS", "command": "SET", "pipeline": 16, **pair(10, 20)}]}
        self.assertIn("| TLS | SET, P16 | 10.00 (9.00 to 11.00) | 20.00 (18.00 to 22.00) | 2.0 |",
                      self.files(figures)["docs/benchmarks.md"])

    def test_latencies_without_a_save_are_compared_when_their_spread_is_known(self):
        self.assertNotIn("Without a save, medians", self.files(results())["docs/benchmarks.md"])
        figures = results()
        for row in figures["save"]["figures"]["rows"]:
            for part in ("p50", "p99", "p99.9"):
                row |= {part: 50, part + "_least": 40, part + "_most": 60}
        page = self.files(figures)["docs/benchmarks.md"]
        self.assertIn("| GET, p99.9 | 50 (40 to 60) | 50 (40 to 60) | equal |", page)
        self.assertIn("| server | request |  | p50 | p99 | p99.9 | longest | seconds | MB |", page)

    def test_the_quick_form_prints_and_writes_nothing(self):
        printed = io.StringIO()
        with unittest.mock.patch.object(report, "measure", lambda options: results()), \
             unittest.mock.patch.object(report, "RESULTS", "/nonexistent/results.json"), \
             unittest.mock.patch.object(sys, "argv", ["report.py", "/a/server", "--quick"]), \
             contextlib.redirect_stdout(printed):
            report.main()
        self.assertIn("## Full synchronisation", printed.getvalue())
        self.assertNotIn("wrote", printed.getvalue())


if __name__ == "__main__":
    unittest.main()

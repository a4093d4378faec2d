# SPDX-License-Identifier: BSD-3-Clause
"""What tests/phases.sh prints and counts: phases side by side, and failures at the end of all output."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import phase_times
GOOD = "good() { echo 'ok line'; echo '3 passed, 0 failed'; }\n"
# A failure is followed by much output, as of other tests.
BAD = "bad() { echo 'FAILED  test of parsing'; echo '    expected 1'; seq 500; echo '4 passed, 2 failed'; false; }\n"


class Times(unittest.TestCase):
    def test_times_are_written_into_the_rows_of_their_phases(self):
        page = "# text\n| phase | finds | list | s | CPU |\n| two | a | rest | | |\n| one | b | belongs | 1 | 2 |\n"
        times = phase_times.read_times("one|3|0|0|40|log|0|70\ntwo|1|0|0|5|log|0|6\ntwo|1|0|0|5|log|0|6\nnew|1|0|0|1|log|0|1\n")
        filled, without_row = phase_times.fill(page, times)
        self.assertEqual(filled, "# text\n| phase | finds | list | s | CPU |\n| two | a | rest | 10 | 12 |\n| one | b | belongs | 40 | 70 |\n")
        self.assertEqual(without_row, ["new"])

    def test_every_phase_has_a_row(self):
        with open(f"{TESTS}/README.md", encoding="utf-8") as file:
            rows = {line.split("|")[1].strip() for line in file if line.count("|") == 6}
        with open(f"{TESTS}/parts.sh", encoding="utf-8") as file:
            text = file.read()
        phases = re.findall(r'^ +(?:possible \w+ )?(?:fits \S+ (?:\S+ [^"\n]*?\)\) )?)?phase ("[^"]+"|\S+)', text, re.MULTILINE)
        phases = {name.strip('"') for name in phases} - {"arm64"}
        suites = {f"suite {build} {resp}" for build, resp in re.findall(r"suite (\w+) (RESP\d)", text)}
        self.assertGreater(len(phases), 30)
        not_in_ci = {"durability, long", "snapshots, hostile", "snapshots, asan"}
        self.assertEqual((phases | suites) - not_in_ci - rows, set())


class Phases(unittest.TestCase):
    def run_phases(self, script, before="", after=""):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(["sh", "-c", f"{before}make=true\n. {TESTS}/phases.sh\n{GOOD}{BAD}{script}{after}"], cwd=folder,
                                  capture_output=True, text=True)

    def test_counts_of_all_phases_are_added(self):
        done = self.run_phases("phase one good\nphase two bad\nsummary\n")
        self.assertEqual(done.stdout.splitlines()[-1], "7 passed, 2 failed")
        self.assertEqual(done.returncode, 1)
        done = self.run_phases("phase one good\nsummary\n")
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 0 failed")
        self.assertEqual(done.returncode, 0)

    def test_the_tested_commit_is_kept_and_changes_beside_it(self):
        for change, words in ((":", 1), ("echo more >>file", 2)):
            done = self.run_phases("", "git init -q; git config user.email a@b; git config user.name a; echo text >file; git add file\n"
                                   f"git commit -q -m text\n{change}\n", "cat build/phases/commit; git rev-parse HEAD")
            lines = done.stdout.split()
            self.assertEqual(len(lines), words + 1, done.stderr)
            self.assertTrue(lines[-1].startswith(lines[0]) and len(lines[0]) == 8, lines)

    def test_processor_time_is_in_the_summary(self):
        done = self.run_phases("busy() { sh -c 'i=0; while [ $i -lt 2000000 ]; do i=$((i + 1)); done'; echo '1 passed, 0 failed'; }\n"
                               "phase busy busy\nsummary\n")
        self.assertRegex(done.stdout, r"busy +1 passed +0 failed +\d+ s +[1-9]\d* s of CPU\n")

    def test_phase_says_whether_it_failed(self):
        done = self.run_phases("phase one good && echo 'after one'\nphase two bad || echo 'after two'\nsummary\n")
        self.assertIn("after one\n", done.stdout)
        self.assertIn("after two\n", done.stdout)

    def test_lanes_are_counted_and_their_output_is_not_mixed(self):
        done = self.run_phases("""
slow() { touch begun; seq 1 4000 | sed "s/^/$1 /"; while [ ! -e $2 ]; do sleep 0.01; done; echo '1 passed, 0 failed'; }
left() { phase left slow left meet; phase 'left end' good; }
right() { while [ ! -e begun ]; do sleep 0.01; done; phase right1 bad; touch meet; phase right2 slow right meet; }
lanes left right
phase last good
summary
""")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], "12 passed, 2 failed")
        for word in ("left", "right"):
            at = lines.index(f"{word} 1")
            self.assertEqual(lines[at:at + 4000], [f"{word} {n}" for n in range(1, 4001)])
        self.assertEqual(lines[0], "=== left begins", "it is told at once what runs")

    def test_reason_of_a_failure_is_in_the_last_40_lines(self):
        after = "".join(f"phase after{n} good\n" for n in range(30))
        tail = self.run_phases(f"phase parser bad\n{after}summary\n").stdout.splitlines()[-40:]
        self.assertIn("--- parser", tail)
        self.assertIn("FAILED  test of parsing", tail)
        self.assertIn("    expected 1", tail)

    def test_reasons_of_many_failures_are_in_the_last_40_lines(self):
        script = "".join(f"phase many{n} bad\n" for n in range(12))
        tail = self.run_phases(script + "summary\n").stdout.splitlines()[-40:]
        for n in range(12):
            self.assertIn(f"--- many{n}", tail)
        self.assertEqual(tail.count("FAILED  test of parsing"), 12)

    def test_phase_that_would_end_too_late_is_left_out_and_named(self):
        script = "deadline=$(($(date +%s) + 100))\n{}fits 90 phase short good\nfits 200 phase long bad\nfits 200 suite tsan RESP3\nsummary\n"
        done = self.run_phases(script.format(""))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "3 passed, 0 failed"))
        self.assertIn("left out: long (no time); suite tsan RESP3 (no time)\n", done.stdout)
        done = self.run_phases(script.format("pace=150\n"))
        self.assertIn("left out: short (no time); long (no time); suite tsan RESP3 (no time)\n", done.stdout)

    def test_without_a_deadline_nothing_is_left_out(self):
        done = self.run_phases("fits 99999 phase one good\nsummary\n")
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 0 failed")
        self.assertNotIn("left out", done.stdout)

    def test_phase_that_ends_without_a_count_is_a_failure_with_its_last_lines(self):
        done = self.run_phases("dies() { echo 'cannot open it'; exit 3; }\nphase dies dies\nsummary\n")
        tail = done.stdout.splitlines()[-40:]
        self.assertEqual(tail[-1], "0 passed, 1 failed")
        self.assertEqual(tail[tail.index("--- dies") + 1], "cannot open it")

    def test_phase_that_dies_in_a_lane_is_a_failure(self):
        done = self.run_phases("side() { phase dies sh -c 'kill -9 $$'; phase later good; }\nlanes side\nsummary\n")
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 1 failed")

    def test_flaky_tests_are_shown_and_do_not_fail(self):
        done = self.run_phases("unsteady() { echo '[FLAKY] unit/x resp2: waits'; echo '1 flaky'; echo '5 passed, 0 failed'; }\n"
                               "phase unsteady unsteady\nsummary\n")
        tail = done.stdout.splitlines()
        self.assertTrue(re.search(r"^unsteady +5 passed +0 failed +\d+ s +\d+ s of CPU 1 flaky$", done.stdout, re.MULTILINE))
        self.assertIn("[FLAKY] unit/x resp2: waits", tail[-5:])
        self.assertEqual(done.returncode, 0)

    def test_interrupted_lanes_end(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"make=true\n. {TESTS}/phases.sh\nside() {{ phase long tail -f /dev/null; }}\nlanes side\n"
            # This test may run in a lane, where the signal is ignored.
            shell = subprocess.Popen(["sh", "-c", script], cwd=folder, stdout=subprocess.PIPE, start_new_session=True,
                                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            self.assertEqual(shell.stdout.readline(), b"=== long begins\n")
            os.killpg(shell.pid, signal.SIGINT)
            shell.stdout.read()  # until all processes have closed it
            shell.stdout.close()
            self.assertEqual(shell.wait(60), 130)


if __name__ == "__main__":
    unittest.main()

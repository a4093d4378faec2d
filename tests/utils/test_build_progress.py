# SPDX-License-Identifier: BSD-3-Clause
"""utils/build_progress.sh prints a line per folder, keeps other lines and the status of the build."""

import os
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(script):
    done = subprocess.run([os.path.join(ROOT, "utils/build_progress.sh"), "sh", "-c", script], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


class BuildProgress(unittest.TestCase):
    def test_a_folder_has_one_line_and_the_end_tells_the_time(self):
        status, lines = run("echo '  CC     src/a/x.c'; echo '  CC     src/a/y.c'; echo '  CC     src/b/z.c'; echo '  LINK   p'")
        self.assertEqual(0, status)
        self.assertEqual(["  src/a", "  src/b", "  LINK   p"], lines[1:4])
        self.assertRegex(lines[4], r"^built 3 files in \d+ s$")

    def test_errors_are_shown_and_the_status_is_kept(self):
        self.assertEqual((3, ["x.c:1: error: no"]), run("echo 'x.c:1: error: no' >&2; exit 3"))

    def test_nothing_to_build_prints_nothing(self):
        self.assertEqual((0, []), run("true"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""A test that fails and then passes alone is reported as flaky, in the Tcl suite and in the C tests."""

import os
import subprocess
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Fails while the marker file is missing, and makes it.
TCL_FILE = """
test {fails once} {
    if {![file exists MARKER]} {close [open MARKER w]; error "first run"}
}
test {passes} {set x 1}
"""
C_PROGRAM = """#!/bin/sh
if [ -n "$SELECTED_MARKER" ] && [ ! -f "$SELECTED_MARKER" ]; then
    touch "$SELECTED_MARKER"
    echo '[  FAILED  ] group: 1 test(s), listed below:'
    echo '[  FAILED  ] fails_once'
    echo '[  PASSED  ] 1 test(s).'
    exit 1
fi
[ -z "$ALWAYS" ] || { echo '[  PASSED  ] 1 test(s).'; echo '[  FAILED  ] 1 test(s), listed below:'; exit 1; }
echo '[  PASSED  ] 2 test(s).'
"""


class Flaky(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def suite(self, text):
        os.makedirs(f"{self.folder}/unit", exist_ok=True)
        with open(f"{self.folder}/unit/sample.tcl", "w") as file:
            file.write(text.replace("MARKER", f"{self.folder}/marker"))
        return subprocess.run([f"{TESTS}/runtest", "--root", self.folder, "--binary", "/bin/true", "--resp", "2",
                               "--tmp", f"{self.folder}/tmp"], capture_output=True, text=True)

    def test_tcl_test_that_passes_alone_is_flaky(self):
        done = self.suite(TCL_FILE)
        self.assertIn("[FLAKY] unit/sample resp2: fails once", done.stdout)
        self.assertIn("first run", done.stdout, "the log of the failure is shown")
        self.assertEqual(done.stdout.splitlines()[-2:], ["1 flaky", "2 passed, 0 failed"])
        self.assertEqual(done.returncode, 0)

    def test_tcl_test_that_fails_twice_fails(self):
        done = self.suite("test {always} {error no}\ntest {passes} {set x 1}\n")
        self.assertNotIn("[FLAKY]", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertEqual(done.returncode, 1)

    def test_tcl_file_that_crashes_twice_fails(self):
        done = self.suite("test {passes} {set x 1}\nexit 3\n")
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertEqual(done.returncode, 1)

    def c_tests(self, **environment):
        program = f"{self.folder}/run"
        with open(program, "w") as file:
            file.write(C_PROGRAM)
        os.chmod(program, 0o755)
        return subprocess.run([f"{TESTS}/c/run.sh", program], capture_output=True, text=True,
                              env={**os.environ, **environment})

    def test_c_test_that_passes_alone_is_flaky(self):
        done = self.c_tests(SELECTED_MARKER=f"{self.folder}/marker")
        self.assertIn("FLAKY", done.stdout)
        self.assertIn("fails_once", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-2:], ["1 flaky", "2 passed, 0 failed"])
        self.assertEqual(done.returncode, 0)

    def test_c_test_that_fails_twice_fails(self):
        done = self.c_tests(ALWAYS="1")
        self.assertNotIn("FLAKY", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of the Tcl suite: their ports, and the order in which they start."""

import os
import re
import subprocess
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Two jobs, each in a suite of its own, that take ports until both have: their ports are printed.
PORTS = """
test {takes ports} {
    set ports {}
    for {set i 0} {$i < 90} {incr i} {lappend ports [free_port]}
    close [open OWN w]
    wait_for_condition 3000 10 {[file exists OTHER]} else {fail "the other suite does not come"}
    puts "ports $ports"
}
"""


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def suite(self, name, files, *options):
        root = f"{self.folder}/{name}"
        os.makedirs(f"{root}/unit")
        for file_name, text in files.items():
            with open(f"{root}/unit/{file_name}.tcl", "w") as file:
                file.write(text)
        return subprocess.Popen([f"{TESTS}/runtest", "--root", root, "--binary", "/bin/true", "--resp", "2", "--verbose",
                                 "--tmp", f"{root}/tmp", *options], stdout=subprocess.PIPE, text=True)

    def test_jobs_of_two_suites_have_no_port_in_common(self):
        suites = [self.suite(own, {"ports": PORTS.replace("OWN", f"{self.folder}/{own}.at")
                                   .replace("OTHER", f"{self.folder}/{other}.at")})
                  for own, other in (("one", "two"), ("two", "one"))]
        texts = [suite.communicate()[0] for suite in suites]
        taken = [set(re.search(r"^ *ports (.*)$", text, re.MULTILINE).group(1).split()) for text in texts]
        self.assertEqual([len(ports) for ports in taken], [90, 90], "a job does not get the same port twice")
        self.assertFalse(taken[0] & taken[1])

    def test_largest_of_unknown_files_start_first(self):
        files = {name: "test {passes} {set x 1}\n" + "#\n" * size for name, size in (("a", 1), ("b", 30), ("c", 7))}
        text = self.suite("order", files, "--clients", "1").communicate()[0]
        self.assertEqual(re.findall(r"unit/(.) resp2: 1 passed", text), ["b", "c", "a"])

    def test_files_are_chosen_and_left_out(self):
        files = {name: "test {passes} {set x 1}\n" for name in ("a1", "a2", "b1", "b2")}
        text = self.suite("chosen", files, "--single", "unit/a*", "--single", "unit/b1.tcl", "--skip", "unit/*2").communicate()[0]
        self.assertEqual(sorted(re.findall(r"unit/(..) resp2: 1 passed", text)), ["a1", "b1"])

    def test_processor_time_of_a_job_is_printed(self):
        text = self.suite("time", {"busy": "test {passes} {for {set i 0} {$i < 1000000} {incr i} {}}\n"}).communicate()[0]
        spent = re.search(r"unit/busy resp2: 1 passed, 0 failed \(\d+\.\d s, (\d+\.\d) s of CPU\)", text)
        self.assertGreater(float(spent.group(1)), 0)


if __name__ == "__main__":
    unittest.main()

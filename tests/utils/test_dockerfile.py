# SPDX-License-Identifier: BSD-3-Clause
"""The Dockerfile names no package of its own, and what it calls knows the libraries that a program links."""

import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Dockerfile(unittest.TestCase):
    def setUp(self):
        with open(f"{ROOT}/Dockerfile") as file:
            self.text = file.read().replace("\\\n", " ")

    def test_packages_are_not_listed_by_hand(self):
        self.assertIn("deps/install.sh build", self.text)
        self.assertIn("deps/runtime_packages.sh", self.text)
        installed = re.findall(r"apt-get install(.*?)&&", self.text)
        self.assertEqual([[word for word in line.split() if not word.startswith("-")] for line in installed],
                         [["$(cat", "/tmp/packages)"]])

    def test_the_copied_files_suffice_to_install(self):
        """`COPY deps deps` comes before the sources: install.sh must need nothing else."""
        for name in ("install.sh", "probe.sh"):
            with open(f"{ROOT}/deps/{name}") as file:
                self.assertEqual(re.findall(r"(?<![\w./$])(?:src|utils|tests)/", file.read()), [], name)

    def test_every_linked_library_has_a_package(self):
        program = f"{ROOT}/src/valkey-server"
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        packages = subprocess.run([f"{ROOT}/deps/runtime_packages.sh", program],
                                  capture_output=True, text=True, check=True).stdout.split()
        self.assertIn("libc6", packages)
        for library in ("libjemalloc", "liblzf"):
            self.assertEqual(library in linked, any(name.startswith(library) for name in packages), packages)


if __name__ == "__main__":
    unittest.main()

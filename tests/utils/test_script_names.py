# SPDX-License-Identifier: BSD-3-Clause
"""A script beside others must not hide a module of Python's library from them."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class ScriptNames(unittest.TestCase):
    def test_no_script_has_the_name_of_a_module_of_the_library(self):
        listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
        scripts = [path for path in listed.stdout.split() if path]
        self.assertGreater(len(scripts), 20)
        hiding = [path for path in scripts
                  if os.path.splitext(os.path.basename(path))[0] in sys.stdlib_module_names]
        self.assertEqual([], hiding)

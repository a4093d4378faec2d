#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the completion for bash, with words as bash passes them, and of the comparison with --help."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "utils"))
import tool_completion  # noqa: E402


def complete(program, *words):
    """What bash offers for the last word."""
    script = ('source "$1"; shift; function=$1; shift; compopt() { :; }; '
              'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); $function; printf "%s\\n" "${COMPREPLY[@]}"')
    file = os.path.join(ROOT, "utils/completion", program + ".bash")
    run = subprocess.run(["bash", "-c", script, "bash", file, "_" + program.replace("-", "_"), program, *words],
                         stdout=subprocess.PIPE, check=True, text=True, cwd=ROOT)
    return [line for line in run.stdout.split("\n") if line]


class Cli(unittest.TestCase):
    def test_options(self):
        self.assertEqual(complete("valkey-cli", "--hot"), ["--hotkeys", "--hotkeys-count"])
        self.assertIn("-h", complete("valkey-cli", "-p", "7000", "-"))
        self.assertNotIn("--cluster-yes", complete("valkey-cli", "-"))

    def test_commands_in_the_case_of_the_word(self):
        self.assertEqual(complete("valkey-cli", "zrangeb"), ["zrangebylex", "zrangebyscore"])
        self.assertEqual(complete("valkey-cli", "-n", "1", "ZRANGEB"), ["ZRANGEBYLEX", "ZRANGEBYSCORE"])
        self.assertEqual(complete("valkey-cli", "get", ""), [])

    def test_arguments_of_options(self):
        self.assertEqual(complete("valkey-cli", "--show-pushes", ""), ["yes", "no"])
        self.assertEqual(complete("valkey-cli", "--eval", "utils/tool_comp"), ["utils/tool_completion.py"])
        self.assertEqual(complete("valkey-cli", "--cacertdir", "utils/comp"), ["utils/completion"])
        self.assertEqual(complete("valkey-cli", "-p", ""), [])

    def test_cluster(self):
        self.assertEqual(complete("valkey-cli", "--cluster", "re"), ["reshard", "rebalance"])
        self.assertIn("--cluster-use-atomic-slot-migration", complete("valkey-cli", "--cluster", "reshard", "h:1", "--cluster-u"))
        self.assertEqual(complete("valkey-cli", "--cluster", "reshard", ""), [])


class Benchmark(unittest.TestCase):
    def test_options_and_their_arguments(self):
        self.assertEqual(complete("valkey-benchmark", "--fuzz-l"), ["--fuzz-loglevel"])
        self.assertEqual(complete("valkey-benchmark", "--rfr", "a"), ["all"])

    def test_lists_of_tests(self):
        self.assertEqual(complete("valkey-benchmark", "-t", "lrange_3"), ["lrange_300"])
        self.assertEqual(complete("valkey-benchmark", "-t", "set,zp"), ["set,zpopmin"])


class Comparison(unittest.TestCase):
    def test_an_option_without_help_or_without_row_is_an_error(self):
        for helped, parsed in (({"-a"}, {"-a", "-b"}), ({"-a", "-b"}, {"-a"})):
            with self.assertRaises(SystemExit):
                tool_completion.compare("valkey-cli", helped, parsed)
        tool_completion.compare("valkey-cli", {"-a", "--help"}, {"-a", "--slave"})


if __name__ == "__main__":
    unittest.main()

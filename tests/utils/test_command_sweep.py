# SPDX-License-Identifier: BSD-3-Clause
"""tests/bench/command_sweep.py: the server takes each of its rows; an error would be measured as if it were a reply."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/bench")
import command_sweep  # noqa: E402
from keyspace import Server  # noqa: E402


class CommandSweep(unittest.TestCase):
    def test_each_row_has_a_reply(self):
        self.addCleanup(setattr, command_sweep, "SIZES", command_sweep.SIZES)
        command_sweep.SIZES = [(8, suffix, 1) for _, suffix, _ in command_sweep.SIZES]
        with Server(f"{ROOT}/src/valkey-server") as server:
            for words in command_sweep.content():
                server.ask(*words)
            rows = list(command_sweep.rows())
            errors = {text: command_sweep.refused(server, text) for _, text in rows}
        self.assertGreater(len(rows), 250)
        self.assertEqual({}, {text: error for text, error in errors.items() if error})

    def test_an_error_is_seen(self):
        with Server(f"{ROOT}/src/valkey-server") as server:
            self.assertIn("unknown command", command_sweep.refused(server, "NOSUCH x:%r"))


if __name__ == "__main__":
    unittest.main()

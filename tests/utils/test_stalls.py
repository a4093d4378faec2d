# SPDX-License-Identifier: BSD-3-Clause
"""tests/bench/stalls.py: its acts are what they say; an error would be measured as if it were a quick reply."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/bench")
import stalls  # noqa: E402
from keyspace import Server, request  # noqa: E402

# A row of each kind of preparation; all would take minutes.
SOME = "pipeline of 100,000 GET$|close amid|CLUSTER NODES, 1,000|CONFIG GET|SLOWLOG GET|PUBSUB"


class Stalls(unittest.TestCase):
    def setUp(self):
        for name, value in (("SCALE", 0.001), ("CLIENTS", 5)):
            self.addCleanup(setattr, stalls, name, getattr(stalls, name))
            setattr(stalls, name, value)

    def test_no_act_is_refused(self):
        rows = [row for row in stalls.ROWS if stalls.re.search(SOME, row[0])]
        self.assertEqual(6, len(rows))
        refused = []
        for name, function, extra, nodes in rows:
            if stalls.measure(f"{ROOT}/src/valkey-server", function, extra, nodes) is None:
                refused.append(name)
        self.assertEqual([], refused)

    def test_a_refused_act_is_seen(self):
        def act(server):
            yield
            server.ask("NOSUCH")
        self.assertIsNone(stalls.measure(f"{ROOT}/src/valkey-server", act, (), 0))

    def test_the_neighbour_sees_a_stall(self):
        def act(server):
            yield
            server.ask("DEBUG", "SLEEP", "0.2")
        self.assertGreater(stalls.measure(f"{ROOT}/src/valkey-server", act, (), 0), 100)

    def test_a_link_reads_while_it_sends(self):
        with Server(f"{ROOT}/src/valkey-server") as server:
            server.ask("SET", "k", "v" * 10000)
            stalls.Link(server).ask(request("GET", "k") * 2000)
            self.assertEqual(b"2000", server.ask("INFO", "commandstats").split(b"cmdstat_get:calls=")[1].split(b",")[0])


if __name__ == "__main__":
    unittest.main()

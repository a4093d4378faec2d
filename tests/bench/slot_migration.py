#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how slots move from one node to another one (CLUSTER MIGRATESLOTS), ours beside a peer.

    tests/bench/slot_migration.py idle OURS PEER [--rounds N] [--specs KEYS:BYTES,...]

idle  half of all slots, and back, with no other requests: milliseconds, MB of values per second, CPU ms of source and
      target. Medians of the rounds and directions, least and greatest in brackets; servers take turns.

Each pair of nodes is started for its turn, without files, on free ports."""
import argparse
import os
import statistics
import time

from keyspace import Server, cpu_us, reserve_port

LAST = 16383


class Pair:
    """Two primaries; the first one has all slots but one."""

    def __init__(self, binary, extra=()):
        options = ["--cluster-enabled", "yes", "--cluster-allow-replica-migration", "no",
                   "--cluster-announce-ip", "127.0.0.1", *extra]
        self.nodes = []
        for _ in range(2):
            bus, guard = reserve_port()
            with guard:
                self.nodes.append(Server(os.path.abspath(binary), extra=[*options, "--cluster-port", str(bus)]))
            self.nodes[-1].bus = bus
        a, b = self.nodes
        a.ask("CLUSTER", "ADDSLOTSRANGE", 0, LAST - 1)
        b.ask("CLUSTER", "ADDSLOTS", LAST)
        b.ask("CLUSTER", "SET-CONFIG-EPOCH", 2)
        a.ask("CLUSTER", "MEET", "127.0.0.1", b.port, b.bus)
        self.ids = [node.ask("CLUSTER", "MYID").decode() for node in self.nodes]
        for node in self.nodes:
            wait(lambda node=node: b"cluster_state:ok" in node.ask("CLUSTER", "INFO") and
                 b"cluster_known_nodes:2" in node.ask("CLUSTER", "INFO"), "the cluster")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.__exit__()

    def move(self, source, first=0, last=LAST // 2):
        """Moves slots away from a node; returns the seconds that it took."""
        node, began = self.nodes[source], time.monotonic()
        node.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", self.ids[1 - source])
        wait(lambda: job(node).get("state") in ("success", "failed", "cancelled"), "the move", 120)
        if job(node)["state"] != "success":
            raise RuntimeError(f"the move ended: {job(node)}")
        return time.monotonic() - began


def wait(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.002)


def job(node):
    """The newest job of a node."""
    words = [w.decode() if isinstance(w, bytes) else w for w in node.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]]
    return dict(zip(words[::2], words[1::2]))


def idle(options):
    specs = [tuple(map(int, spec.split(":"))) for spec in options.specs.split(",")]
    rows = {}
    for _ in range(options.rounds):
        for keys, size in specs:
            for name, binary in (("ours", options.ours), ("peer", options.peer)):
                with Pair(binary) as pair:
                    pair.nodes[0].ask("DEBUG", "POPULATE", keys, "key", size)
                    for source in (0, 1):
                        before = [cpu_us(node) for node in pair.nodes]
                        seconds = pair.move(source)
                        spent = [(cpu_us(n) - b) / 1e3 for n, b in zip(pair.nodes, before)]
                        moved = keys * size / 2e6
                        rows.setdefault((keys, size, name), []).append(
                            (seconds * 1e3, moved / seconds, spent[source], spent[1 - source]))
                        time.sleep(0.3)  # the source deletes what it has given away
    for (keys, size, name), values in rows.items():
        figures = [f"{statistics.median(c):.0f} ({min(c):.0f}-{max(c):.0f})" for c in zip(*values)]
        print(f"{keys} x {size} {name}: {figures[0]} ms, {figures[1]} MB/s, CPU ms of source {figures[2]}, "
              f"of target {figures[3]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("idle",))
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--specs", default="1000000:100,300000:1000,20000:16384")
    options = parser.parse_args()
    {"idle": idle}[options.mode](options)


if __name__ == "__main__":
    main()

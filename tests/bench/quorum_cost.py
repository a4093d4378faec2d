#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures what replication-quorum costs: a primary with two replicas, SET (make gate builds the load generator).

    tests/bench/quorum_cost.py OURS [PEER] [--rounds N] [--requests N] [--only cpu,time] [--server OTHER]

cpu   CPU microseconds of the primary a request and requests a second, 50 clients, pipelines 1, 16 and 100, with
      replication-quorum 0 (asynchronous), 1 and 2.
time  one client: the time of a batch of 1, 16 and 100 writes, p50, p99 and p99.9 in microseconds, and writes a second; with
      PEER also asynchronous, and with WAIT 1 after each write.

--server OTHER adds a second build of this server. All servers are on this machine, without files. Rounds alternate between
the modes of all servers; medians, and for what depends on other load the spread of the middle half of the rounds."""
import argparse
import os
import socket
import statistics
import subprocess
import time

from beside import KEYS, LOAD, SET
from keyspace import Server, fill, set_request

PIPELINES = ((1, 0.1), (16, 1), (100, 3))  # with the share of --requests
REPLICAS = 2


class Group:
    """A primary with its replicas."""

    def __init__(self, name, program):
        self.name = name
        self.members = [Server(program) for _ in range(REPLICAS + 1)]
        self.primary = self.members[0]
        for replica in self.members[1:]:
            replica.ask("REPLICAOF", "127.0.0.1", str(self.primary.port))
        fill(self.primary, range(KEYS))
        self.wait(lambda: self.primary.ask("INFO", "replication").count(b"state=online") == REPLICAS)
        self.wait(lambda: self.primary.ask("WAIT", str(REPLICAS), "1000") == str(REPLICAS).encode())

    @staticmethod
    def wait(is_done):
        end = time.monotonic() + 60
        while not is_done():
            if time.monotonic() > end:
                raise RuntimeError("the replicas do not come")
            time.sleep(0.05)

    def set_quorum(self, count):
        self.primary.ask("CONFIG", "SET", "replication-quorum", str(count))
        wanted = b"replication_quorum_unconfirmed_bytes:0\r"
        self.wait(lambda: not count or wanted in self.primary.ask("INFO", "replication"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.__exit__()


def run_ns(server):
    """Time on a processor of all its threads."""
    folder = f"/proc/{server.process.pid}/task"
    return sum(int(open(f"{folder}/{thread}/schedstat").read().split()[0]) for thread in os.listdir(folder))


def closed_loop(group, pipeline, count):
    before = run_ns(group.primary)
    done = subprocess.run([LOAD, "-r", str(KEYS), "-P", str(pipeline), "-n", str(count), str(group.primary.port), SET],
                          check=True, stdout=subprocess.PIPE, text=True)
    return (run_ns(group.primary) - before) / count / 1000, float(done.stdout)


def one_client(group, pipeline, count, waits):
    """Times of batches in us, and how long they took together in s."""
    one = b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n" if waits else b""
    batches = [b"".join(set_request((i * pipeline + j) % KEYS) + one for j in range(pipeline)) for i in range(50)]
    size = pipeline * (9 if waits else 5)  # +OK, and the number of replicas
    times = []
    with socket.create_connection(("127.0.0.1", group.primary.port)) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(count // pipeline):
            began = time.perf_counter_ns()
            s.sendall(batches[i % len(batches)])
            missing = size
            while missing:
                some = s.recv(missing)
                if not some or b"-" in some:
                    raise RuntimeError(some)
                missing -= len(some)
            times.append((time.perf_counter_ns() - began) / 1000)
    return times


def middle(figures):
    """The median, and the middle half."""
    if len(figures) < 3:
        return statistics.median(figures), min(figures), max(figures)
    low, half, high = statistics.quantiles(figures, n=4, method="inclusive")
    return half, low, high


def cpu(groups, options):
    print(f"{'cpu: pipeline':14}{'server':10}{'quorum':>7}{'us of CPU':>11}{'middle half':>17}{'beside 0':>10}"
          f"{'a second':>12}{'beside 0':>10}", flush=True)
    for pipeline, share in PIPELINES:
        cells = {}
        for _ in range(options.rounds):
            for group in groups:
                for quorum in (0, 1, 2) if group.name != "peer" else (0,):
                    if group.name != "peer":
                        group.set_quorum(quorum)
                    cells.setdefault((group.name, quorum), []).append(
                        closed_loop(group, pipeline, int(options.requests * share)))
        for (name, quorum), cell in cells.items():
            plain = cells[name, 0]
            cost, low, high = middle([c for c, _ in cell])
            # Of the same round, so that what disturbs the machine disturbs both.
            more = statistics.median(a[0] / b[0] for a, b in zip(cell, plain))
            rate = statistics.median(r for _, r in cell)
            part = statistics.median(a[1] / b[1] for a, b in zip(cell, plain))
            print(f"{pipeline:<14}{name:10}{quorum:7}{cost:11.3f}{low:9.3f}-{high:.3f}{more:12.2f}{rate:12.0f}{part:10.2f}",
                  flush=True)


def times(groups, options):
    print(f"{'time: batch':14}{'server':10}{'quorum':>7}{'p50':>9}{'p99':>9}{'p99.9':>9}{'a second':>12}", flush=True)
    for pipeline, share in PIPELINES:
        cells = {}
        count = max(int(options.requests * share / 10), 5000)
        for _ in range(options.rounds):
            for group in groups:
                for mode in ("0", "1", "2") if group.name != "peer" else ("0", "WAIT 1"):
                    if group.name != "peer":
                        group.set_quorum(int(mode))
                    cell = sorted(one_client(group, pipeline, count, mode == "WAIT 1"))
                    cells.setdefault((group.name, mode), []).append(
                        [cell[int(part * len(cell))] for part in (0.5, 0.99, 0.999)] + [pipeline * len(cell) / sum(cell) * 1e6])
        for (name, mode), cell in cells.items():
            p50, p99, p999, rate = map(statistics.median, zip(*cell))
            print(f"{pipeline:<14}{name:10}{mode:>7}{p50:9.1f}{p99:9.1f}{p999:9.1f}{rate:12.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000000)
    parser.add_argument("--only", default="cpu,time")
    options = parser.parse_args()
    programs = {"ours": options.ours, "other": options.server, "peer": options.peer}
    groups = [Group(name, program) for name, program in programs.items() if program]
    try:
        print(f"{time.strftime('%F %H:%M', time.gmtime())} UTC, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
        parts = options.only.split(",")
        if "cpu" in parts:
            cpu(groups, options)
        if "time" in parts:
            times(groups, options)
        print(f"load {os.getloadavg()[0]:.1f}")
    finally:
        for group in groups:
            group.__exit__()


if __name__ == "__main__":
    main()

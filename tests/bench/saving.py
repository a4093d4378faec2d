#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares how servers save a dataset while clients send requests: by a fork, without one, and a peer's fork.

    tests/bench/saving.py OURS PEER [--keys N] [--size N] [--rate N] [--rounds N] [--what bgsave,rewrite,sync] [--ways fork,inline,peer] [--mixed]

50 clients send SETs, then GETs, of random keys at a fixed rate, whatever the server does (load.c), from the start of a save
to its end; then the same without a save, for as long. Columns: seconds of the save; p50, p99, p99.9 and the longest latency
in microseconds; CPU ms of the server's main thread beyond that of the same time without a save; memory: the peak of the
resident set above what it was before, and what the child says that it duplicated. Medians of the rounds; the ways are
measured one after the other, so compare them on a quiet machine (report.py alternates). The main thread has processor 0; what saves, the replicas, and the generator with priority, have processor 1: needs root.
--mixed: half of the keys are fields of hashes of 10,000. sync: to two replicas (of OURS), beside the requests."""
import argparse
import os
import statistics
import subprocess
import time

from keyspace import Server

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(HERE, "../../build/release/tests/bench/load")
REQUESTS = ("SET", "SET key:%r %a"), ("GET", "GET key:%r")
FIELDS = 10000
SECONDS_MOST = 600


def info(server, name, *section):
    for line in server.ask("INFO", *section).decode().splitlines():
        if line.startswith(name + ":"):
            return line[len(name) + 1:]
    return "0"


def main_cpu_ms(server):
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e6


def memory_mb(server, name):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(name + ":"))


def fill(server, keys, size, mixed):
    server.ask("DEBUG", "POPULATE", keys // 2 if mixed else keys, "key", size)
    if mixed:
        script = ("for h = ARGV[1], ARGV[2] do for i = 1, 10000, 1000 do local t = {} "
                  "for j = i, i + 999 do t[#t + 1] = 'field:' .. j t[#t + 1] = 'value:' .. h .. ':' .. j end "
                  "redis.call('HSET', 'hash:' .. h, unpack(t)) end end")
        for first in range(0, keys // 2 // FIELDS, 10):
            server.ask("EVAL", script, 0, first, min(first + 9, keys // 2 // FIELDS - 1))


def go_first():
    """Lets the generator run whenever it can: it stands for other machines."""
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class Load:
    """Requests at a fixed rate until end(), SECONDS_MOST at most."""

    def __init__(self, server, request, keys, rate):
        self.process = subprocess.Popen(
            [LOAD, "-r", str(keys), "-R", str(rate), "-S", "1", "-K", "-W", "-n", str(int(rate * SECONDS_MOST)),
             str(server.port), request], stdout=subprocess.PIPE, text=True, preexec_fn=go_first)

    def end(self):
        """p50, p99, p99.9, most."""
        if self.process.poll() is not None:
            raise RuntimeError("the load has ended before what it was to accompany")
        self.process.terminate()
        row = self.process.communicate()[0].split("|")
        return [float(row[1]), float(row[3]), float(row[4]), float(row[5])]


class Save:
    """One way of saving, which begins at once."""

    def __init__(self, what, server, replicas):
        self.what, self.server, self.replicas = what, server, replicas
        self.begun = time.monotonic()
        if what == "bgsave":
            server.ask("BGSAVE")
        elif what == "rewrite":
            server.ask("BGREWRITEAOF")
        else:
            for replica in replicas:
                replica.ask("REPLICAOF", "127.0.0.1", server.port)

    def is_over(self):
        if self.what == "bgsave":
            return info(self.server, "rdb_bgsave_in_progress", "persistence") == "0"
        if self.what == "rewrite":
            return info(self.server, "aof_rewrite_in_progress", "persistence") == "0"
        return all(info(replica, "master_link_status", "replication") == "up" for replica in self.replicas)

    def await_end(self):
        while not self.is_over():
            time.sleep(0.02)
        return time.monotonic() - self.begun


def one_round(server, options, what, request, replicas, alone_s=None):
    """Seconds of the save, p50, p99, p99.9, most, CPU ms, memory MB, MB duplicated.
    With `alone_s` nothing is saved, and the requests last for so many seconds."""
    for replica in replicas:
        replica.ask("REPLICAOF", "NO", "ONE")
        replica.ask("FLUSHALL")
    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak of the resident set is what it is now
    before = memory_mb(server, "VmRSS")
    load = Load(server, request, options.keys // (2 if options.mixed else 1), options.rate)
    time.sleep(0.1)
    cpu, seconds = main_cpu_ms(server), alone_s
    if alone_s is None:
        seconds = Save(what, server, replicas).await_end()
    else:
        time.sleep(alone_s)
    figures = load.end()
    cpu = main_cpu_ms(server) - cpu
    name = {"bgsave": "rdb", "rewrite": "aof", "sync": "rdb"}[what]
    copied = int(info(server, f"{name}_last_cow_size", "persistence")) / 1048576 if alone_s is None else 0
    return [seconds, *figures, cpu, memory_mb(server, "VmHWM") - before, copied]


def compare(options, what):
    ways = {"fork": (options.ours, ["--snapshot-mode", "fork"]), "inline": (options.ours, ["--snapshot-mode", "inline"]),
            "peer": (options.peer, [])}
    extra = ["--repl-diskless-sync-delay", "1", "--repl-diskless-sync-max-replicas", "2", "--server-cpulist", "0",
             "--bio-cpulist", "1", "--bgsave-cpulist", "1", "--aof-rewrite-cpulist", "1"]
    for way, (binary, more) in ways.items():
        if way not in options.ways.split(","):
            continue
        rows = {}
        with Server(binary, extra=(*more, *extra)) as server:
            fill(server, options.keys, options.size, options.mixed)
            if what == "rewrite":
                server.ask("CONFIG", "SET", "appendonly", "yes", "appendfsync", "no", "auto-aof-rewrite-percentage", "0")
                while info(server, "aof_rewrite_in_progress") != "0" or info(server, "aof_rewrite_scheduled") != "0":
                    time.sleep(0.05)
            replicas = [Server(options.ours, extra=["--server-cpulist", "1"]) for _ in range(2)] if what == "sync" else []
            try:
                for _ in range(options.rounds):
                    for kind, request in REQUESTS:
                        saved = one_round(server, options, what, request, replicas)
                        alone = one_round(server, options, what, request, replicas, saved[0])
                        rows.setdefault((kind, False), []).append(alone)
                        rows.setdefault((kind, True), []).append(saved)
            finally:
                for replica in replicas:
                    replica.__exit__()
        for (kind, saves), all_rows in rows.items():
            median = [statistics.median(column) for column in zip(*all_rows)]
            alone = statistics.median(row[5] for row in rows[kind, False])
            median[5] -= alone if saves else 0
            print(f"{what:8}{way:8}{kind:5}{'saving' if saves else 'alone':8}" + "".join(f"{x:10.1f}" for x in median),
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--keys", type=int, default=5000000)
    parser.add_argument("--size", type=int, default=16, help="bytes of a value")
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--what", default="bgsave,rewrite,sync")
    parser.add_argument("--ways", default="fork,inline,peer")
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    print(f"{'':29}" + "".join(f"{x:>10}" for x in ("seconds", "p50", "p99", "p99.9", "most", "CPU ms", "peak MB", "copied MB")))
    for what in options.what.split(","):
        compare(options, what)


if __name__ == "__main__":
    main()

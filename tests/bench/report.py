#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures this server beside a peer, both with their defaults, and writes the page docs/benchmarks.md from it.

    tests/bench/report.py PEER [--quick] [--only cpu,memory,save,sync]    measures (make bench-report PEER=...)
    tests/bench/report.py --render                                        writes the page from the last figures
    tests/bench/report.py --check                                         fails if the page is not that of the figures

Figures are in docs/benchmarks/results.json; report_page.py makes the page, its plots and the table of README.md.

cpu     CPU time (user and system) of the server's process a request, at pipelines 1, 16 and 100, under the peer's own
        valkey-benchmark with 50 connections. Rounds alternate between the servers; medians.
memory  used_memory a key, over that of an empty server, while a keyspace grows: the mean of a sweep of sizes, because
        tables grow in steps.
save    50 clients send requests at a fixed rate, whatever the server does (load.c), beside BGSAVE: latencies of saving.py.
sync    seconds of a full synchronisation of one empty replica of the same kind, from REPLICAOF to a link that is up.

--quick takes about five minutes and is less exact. save needs root and two processors, and is left out without."""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import report_page
import saving
from keyspace import Server, cpu_us, fill

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
OURS = os.path.join(ROOT, "build/release/valkey-server")
RESULTS = os.path.join(ROOT, "docs/benchmarks/results.json")
KEYS = 1000000
# Name, arguments of valkey-benchmark after the options. Each key number is one of KEYS.
COMMANDS = (
    ("PING", ("PING",)),
    ("GET", ("GET", "key:__rand_int__")),
    ("SET", ("SET", "key:__rand_int__", "0123456789abcdef")),
    ("INCR", ("INCR", "counter:__rand_int__")),
    ("LPUSH", ("LPUSH", "list", "0123456789abcdef")),
    ("HSET", ("HSET", "hash:__rand_int__", "field", "0123456789abcdef")),
    ("SADD", ("SADD", "set", "member:__rand_int__")),
    ("ZADD", ("ZADD", "zset", "1", "member:__rand_int__")),
    ("LRANGE of 100", ("LRANGE", "hundred", "0", "99")),
)
# Pipeline, and the share of the requests of a round: about equal times.
PIPELINES = ((1, 0.1), (16, 0.7), (100, 1.5))


class Both:
    """Both servers, in the order of their names, with the same options."""

    def __init__(self, options, extra=()):
        self.by_name = {}
        try:
            for name in ("ours", "peer"):
                self.by_name[name] = Server(getattr(options, name), extra=extra)
        except OSError:
            self.__exit__()
            raise

    def __enter__(self):
        return self.by_name

    def __exit__(self, *_):
        for server in self.by_name.values():
            server.__exit__()


def say(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def in_turn(servers, turn):
    """The servers, every second time in reverse order."""
    return list(servers.items())[:: -1 if turn % 2 else 1]


def cost_of_requests(server, options, words, pipeline, count):
    """CPU microseconds a request."""
    before = cpu_us(server)
    subprocess.run([options.generator, "-p", str(server.port), "-c", "50", "-P", str(pipeline), "-n", str(count),
                    "-r", str(KEYS), "-q", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (cpu_us(server) - before) / count


def measure_cpu(options):
    rows = []
    with Both(options) as servers:
        for server in servers.values():
            fill(server, range(KEYS))
            server.ask("RPUSH", "hundred", *[f"element:{i:08}" for i in range(100)])
        for name, words in COMMANDS:
            if options.quick and name not in ("PING", "GET", "SET", "HSET", "ZADD"):
                continue
            for pipeline, share in PIPELINES:
                count = int(options.requests * share * (0.1 if name.startswith("LRANGE") else 1)) // 100 * 100
                figures = {"ours": [], "peer": []}
                for turn in range(options.rounds):
                    for which, server in in_turn(servers, turn):
                        figures[which].append(cost_of_requests(server, options, words, pipeline, count))
                row = {"command": name, "pipeline": pipeline}
                for which, all_us in figures.items():
                    row |= {which: round(statistics.median(all_us), 4), which + "_least": round(min(all_us), 4),
                            which + "_most": round(max(all_us), 4)}
                rows.append(row)
                say(f"cpu: {name} P{pipeline}: {row['ours']:.3f} us, peer {row['peer']:.3f}")
    return rows


def measure_memory(options):
    """Bytes a key while a keyspace grows by a tenth from step to step."""
    most = 2000000 if options.quick else 8000000
    sizes = [int(most / 8 * 1.1 ** i) for i in range(23) if most / 8 * 1.1 ** i <= most]
    rows = []
    for value in (16, 64, 256) if not options.quick else (16, 64):
        with Both(options) as servers:
            row = {"value": value, "keys": sizes}
            for name, server in servers.items():
                empty, filled, row[name] = server.used(), 0, []
                for size in sizes:
                    fill(server, range(filled, size), b"v" * value)
                    filled = size
                    row[name].append(round((server.used() - empty) / size, 2))
            rows.append(row)
            say(f"memory: values of {value}: {statistics.mean(row['ours']):.1f} bytes a key, "
                f"peer {statistics.mean(row['peer']):.1f}")
    return rows


def measure_save(options):
    """Latencies of requests at a fixed rate, beside a save and without one."""
    options.keys, options.mixed, options.size = (2000000 if options.quick else 20000000), False, 64
    options.rate, options.seconds = (10000, 5) if options.quick else (20000, 10)
    result = {"keys": options.keys, "value": options.size, "rate": options.rate, "rows": []}
    pinned = ("--server-cpulist", "0", "--bio-cpulist", "1", "--bgsave-cpulist", "1")
    for name in ("ours", "peer"):
        with Server(getattr(options, name), extra=pinned) as server:
            saving.fill(server, options.keys, options.size, False)
            for command, request in saving.REQUESTS:
                for saves in (False, True):
                    rounds = [saving.one_round(server, options, "bgsave", request, [], saves)
                              for _ in range(rounds_of("save", options))]
                    seconds, p99, p999, longest, _, peak_mb, copied_mb = (statistics.median(column) for column in zip(*rounds))
                    result["rows"].append({"server": name, "command": command, "saving": saves, "p99": round(p99),
                                           "p99.9": round(p999), "longest": round(longest), "seconds": round(seconds, 1),
                                           "memory_mb": round(peak_mb + copied_mb)})
                    say(f"save: {name} {command} {'saving' if saves else 'alone'}: p99.9 {p999:.0f} us, "
                        f"longest {longest:.0f} us")
    return result


def sync_once(primary, binary):
    """Seconds, and CPU seconds of primary and replica."""
    with Server(binary) as replica:
        before, start = cpu_us(primary), time.monotonic()
        replica.ask("REPLICAOF", "127.0.0.1", str(primary.port))
        while saving.info(replica, "master_link_status") != "up":
            if time.monotonic() - start > 600:
                raise RuntimeError("the full synchronisation did not end")
            time.sleep(0.02)
        return time.monotonic() - start, (cpu_us(primary) - before + cpu_us(replica)) / 1e6


def measure_sync(options):
    keys = 2000000 if options.quick else 10000000
    result = {"keys": keys, "value": 64}
    with Both(options, ("--repl-diskless-sync-delay", "0")) as servers:
        for server in servers.values():
            saving.fill(server, keys, 64, False)
        figures = {"ours": [], "peer": []}
        for turn in range(rounds_of("sync", options)):
            for name, server in in_turn(servers, turn):
                figures[name].append(sync_once(server, getattr(options, name)))
        for name, rounds in figures.items():
            result[name], result[name + "_cpu"] = (round(statistics.median(column), 2) for column in zip(*rounds))
            say(f"sync: {name} {result[name]} s")
    return result


def rounds_of(part, options):
    """How often each figure of a part is measured."""
    if part == "memory":
        return 1
    return options.rounds if part == "cpu" or not options.quick else 3


PARTS = {"cpu": measure_cpu, "memory": measure_memory, "save": measure_save, "sync": measure_sync}


def version_of(binary):
    words = subprocess.run([binary, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return " ".join(word for word in words if word.startswith(("v=", "sha=", "malloc=", "release=")))


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return {"processors": os.cpu_count(), "model": model, "memory_gb": round(memory / 1048576, 1),
            "kernel": platform.release()}


def other_load():
    """Processors that others use, measured for a second before anything is started."""
    def busy():
        ticks = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
        return sum(ticks) - ticks[3] - ticks[4]
    before = busy()
    time.sleep(1)
    return round((busy() - before) / os.sysconf("SC_CLK_TCK"), 1)


def measure(options):
    options.peer = os.path.abspath(options.peer)
    options.ours = OURS
    options.generator = options.generator or os.path.join(os.path.dirname(options.peer), "valkey-benchmark")
    for program in (options.ours, options.peer, options.generator, saving.LOAD):
        if not os.access(program, os.X_OK):
            sys.exit(f"report: {program} is missing")
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.requests = 300000 if options.quick else 1000000
    wanted = options.only.split(",")
    unknown = set(wanted) - set(PARTS)
    if unknown:
        sys.exit(f"report: no such part: {', '.join(sorted(unknown))}")
    if "save" in wanted and (os.geteuid() or (os.cpu_count() or 1) < 2):
        say("save: left out, needs root and two processors")
        wanted.remove("save")
    results = {}
    if os.path.exists(RESULTS) and set(wanted) != set(PARTS):
        with open(RESULTS, encoding="utf-8") as file:
            results = json.load(file)
    results["machine"] = machine()
    for part, measure_part in PARTS.items():
        if part in wanted:
            run = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC", "quick": options.quick,
                   "rounds": rounds_of(part, options), "ours": version_of(options.ours), "peer": version_of(options.peer), "other_load": other_load()}
            results[part] = {"run": run, "figures": measure_part(options)}
    os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", help="path of the other server; its valkey-benchmark is beside it")
    parser.add_argument("--generator", help="path of the peer's valkey-benchmark, if it is elsewhere")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not (options.peer or options.render or options.check):
        parser.error("PEER is missing: make bench-report PEER=/path/to/valkey-server")
    if options.peer:
        measure(options)
    with open(RESULTS, encoding="utf-8") as file:
        files = report_page.files(json.load(file), ROOT)
    stale = report_page.stale(files)
    if options.check:
        for path in stale:
            print(f"report: {os.path.relpath(path, ROOT)} is not what tests/bench/report.py --render writes")
        sys.exit(bool(stale))
    for path in stale:
        with open(path, "w", encoding="utf-8") as file:
            file.write(files[path])
        say(f"wrote {os.path.relpath(path, ROOT)}")


if __name__ == "__main__":
    main()

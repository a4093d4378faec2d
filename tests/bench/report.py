#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures this server beside a peer and writes the page docs/benchmarks.md from it.

    tests/bench/report.py PEER [--only cpu,speed,settings,memory,save,sync]   measures (make bench-report PEER=...)
    tests/bench/report.py PEER --quick [--only ...]                           measures less, and only prints the page
    tests/bench/report.py --render                                            writes the page from the last figures
    tests/bench/report.py --check                                             fails if the page is not that of the figures

In each part rounds alternate between the servers, except for memory, which does not depend on time. Figures are in
docs/benchmarks/results.json; report_page.py makes the page, its plots, and the table of README.md with what it means.

cpu     CPU time (user and system) of the server's process a request, at pipelines 1, 16 and 100, under the peer's own
        valkey-benchmark with 50 connections; medians.
speed   requests a second of 50 clients without pipelines, and latencies at 60 % of what the slower server reaches (load.c).
settings  CPU time of a request with TLS, with an append only file, as a node of a cluster, through the gateway of another
        node (CPU of both; the peer's node is asked itself), and of large values.
memory  used_memory a key, over that of an empty server, while a keyspace grows: the mean of a sweep of sizes, because
        tables grow in steps.
save    50 clients send requests at a fixed rate, whatever the server does (load.c), from BGSAVE to the end of the save, and
        then for as long without one: latencies of saving.py.
sync    seconds of a full synchronisation of one empty replica of the same kind, from REPLICAOF to a link that is up.

--quick takes some eight minutes; its figures are too rough to be published, so it writes no file. save needs root and two
processors, and is left out without; so is TLS without openssl or with a peer that has no TLS (--tls-peer names one that has)."""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import beside
import report_page
import saving
from gateway_cost import gateway_nodes
from keyspace import Server, cpu_us, fill, reserve_port

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
GATEWAY = "gateway, keys of another node"
# Name, options of the server, bytes of a value, how many keys, pipeline. The first one is what the others are compared with.
SETTINGS = (
    ("as it starts", (), 16, KEYS, 16),
    ("append only file, everysec", ("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"), 16, KEYS, 16),
    ("node of a cluster", (), 16, KEYS, 16),
    (GATEWAY, (), 16, KEYS, 16),
    ("TLS", (), 16, KEYS, 16),
    ("values of 1 KB", (), 1000, 100000, 16),
    ("values of 10 KB", (), 10000, 20000, 16),
    ("values of 100 KB", (), 100000, 2000, 1),
)
# Pipeline, and the share of the requests of a round: about equal times.
PIPELINES = ((1, 0.1), (16, 0.7), (100, 1.5))


class Both:
    """Both servers, in the order of their names, with the same options."""

    def __init__(self, options, extra=(), cluster=False):
        self.by_name = {}
        try:
            for name in ("ours", "peer"):
                self.by_name[name] = Server(getattr(options, name), cluster=cluster, extra=extra)
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


def cost_of_requests(server, options, words, pipeline, count, keys=KEYS, generator=()):
    """CPU microseconds a request. `generator` are further options of it; a port in them replaces the server's."""
    nodes = getattr(server, "nodes", [server])
    before = sum(map(cpu_us, nodes))
    subprocess.run([options.generator, "-p", str(server.port), "-c", "50", "-P", str(pipeline), "-n", str(count),
                    "-r", str(keys), "-q", *generator, *words],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (sum(map(cpu_us, nodes)) - before) / count


def spread(name, figures, digits=None):
    """The median of rounds and what lies around it, as the fields of a row."""
    return {name: round(statistics.median(figures), digits), name + "_least": round(min(figures), digits),
            name + "_most": round(max(figures), digits)}


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
                    row |= spread(which, all_us, 4)
                rows.append(row)
                say(f"cpu: {name} P{pipeline}: {row['ours']:.3f} us, peer {row['peer']:.3f}")
    return rows


def measure_speed(options):
    """Requests a second of clients that wait for each reply, then latencies at a rate that both servers can keep."""
    requests, seconds = options.requests // 5, 2 if options.quick else 10
    rows = []
    with Both(options) as servers:
        for server in servers.values():
            fill(server, range(beside.KEYS))
        start = beside.part_processors(servers.values())
        for name, request in (("GET", beside.GET), ("SET", beside.SET)):
            rates = {"ours": [], "peer": []}
            for turn in range(options.rounds):
                for which, server in in_turn(servers, turn):
                    rates[which].append(beside.load([server], request, "-n", requests, start=start)[0][0])
            row = {"command": name, "latencies": {}}
            for which, figures in rates.items():
                row |= spread(which, figures)
            row["rate"] = round(min(row["ours"], row["peer"]) * 0.6)
            slices = int(seconds / beside.SLICE_S)
            # Each row of a round: rate, p50, p90, p99, p99.9, ...; slices of 0.1 s alternate between the servers.
            rounds = [beside.load(servers.values(), request, "-R", row["rate"], "-S", slices,
                                  "-n", int(row["rate"] * seconds), start=start) for _ in range(options.rounds)]
            for at, which in enumerate(servers):
                for part, column in (("p50", 1), ("p99", 3), ("p99.9", 4)):
                    row["latencies"].setdefault(part, {}).update(spread(which, [one[at][column] for one in rounds]))
            rows.append(row)
            say(f"speed: {name}: {row['ours']:.0f}/s, peer {row['peer']:.0f}/s")
    return rows


def tls_options(folder):
    """Options of a server with certificates made in the folder, and those of the generator; None without openssl."""
    made = subprocess.run([os.path.join(ROOT, "tests/support/make_certs.sh"), folder], check=False, stderr=subprocess.DEVNULL)
    if made.returncode:
        return None
    files = ["--tls-cert-file", f"{folder}/server.crt", "--tls-key-file", f"{folder}/server.key",
             "--tls-ca-cert-file", f"{folder}/ca.crt", "--tls-auth-clients", "no"]
    return files, ["--tls", "--cacert", f"{folder}/ca.crt"]


def setting_rows(options, setting, servers, generators):
    name, _, size, keys, pipeline = setting
    share = 0.7 if size < 1000 else 100 / size
    count = max(int(options.requests * share) // 100 * 100, 5000)
    rows = []
    for server in servers.values():
        fill(server, range(keys), b"v" * size)
    for command, words in (("SET", ("SET", "key:__rand_int__", "v" * size)), ("GET", ("GET", "key:__rand_int__"))):
        figures = {"ours": [], "peer": []}
        for turn in range(options.rounds):
            for which, server in in_turn(servers, turn):
                figures[which].append(cost_of_requests(server, options, words, pipeline, count, keys, generators[which]))
        row = {"setting": name, "command": command, "pipeline": pipeline}
        for which, all_us in figures.items():
            row |= spread(which, all_us, 4)
        rows.append(row)
        say(f"settings: {name}, {command}: {row['ours']:.3f} us, peer {row['peer']:.3f}")
    return rows


def speaks_tls(server, options, generator):
    try:
        cost_of_requests(server, options, ("PING",), 1, 100, 1, generator)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def measure_tls(options, setting):
    """Each server has a TLS port beside the other one."""
    with tempfile.TemporaryDirectory() as folder:
        made = tls_options(folder)
        if not made:
            say("settings: TLS left out, openssl is missing")
            return []
        servers, generators, guards = {}, {}, []
        try:
            for which in ("ours", "peer"):
                port, guard = reserve_port()
                guards.append(guard)
                binary = options.tls_peer or options.peer if which == "peer" else options.ours
                servers[which] = Server(binary, extra=("--tls-port", str(port), *made[0]))
                generators[which] = ["-p", str(port), *made[1]]
            if not all(speaks_tls(server, options, generators[which]) for which, server in servers.items()):
                say("settings: TLS left out, a server or the generator has none")
                return []
            return setting_rows(options, setting, servers, generators)
        except OSError:
            say("settings: TLS left out, a server does not start with a TLS port")
            return []
        finally:
            for server in servers.values():
                server.__exit__()


def measure_gateway(options, setting):
    """A node with all slots is asked through the gateway of another one; the peer's node is asked itself."""
    with gateway_nodes(options.ours) as (owner, entry), Server(options.peer, cluster=True) as peer:
        owner.nodes = [owner, entry]
        return setting_rows(options, setting, {"ours": owner, "peer": peer}, {"ours": ["-p", str(entry.gateway)], "peer": ()})


def measure_settings(options):
    rows = []
    for setting in SETTINGS:
        if setting[0] == GATEWAY:
            rows += measure_gateway(options, setting)
            continue
        if setting[0] == "TLS":
            rows += measure_tls(options, setting)
            continue
        with Both(options, setting[1], cluster=setting[0] == "node of a cluster") as servers:
            rows += setting_rows(options, setting, servers, {"ours": (), "peer": ()})
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
    options.rate = 10000 if options.quick else 20000
    result = {"keys": options.keys, "value": options.size, "rate": options.rate, "rows": [],
              "method": "Rounds alternate between the servers, which run at the same time; requests last from the start of a save "
                        "to its end, and then for as long without one."}
    pinned = ("--server-cpulist", "0", "--bio-cpulist", "1", "--bgsave-cpulist", "1")
    with Both(options, pinned) as servers:
        for server in servers.values():
            saving.fill(server, options.keys, options.size, False)
        for command, request in saving.REQUESTS:
            rounds = {}
            for turn in range(rounds_of("save", options)):
                for name, server in in_turn(servers, turn):
                    saved = saving.one_round(server, options, "bgsave", request, [])
                    rounds.setdefault((name, True), []).append(saved)
                    rounds.setdefault((name, False), []).append(
                        saving.one_round(server, options, "bgsave", request, [], saved[0]))
            for (name, saves), figures in sorted(rounds.items()):
                result["rows"].append(save_row(name, command, saves, figures))
    return result


def save_row(name, command, saves, rounds):
    seconds, p50, p99, p999, longest, _, peak_mb, copied_mb = zip(*rounds)
    row = {"server": name, "command": command, "saving": saves, "seconds": round(statistics.median(seconds), 1),
           "memory_mb": round(statistics.median(peak_mb) + statistics.median(copied_mb)), "longest": round(statistics.median(longest))}
    for part, figures in (("p50", p50), ("p99", p99), ("p99.9", p999)):
        row |= spread(part, figures)
    say(f"save: {name} {command} {'saving' if saves else 'alone'}: p99.9 {row['p99.9']} us, longest {row['longest']} us")
    return row


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
    return options.rounds


PARTS = {"cpu": measure_cpu, "speed": measure_speed, "settings": measure_settings, "memory": measure_memory,
         "save": measure_save, "sync": measure_sync}


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
    """The figures of the parts that are wanted, with those that are there of others."""
    options.peer = os.path.abspath(options.peer)
    options.ours = OURS
    options.tls_peer = options.tls_peer and os.path.abspath(options.tls_peer)
    options.generator = options.generator or os.path.join(os.path.dirname(options.peer), "valkey-benchmark")
    for program in (options.ours, options.peer, options.generator, beside.LOAD):
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
    if os.path.exists(RESULTS) and set(wanted) != set(PARTS) and not options.quick:
        with open(RESULTS, encoding="utf-8") as file:
            results = json.load(file)
    for part, measure_part in PARTS.items():
        if part in wanted:
            run = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC", "quick": options.quick,
                   "rounds": rounds_of(part, options), "ours": version_of(options.ours), "peer": version_of(options.peer),
                   "tls_peer": version_of(options.tls_peer or options.peer), "machine": machine(),
                   "other_load": other_load()}
            results[part] = {"run": run, "figures": measure_part(options)}
    return results


def write(results):
    os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
    with open(RESULTS, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", help="path of the other server; its valkey-benchmark is beside it")
    parser.add_argument("--generator", help="path of the peer's valkey-benchmark, if it is elsewhere")
    parser.add_argument("--tls-peer", help="path of a build of the peer with TLS, for the rows TLS, if PEER has none")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not (options.peer or options.render or options.check):
        parser.error("PEER is missing: make bench-report PEER=/path/to/valkey-server")
    if options.peer:
        results = measure(options)
        if options.quick:
            print(report_page.page(results))
            return
        write(results)
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

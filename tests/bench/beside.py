#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two servers under the load generator of this folder (make gate builds it).

    tests/bench/beside.py latency OURS PEER [--rounds N] [--slices N]
    tests/bench/beside.py prices  OURS PEER [--rounds N] [--requests N]
    tests/bench/beside.py floor   OURS PEER [--rounds N] [--requests N]

latency  50 clients, one request at a time each, at 30, 60 and 90 % of what the slower server and the generator reach
         together. Requests have times of their own, whatever the server does, and a latency counts from there. The
         servers take turns, slices of 0.1 s; one in which a hypervisor took time away is done again. Microseconds: of
         all requests, and after the bar of the slice in the middle, which leaves out what happens now and then (the
         generator on one processor, the servers on the others: what is left are stalls of the machine).
prices   CPU microseconds of the server a request at pipeline 16, plain and with one setting at a time, and what the
         setting costs over the plain server of the same rounds.
floor    CPU microseconds a request at pipelines 1, 16 and 100 beside a program that answers constants (floor.c): what the
         kernel takes from any server; then ours over it, as a part of the peer's over it.

Rounds alternate between the servers. Both keep 100,000 keys of 16 bytes with values of 16, and no files."""
import argparse
import os
import socket
import statistics
import subprocess
import sys
import time

from keyspace import Server, cpu_us, fill, reserve_port

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "../../build/release/tests/bench")
LOAD = os.path.join(PROGRAMS, "load")
KEYS = 100000
SLICE_S = 0.1
GET, SET = "GET key:%r", "SET key:%r %a"
# Requests with the reply of the floor; pipelines with the share of --requests.
FLOOR_ROWS = (("PING", "+PONG\r\n"), (GET, "$16\r\n0123456789abcdef\r\n"), (SET, "+OK\r\n"))
FLOOR_PIPELINES = ((1, 0.2), (16, 1), (100, 3))


def load(servers, request, *options, start=()):
    """Results of each server."""
    ports = ",".join(str(s.port) for s in servers)
    done = subprocess.run([*start, LOAD, "-r", str(KEYS), *map(str, options), ports, request],
                          check=True, stdout=subprocess.PIPE, text=True)
    return [[float(figure) for figure in line.split("|")] for line in done.stdout.splitlines()]


def part_processors(servers):
    """Pins the servers' threads so that one processor is free for the generator. Returns the generator's command prefix."""
    mine, *others = sorted(os.sched_getaffinity(0))
    if not others:
        return []
    for s in servers:
        for thread in os.listdir(f"/proc/{s.process.pid}/task"):
            os.sched_setaffinity(int(thread), others)
    return ["taskset", "-c", str(mine)]


def latency(options):
    with Server(options.ours) as ours, Server(options.peer) as peer:
        servers = {"ours": ours, "peer": peer}
        for s in servers.values():
            fill(s, range(KEYS))
        start = part_processors(servers.values())
        parts = "p50", "p99", "p99.9"
        print(f"{'request':8}{'load':>6}{'a second':>10}  " + " |".join(
            "".join(f"{name + ' ' + part:>12}" for part in parts for name in servers) for _ in range(2)), flush=True)
        for request in (GET, SET):
            most = min(max(load([s], request, "-n", 100000, start=start)[0][0] for _ in range(options.rounds))
                       for s in servers.values())
            for share in (0.3, 0.6, 0.9):
                rate = most * share
                # rate, p50, p90, p99, p99.9, most; of the middle slice p50, p99, p99.9; how many rounds again
                rows = load(servers.values(), request, "-R", rate, "-S", options.slices,
                            "-n", int(rate * SLICE_S * options.slices), start=start)
                print(f"{request[:3]:8}{share:6.0%}{rate:10.0f}  " + " |".join(
                    "".join(f"{row[at]:12.0f}" for at in columns for row in rows)
                    for columns in ((1, 3, 4), (6, 7, 8))), flush=True)


# Programs attached to a server: each prints when it is ready and exits at the end of its input.
IDLE = """
import socket, sys
all = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(10000)]
print("ready", flush=True)
sys.stdin.read()
"""
MONITOR = """
import socket, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"MONITOR\\r\\n")
s.recv(5)
def drain():
    while s.recv(1 << 20):
        pass
threading.Thread(target=drain, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
NO_LOG = ("--commandlog-execution-slower-than", "-1", "--commandlog-request-larger-than", "-1",
          "--commandlog-reply-larger-than", "-1")
SETTINGS = (
    ("maxmemory 1gb, allkeys-lru", ("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"), None),
    ("maxmemory 1gb, allkeys-lfu", ("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lfu"), None),
    ("latency-tracking no", ("--latency-tracking", "no"), None),
    ("command log off", NO_LOG, None),
    ("MONITOR attached", (), MONITOR),
    ("10,000 idle clients", ("--maxclients", "11000"), IDLE),
    ("notify-keyspace-events KEA", ("--notify-keyspace-events", "KEA"), None),
)


class Attached:
    def __init__(self, program, server):
        self.process = program and subprocess.Popen([sys.executable, "-c", program, str(server.port)],
                                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process:
            self.process.stdout.readline()

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def price(server, request, requests):
    before = cpu_us(server)
    load([server], request, "-P", 16, "-n", requests)
    return (cpu_us(server) - before) / requests


def prices(options):
    print(f"{'setting':29}" + "".join(f"{who + ' ' + what:>10}{'cost':>7}" for what in ("GET", "SET") for who in ("ours", "peer"))
          + "   plain: ours GET, peer GET, ours SET, peer SET")
    for name, words, program in SETTINGS:
        servers = [Server(binary, extra=extra) for binary in (options.ours, options.peer) for extra in ((), words)]
        attached = []
        try:
            for s in servers:
                fill(s, range(KEYS))
            attached = [Attached(program, s) for s in servers[1::2]]
            line, plain = f"{name:29}", []
            for request in (GET, SET):
                rows = [[] for _ in servers]
                for turn in range(options.rounds):
                    for at in range(4) if turn % 2 else reversed(range(4)):
                        rows[at].append(price(servers[at], request, options.requests))
                us = [statistics.median(row) for row in rows]
                line += f"{us[1]:10.3f}{us[1] / us[0] - 1:+7.0%}{us[3]:10.3f}{us[3] / us[2] - 1:+7.0%}"
                plain += [us[0], us[2]]
            print(line + "   " + ", ".join(f"{us:.3f}" for us in plain), flush=True)
        finally:
            for a in attached:
                a.end()
            for s in servers:
                s.__exit__()


class Floor:
    """tests/bench/floor.c, as far as load() and cpu_us() need a server."""

    def __init__(self, reply):
        self.port, self.guard = reserve_port()  # for as long as this object lives
        self.process = subprocess.Popen([os.path.join(PROGRAMS, "floor"), str(self.port), reply])
        deadline = time.time() + 10
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            if time.time() > deadline:
                sys.exit("beside: floor does not answer")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def floor(options):
    def cost(server, request, pipeline, count):
        before = cpu_us(server)
        load([server], request, "-P", pipeline, "-n", count)
        return (cpu_us(server) - before) / count

    print(f"{'request':8}{'pipeline':>8}{'floor':>9}{'ours':>9}{'peer':>9}   (ours-floor)/(peer-floor)   least and most of the rounds")
    with Server(options.ours) as ours, Server(options.peer) as peer:
        for s in (ours, peer):
            fill(s, range(KEYS))
        for request, reply in FLOOR_ROWS:
            with Floor(reply) as least:
                for pipeline, share in FLOOR_PIPELINES:
                    servers, rows = (least, ours, peer), ([], [], [])
                    for turn in range(options.rounds):
                        for at in range(3) if turn % 2 else reversed(range(3)):
                            rows[at].append(cost(servers[at], request, pipeline, int(options.requests * share)))
                    us = [statistics.median(row) for row in rows]
                    spread = "  ".join(f"{min(row):.3f}-{max(row):.3f}" for row in rows)
                    print(f"{request[:4]:8}{pipeline:8}" + "".join(f"{one:9.3f}" for one in us) +
                          f"{(us[1] - us[0]) / (us[2] - us[0]):28.2f}   {spread}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "prices", "floor"))
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slices", type=int, default=200)
    parser.add_argument("--requests", type=int, default=300000)
    options = parser.parse_args()
    {"latency": latency, "prices": prices, "floor": floor}[options.what](options)


if __name__ == "__main__":
    main()

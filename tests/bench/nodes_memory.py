#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a long list and of a long stream with value-compression no and idle, beside another server.

    tests/bench/nodes_memory.py OURS PEER [--elements N]

OURS and PEER are server binaries; they run on free ports without persistence and hold one list of sessions as JSON, and one stream of readings of
sensors (5 fields, as XADD writes them). For each: bytes per element (used_memory over that of the empty server, dictionaries included), its part of
PEER's, CPU microseconds of the server per element written, per element of ranges of 100 at random (all of `idle` are read for the first time), per
element added at one end and removed at the other afterwards, and seconds until the nodes are compressed, with value-compression-cpu 50 and
value-compression-idle-seconds 1. Needs Python 3.9, nothing else."""
import argparse
import os
import random
import time

from keyspace import Server, request
from values import WORDS, sessions
from values_memory import cpu_of, info, used

RANGE, ENDS, FIRST_MS = 100, 20000, 1760000000000


def sensor(r):
    return ("device", f"{r.choice(WORDS)}-{r.randint(1, 500):03}", "temperature", f"{r.gauss(21, 4):.1f}", "humidity", f"{r.gauss(55, 9):.1f}",
            "battery", str(r.randint(5, 100)), "status", r.choice(("ok", "ok", "ok", "low battery", "calibrating")))


def list_push(r, number):
    return request("RPUSH", "queue:1", sessions(r, number))


def list_range(at):
    return request("LRANGE", "queue:1", str(at), str(at + RANGE - 1))


def stream_push(r, number):
    return request("XADD", "readings:1", f"{FIRST_MS + 250 * number}-0", *sensor(r))


def stream_range(at):
    return request("XRANGE", "readings:1", str(FIRST_MS + 250 * at), "+", "COUNT", str(RANGE))


KINDS = {"list": (list_push, list_range, lambda number: [request("LPOP", "queue:1")]),
         "stream": (stream_push, stream_range, lambda number: [request("XDEL", "readings:1", f"{FIRST_MS + 250 * number}-0")])}


def settle(server):
    """Seconds until as many nodes are compressed as will be."""
    begun, before, same = time.time(), -1, 0
    while same < 30 and time.time() - begun < 600:
        time.sleep(0.5)
        now = int(info(server)["compressed_nodes"])
        same = same + 1 if now == before and now else 0
        before = now
    return time.time() - begun - 15


def measure(binary, kind, elements, mode=None):
    push, read, remove = KINDS[kind]
    extra = () if mode is None else ("--value-compression", mode, "--value-compression-idle-seconds", "1", "--value-compression-cpu", "50")
    r = random.Random(f"{kind} 1")
    with Server(binary, extra=extra) as server:
        empty, write_us = used(server), 0.0
        for at in range(0, elements, 20000):
            numbers = range(at, min(at + 20000, elements))
            write_us += cpu_of(server, [push(r, n) for n in numbers]) * len(numbers) / elements
        seconds = settle(server) if mode == "idle" else 0
        per_element = (used(server) - empty) / elements
        starts = random.Random(5).sample(range(0, elements - RANGE, RANGE), min(500, elements // RANGE - 1))
        read_us = cpu_of(server, [read(at) for at in starts]) / RANGE
        ends_us = cpu_of(server, [piece for n in range(ENDS) for piece in (push(r, elements + n), *remove(n))])
        return per_element, write_us, read_us, 2 * ends_us, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--elements", type=int, default=500000)
    args = parser.parse_args()
    args.ours, args.peer = os.path.abspath(args.ours), os.path.abspath(args.peer)
    print(f"{args.elements} elements\n{'kind':7} {'server':7} {'bytes':>7} {'of peer':>8} {'write us':>9} {'read us':>8} {'ends us':>8} {'seconds':>8}")
    for kind in KINDS:
        peer = None
        for name, binary, mode in (("peer", args.peer, None), ("no", args.ours, "no"), ("idle", args.ours, "idle")):
            per_element, write_us, read_us, ends_us, seconds = measure(binary, kind, args.elements, mode)
            peer = peer or per_element
            print(f"{kind:7} {name:7} {per_element:7.1f} {per_element / peer:8.2f} {write_us:9.2f} {read_us:8.2f} {ends_us:8.2f} {seconds:8.1f}",
                  flush=True)


if __name__ == "__main__":
    main()

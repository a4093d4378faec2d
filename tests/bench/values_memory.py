#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of strings with value-compression no, idle and always, beside another server.

    tests/bench/values_memory.py OURS PEER [--only KIND,...] [--keys N]

OURS and PEER are server binaries; they run on free ports without persistence and hold the same keys, `KIND:NUMBER`, with the values of
values.py (100,000 different ones, repeated). For each kind: bytes per key (used_memory over that of the empty server, dictionaries included),
its part of PEER's, CPU microseconds of the server per SET and per GET of a random key at pipeline 100, and seconds until the values are
compressed, with value-compression-cpu 50 and value-compression-idle-seconds 1. Needs Python 3.9, nothing else."""
import argparse
import os
import random
import time

from keyspace import Server, cpu_us, request
from values import KINDS, values

DIFFERENT = 100000
PIPELINE = 100
READS = 20000
WAIT_S = 300
MODES = ("no", "idle", "always")


def info(server):
    lines = server.ask("INFO", "everything").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def used(server):
    return int(info(server)["used_memory"])


def cpu_of(server, requests):
    before = cpu_us(server)
    for at in range(0, len(requests), PIPELINE):
        server.pass_over(b"".join(requests[at:at + PIPELINE]))
    return (cpu_us(server) - before) / max(len(requests), 1)


def load(server, kind, stored, keys):
    us = 0.0
    for at in range(0, keys, DIFFERENT):
        numbers = range(at, min(at + DIFFERENT, keys))
        us += cpu_of(server, [request("SET", f"{kind}:{n}", stored[n % len(stored)]) for n in numbers]) * len(numbers)
    return us / keys


def settle(server, keys):
    """Waits until nothing is compressed any more, or no dictionary was good enough; returns seconds."""
    begin = time.monotonic()
    last, since = None, begin
    while time.monotonic() < begin + WAIT_S:
        fields = info(server)
        now = (fields["compressed_values"], fields["value_dictionaries_accepted"], fields["value_dictionaries_trained"])
        if now != last:
            last, since = now, time.monotonic()
        done = int(now[0]) >= keys * 0.999
        quiet = time.monotonic() - since > 15 and int(fields["value_dictionary_rounds"]) > 0
        if done or quiet:
            return since - begin
        time.sleep(0.2)
    return time.monotonic() - begin


def measure(binary, kind, stored, keys, mode=None):
    extra = () if mode is None else ("--value-compression", mode, "--value-compression-idle-seconds", "1",
                                     "--value-compression-cpu", "50")
    with Server(binary, extra=extra) as server:
        empty = used(server)
        set_us = load(server, kind, stored, keys)
        seconds = settle(server, keys) if mode in ("idle", "always") else 0
        per_key = (used(server) - empty) / keys
        rng = random.Random(5)
        reads = [request("GET", f"{kind}:{n}") for n in (rng.randrange(keys) for _ in range(READS))]
        for n in (0, keys // 2, keys - 1):
            assert server.ask("GET", f"{kind}:{n}") == stored[n % len(stored)].encode()
        return per_key, set_us, cpu_of(server, reads), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--keys", type=int, default=1000000)
    args = parser.parse_args()
    args.ours, args.peer = os.path.abspath(args.ours), os.path.abspath(args.peer)
    print(f"{args.keys} keys\n{'kind':10} {'server':8} {'bytes/key':>9} {'of peer':>8} {'SET us':>7} {'GET us':>7} {'seconds':>8}")
    for kind in args.only.split(","):
        stored = list(values(kind, min(DIFFERENT, args.keys)))
        peer, set_us, get_us, _ = measure(args.peer, kind, stored, args.keys)
        print(f"{kind:10} {'peer':8} {peer:9.1f} {1:8.2f} {set_us:7.2f} {get_us:7.2f}", flush=True)
        for mode in MODES:
            per_key, set_us, get_us, seconds = measure(args.ours, kind, stored, args.keys, mode)
            print(f"{kind:10} {mode:8} {per_key:9.1f} {per_key / peer:8.2f} {set_us:7.2f} {get_us:7.2f} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()

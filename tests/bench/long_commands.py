#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long the worst request of each command takes (src/cmd/spec/README.md), and what a neighbour notices.

    tests/bench/long_commands.py SERVER [--only REGEX] [--elements N] [--rounds N] [--what WORD] [--record]

For each request with a million elements: milliseconds from the request to the end of its reply, and those of the longest
GET of another client meanwhile; of each the least of all rounds, as other programs only add. --record writes the rows
that were measured into long_commands.txt, from which utils/gen_commands.py takes the times in docs/long-commands.md.
Needs Python 3.9, nothing else."""
import argparse
import multiprocessing
import os
import re
import sys
import time

from keyspace import Server
from slices import drain, neighbour

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from worst_cases import Client, cases, encode  # noqa: E402

TIMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "long_commands.txt")
MARK = b"the-end-of-the-reply"


def measure(client, case, elements, side):
    """ms until the end of the reply, ms of the longest GET beside it."""
    wants, results = side
    client.ask("FLUSHALL")
    case.prepare(client, elements)
    client.ask("SET", "key:1", "value")
    data = encode(*case.request(client, elements)) + encode("ECHO", MARK)
    while client.info("lazyfree_pending_objects", "memory"):
        time.sleep(0.01)
    time.sleep(0.1)
    wants.send(True)
    results.recv()
    time.sleep(0.02)
    began = time.perf_counter()
    client.socket.sendall(data)
    drain([client.socket], MARK + b"\r\n")
    took = time.perf_counter() - began
    wants.send(True)
    longest = results.recv() / 1e6
    client.ask("UNWATCH")
    return took * 1e3, longest


def record(times):
    with open(TIMES, encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    rows.update({name.lower().replace(" ", "|"): f"{took:.1f} {beside:.1f}" for name, (took, beside) in times.items()})
    with open(TIMES, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in head + [f"{name} {row}" for name, row in sorted(rows.items())]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--only", default="")
    parser.add_argument("--what", default="")
    parser.add_argument("--elements", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    times = {}
    with Server(os.path.abspath(options.server)) as server:
        client = Client(server.port)
        wants, other_wants = multiprocessing.Pipe()
        results, other_results = multiprocessing.Pipe()
        side = multiprocessing.Process(target=neighbour, args=(server.port, other_wants, other_results))
        side.start()
        for case in cases():
            if not re.search(options.only, case.name) or options.what not in ("", case.what):
                continue
            rounds = [measure(client, case, options.elements, (wants, results)) for _ in range(options.rounds)]
            took, beside = (min(r[i] for r in rounds) for i in range(2))
            times[case.name] = took, beside
            print(f"{case.name:24} {case.what:10} {took:9.1f} {beside:9.1f}", flush=True)
        wants.send(False)
        side.join()
    if options.record:
        record(times)


if __name__ == "__main__":
    main()

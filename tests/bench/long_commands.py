#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long the worst request of each command takes (src/cmd/spec/README.md).

    tests/bench/long_commands.py SERVER [--only REGEX] [--what WORD] [--elements N] [--rounds N] [--record]

For each request with 100,000 elements: milliseconds of the server's CPU time from the request to the end of its reply,
with what it takes to read the arguments and to send the reply, the least of all rounds. It does not depend on how busy
the machine is. --record writes the rows into long_commands.txt after each command, from which utils/gen_commands.py
takes the times in docs/long-commands.md. What a neighbour notices is measured by slices.py and stalls.py. Needs Python
3.9, nothing else."""
import argparse
import os
import re
import sys
import time

from keyspace import Server, cpu_us
from slices import drain

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from worst_cases import Client, cases, encode  # noqa: E402

TIMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "long_commands.txt")
MARK = b"the-end-of-the-reply"


def measure(server, client, case, elements):
    """ms of CPU until the end of the reply."""
    client.ask("FLUSHALL")
    case.prepare(client, elements)
    data = encode(*case.request(client, elements)) + encode("ECHO", MARK)
    while client.info("lazyfree_pending_objects", "memory"):
        time.sleep(0.01)
    time.sleep(0.1)
    before = cpu_us(server)
    client.socket.sendall(data)
    drain([client.socket], MARK + b"\r\n")
    took = (cpu_us(server) - before) / 1000
    client.ask("UNWATCH")
    return took


def record(times):
    with open(TIMES, encoding="utf-8") as file:
        lines = file.read().splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    rows.update({name.lower().replace(" ", "|"): f"{took:.1f}" for name, took in times.items()})
    with open(TIMES, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in head + [f"{name} {row}" for name, row in sorted(rows.items())]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--only", default="")
    parser.add_argument("--what", default="")
    parser.add_argument("--elements", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with Server(os.path.abspath(options.server)) as server:
        client = Client(server.port)
        for case in cases():
            if not re.search(options.only, case.name) or options.what not in ("", case.what):
                continue
            took = min(measure(server, client, case, options.elements) for _ in range(options.rounds))
            print(f"{case.name:24} {case.what:10} {took:9.1f}", flush=True)
            if options.record:
                record({case.name: took})


if __name__ == "__main__":
    main()

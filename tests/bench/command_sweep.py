#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""CPU time of a request at pipeline 16 for each command, on two servers in one run: which are behind?

    tests/bench/command_sweep.py OURS PEER [--only REGEX] [--rounds N] [--least F]

command_sweep.txt has the rows. Prints a line a row while it measures, then the geometric mean of peer/ours and the rows
below --least (default 1.2); exits with 1 if there are any. Rounds alternate between the servers, the least of each
counts: other programs only ever add. `make gate` builds the load generator. Needs Python 3.9, nothing else."""
import argparse
import math
import os
import re
import sys

from beside import load
from keyspace import Server, cpu_us, request

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "command_sweep.txt")
PROBE, LEAST, MOST = 160, 320, 200000  # requests
ROUND_US = 300000  # of CPU of the server
NAME = "%012d"
# Elements of a collection, the suffix of its kind, how many there are of it.
SIZES = ((8, "s", 200), (100, "m", 200), (2000, "l", 5), (100000, "h", 1))


def collections(size, suffix, number):
    """Commands that make collection `number` of the size, at most 2,000 elements each."""
    for at in range(0, size, 2000):
        part = range(at, min(at + 2000, size))
        key = suffix + ":" + NAME % number
        yield ["HSET", "h" + key, *(w for i in part for w in ("f:" + NAME % i, f"value:{i}"))]
        yield ["SADD", "s" + key, *("m:" + NAME % i for i in part)]
        yield ["SADD", "si" + key, *(i * 3 for i in part)]
        yield ["ZADD", "z" + key, *(w for i in part for w in (i * 1.5, "m:" + NAME % i))]
        yield ["RPUSH", "l" + key, *("e:" + NAME % i for i in part)]
    for i in range(size):
        yield ["XADD", "x" + key, f"{i + 1}-1", "f", f"v{i}", "g", "w"]
    yield ["XGROUP", "CREATE", "x" + key, "g", "0"]


def content():
    for i in range(2000):
        yield ["SET", "str:" + NAME % i, "v" * 60]
        yield ["SET", "int:" + NAME % i, i]
        yield ["SET", "bits:" + NAME % i, "x" * 200]
    for size, suffix, count in SIZES:
        for number in range(count):
            yield from collections(size, suffix, number)
    for i in range(200):
        yield ["PFADD", "hll:" + NAME % i, *range(50)]
    for i in range(20):
        yield ["GEOADD", "geo:" + NAME % i, *(w for n in range(500)
               for w in (13 + n * 7919 % 1000 / 500, 38 + n * 104729 % 1000 / 500, f"p{n}"))]
    yield ["FUNCTION", "LOAD", '#!lua name=lib\nserver.register_function("f", function(k) return server.call("GET", k[1]) end)']


def rows():
    with open(ROWS, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                count, text = line.rstrip("\n").split(None, 1)
                yield int(count), text.replace("\\t", "\t")


def refused(server, text):
    """The error with which the server answers the request, or None: errors would be measured as if they were replies."""
    words = [re.sub("%[rn]", NAME % 0, word) for word in text.split(" ")]
    try:
        server.ask(*(word.replace("%a", "x" * 16) for word in words))
    except RuntimeError as error:
        return str(error)
    return None


def price(server, keys, text, requests):
    before = cpu_us(server)
    load([server], text, "-P", 16, "-c", 20, "-r", keys, "-n", requests)
    return (cpu_us(server) - before) / requests


def measure(servers, keys, text, rounds):
    """Microseconds of CPU a request of each server."""
    costs = [[] for _ in servers]
    dearest = max(price(s, keys, text, PROBE) for s in servers)
    count = min(MOST, max(LEAST, int(ROUND_US / max(dearest, 0.01))))  # the same, so that they keep the same data
    for _ in range(rounds):
        for cost, server in zip(costs, servers):
            cost.append(price(server, keys, text, count))
    return [min(cost) for cost in costs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=1.2)
    options = parser.parse_args()
    ratios = []
    with Server(options.ours) as ours, Server(options.peer) as peer:
        servers = (ours, peer)
        filling = [request(*words) for words in content()]
        for s in servers:
            s.send([r for r in filling if b"FUNCTION" not in r])
            s.ask("FUNCTION", "LOAD", list(content())[-1][2])
        for keys, text in rows():
            if not re.search(options.only, text):
                continue
            errors = [refused(s, text) for s in servers]
            if any(errors):
                print(f"{text:70} refused: {errors}", flush=True)
                continue
            mine, other = measure(servers, keys, text, options.rounds)
            ratios.append((other / mine, text))
            print(f"{text[:70]:70} {mine:10.3f} {other:10.3f} us  {other / mine:5.2f}", flush=True)
    if not ratios:
        sys.exit("no row was measured")
    mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
    behind = sorted(row for row in ratios if row[0] < options.least)
    print(f"{len(ratios)} rows, geometric mean {mean:.2f}, {len(behind)} below {options.least}")
    for ratio, text in behind:
        print(f"  {ratio:5.2f}  {text}")
    sys.exit(1 if behind else 0)


if __name__ == "__main__":
    main()

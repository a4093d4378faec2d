#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The names of vector sets in a replica that skips their values.

    skipped_values.py OURS PEER [--rounds N] [--seed N]

PEER is a Redis from 8.0 on, OURS its replica with foreign-values skip. Random commands about vector sets and other keys, a part of them in
transactions, run on PEER; after each hundred the replica must have the same keys of the same types, and no command may have failed there. Vector
sets that were loaded keep elements that no command removes, as their names stay without them. Ends with "N passed, N failed"."""
import argparse
import random
import sys
import time

from servers import Server

KEYS, LOADED = [f"key{i}" for i in range(8)], [f"loaded{i}" for i in range(3)]


def wait_for(condition, what):
    end = time.time() + 60
    while not condition():
        if time.time() > end:
            raise RuntimeError(what)
        time.sleep(0.01)


def add(rng, key):
    vector = rng.choice([["VALUES", 2, rng.random(), rng.random()], ["REDUCE", 1, "VALUES", 2, rng.random(), 1], ["FP32", b"\0\0\x80\x3f" * 2]])
    return ["VADD", key, *vector, f"element{rng.randrange(4)}", *rng.choice([[], ["SETATTR", "{}"], ["Q8"], ["NOQUANT"]])]


def one(rng):
    key, other = rng.choice(KEYS + LOADED), rng.choice(KEYS + LOADED)
    return rng.choice([add(rng, key)] * 5 + [["VREM", key, f"element{rng.randrange(4)}"]] * 5 + [
        ["RENAME", key, other], ["RENAMENX", key, other], ["COPY", key, other], ["COPY", key, other, "REPLACE"], ["DEL", key],
        ["SET", key, "text"], ["SET", key, "text", "NX"], ["EXPIRE", key, 1000], ["PERSIST", key], ["VSETATTR", key, "element1", "{}"]])


def types(client):
    return {key: client("TYPE", key) for key in sorted(client("KEYS", "*"))}


def compare(source, target, mark):
    source("SET", "mark", mark)
    wait_for(lambda: target("GET", "mark") == str(mark).encode(), "a write does not arrive")
    there, here = types(source), types(target)
    return [f"{key}: {there.get(key)} there, {here.get(key)} here" for key in {**there, **here} if there.get(key) != here.get(key)]


def run(source, target, options):
    rng, found = random.Random(options.seed), []
    for key in LOADED:
        source.client("VADD", key, "VALUES", 2, 1, 2, "stays")
    target.client("REPLICAOF", "127.0.0.1", source.port)
    wait_for(lambda: target.info("replication")["master_link_status"] == "up", "no synchronisation")
    for number in range(options.rounds):
        for _ in range(100):
            words = [one(rng) for _ in range(rng.randrange(1, 5))]
            for request in [["MULTI"], *words, ["EXEC"]] if rng.random() < 0.2 else words:
                source.client(*request)
        found += [f"round {number}: {text}" for text in compare(source.client, target.client, number)]
    if target.info("replication")["master_stream_errors"] != "0":
        found.append("commands failed at the replica: " + target.last_lines())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    options = parser.parse_args()
    print("seed", options.seed)
    servers = []
    try:
        servers.append(Server(options.peer))
        servers.append(Server(options.ours, "--foreign-values", "skip"))
        found = run(*servers, options)
    finally:
        for server in servers:
            server.stop()
    print("\n".join(found))
    print("%d passed, %d failed" % (not found, bool(found)))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

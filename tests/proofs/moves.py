#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Slots with values of all types move from one server to another one and back: every key has the
same value and expiry times afterwards, and the source has none.

    tests/proofs/moves.py [--server PROGRAM] [--peer PROGRAM] [--rounds N] [--seed N]

With --peer one of the two nodes is the peer: each direction is a move between different programs."""
import argparse
import random
import sys
import time
from pathlib import Path

from lab import Client, Failed, Lab, ReplyError
from load import SLOTS

ROOT = Path(__file__).resolve().parents[2]
FAR_MS = 4102444800000  # the year 2100


def values(rng, key):
    """Commands that make a key of some type."""
    many = [f"m{rng.randrange(10**6)}" for _ in range(rng.choice([3, 40, 700]))]
    kind = rng.randrange(9)
    if kind == 0:
        commands = [("SET", key, rng.choice(["1", "text", "x" * rng.choice([100, 20000])]))]
    elif kind == 1:
        commands = [("RPUSH", key, *many)]
    elif kind == 2:
        commands = [("SADD", key, *many)]
    elif kind == 3:
        commands = [("SADD", key, *range(rng.choice([5, 900])))]
    elif kind == 4:
        commands = [("ZADD", key, *[w for m in many for w in (rng.uniform(-9, 9), m)])]
    elif kind == 5:
        commands = [("HSET", key, *[w for m in many for w in (m, m)])]
    elif kind == 6:
        commands = [("HSET", key, *[w for m in many for w in (m, m)]),
                    ("HPEXPIREAT", key, FAR_MS, "FIELDS", 2, *many[:2])]
    elif kind == 7:
        commands = [("XADD", key, f"{i + 1}-1", "field", m) for i, m in enumerate(many)]
        commands += [("XGROUP", "CREATE", key, "group", "0"),
                     ("XREADGROUP", "GROUP", "group", "reader", "COUNT", 2, "STREAMS", key, ">")]
    else:
        commands = [("PFADD", key, *many)]
    if rng.random() < 0.3:
        commands.append(("PEXPIREAT", key, FAR_MS + rng.randrange(10**6)))
    return commands


def fill(client, rng, databases):
    for db in range(databases):
        client.call("SELECT", db)
        for i in range(500):
            for command in values(rng, f"key:{db}:{i}"):
                client.call(*command)


def contents(node, databases):
    """By database and key: type, value and expiry times; elements without an order are sorted."""
    client, found = Client(node.address, 10), {}
    try:
        for db in range(databases):
            client.call("SELECT", db)
            for key in client.call("KEYS", "*"):
                kind = client.call("TYPE", key)
                words = {"set": [("SMEMBERS", key)], "hash": [("HGETALL", key)],
                         "list": [("LRANGE", key, 0, -1)], "string": [("GET", key)],
                         "zset": [("ZRANGE", key, 0, -1, "WITHSCORES")],
                         "stream": [("XRANGE", key, "-", "+"), ("XINFO", "GROUPS", key),
                                    ("XPENDING", key, "group")]}[kind]
                replies = client.pipeline(words)
                if kind == "set":
                    replies = sorted(replies[0])
                elif kind == "hash":
                    fields = replies[0][::2]
                    times = client.call("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
                    replies = sorted(zip(fields, replies[0][1::2], times))
                found[db, key] = (kind, replies, client.call("PEXPIRETIME", key))
    finally:
        client.close()
    return found


def move(lab, source, target):
    source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, SLOTS - 1, "NODE", target.id())

    def ended():
        job = source.call("CLUSTER", "GETSLOTMIGRATIONS")[0]
        state = dict(zip(job[::2], job[1::2]))
        if state["state"] in ("failed", "canceled"):
            raise Failed(f"the move has {state['state']}: {state['message']}")
        return state["state"] == "success"

    lab.wait(ended, 60, "the move")
    lab.wait(lambda: source.call("DBSIZE") == 0, 30, "the source without keys")


def run_round(args, seed):
    rng = random.Random(seed)
    options = ["--cluster-databases", "4", "--cluster-allow-replica-migration", "no"]
    lab = Lab("moves", 5000, False, options)
    try:
        nodes = [lab.add(args.server), lab.add(args.peer or args.server)]
        if rng.random() < 0.5:
            nodes.reverse()
        first, second = nodes
        first.call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        second.call("CLUSTER", "MEET", *first.address)
        lab.wait(lambda: all(n.info()["cluster_state"] == "ok" and len(n.nodes()) == 2
                             for n in nodes), 30, "meeting")
        client = Client(first.address, 10)
        fill(client, rng, 4)
        client.close()
        before = contents(first, 4)
        for source, target in [(first, second), (second, first)]:
            begin = time.monotonic()
            move(lab, source, target)
            after = contents(target, 4)
            wrong = [k for k in before.keys() | after.keys() if before.get(k) != after.get(k)]
            if wrong:
                raise Failed(f"{len(wrong)} of {len(before)} keys differ: {sorted(wrong)[:3]}; {lab.folder}")
            print(f"ok  seed {seed}: {len(after)} keys, {source.binary} to {target.binary}, "
                  f"{time.monotonic() - begin:.1f} s", flush=True)
    finally:
        lab.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(ROOT / "build/release/valkey-server"))
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    failed = 0
    for seed in range(args.seed, args.seed + args.rounds):
        try:
            run_round(args, seed)
        except (Failed, OSError, ReplyError) as error:
            failed += 1
            print(f"FAILED  seed {seed}: {type(error).__name__} {error}", flush=True)
    print(f"{args.rounds - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

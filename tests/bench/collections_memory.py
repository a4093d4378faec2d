#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of small collections with value-compression no and idle, beside another server.

    tests/bench/collections_memory.py OURS PEER [--only KIND,...] [--keys N]

OURS and PEER are server binaries; they run on free ports without persistence and hold the same keys, `KIND:NUMBER`: hashes of 6 fields, lists
and sets of 12 members, sorted sets of 12 members with times as scores, sets of 40 numbers; or one hash whose fields are sessions in JSON (kind
`field`: per field, in place of per key, and its length in place of one element). For each kind: bytes per key (used_memory over that of
the empty server, dictionaries included), its part of PEER's, CPU microseconds of the server per write, per read of the whole value and of one
element, of random keys at pipeline 100, and seconds until the values are compressed, with value-compression-cpu 50 and
value-compression-idle-seconds 1. Nothing is read for the second time: all reads of `idle` are cold. Needs Python 3.9, nothing else."""
import argparse
import os
import random

from keyspace import Server, request
from values import COUNTRIES, WORDS, date, digits, sessions, words
from values_memory import cpu_of, settle, used

DIFFERENT = 50000
READS = 20000


def hash6(r, number):
    return ("name", f"{r.choice(WORDS).capitalize()} {r.choice(WORDS).capitalize()}", "email", f"{r.choice(WORDS)}{number}@example.org",
            "country", r.choice(COUNTRIES), "created", date(r), "status", r.choice(("active", "blocked", "new")), "token", digits(r, 24))


def list12(r, number):
    del number
    return tuple(f"{date(r)} {r.choice(WORDS)} {r.choice(('added', 'removed', 'changed'))} {r.randint(1, 99999)}" for _ in range(12))


def set12(r, number):
    del number
    return tuple({f"tag:{words(r, 1, 2)}:{r.randint(1, 999)}" for _ in range(12)})


def zset12(r, number):
    del number
    return sum(((str(1760000000 + r.randint(0, 9999999)), f"user:{r.choice(WORDS)}.{r.choice(WORDS)}") for _ in range(12)), ())


def ints40(r, number):
    return tuple({str(number % 1000 * 1000 + r.randint(1, 99999)) for _ in range(40)})


# Values, how they are written and read: as a whole, one element.
KINDS = {"hash6": (hash6, ("HSET",), ("HGETALL",), ("HGET", "email")), "list12": (list12, ("RPUSH",), ("LRANGE", "0", "-1"), ("LINDEX", "5")),
         "set12": (set12, ("SADD",), ("SMEMBERS",), ("SISMEMBER", "none")), "zset12": (zset12, ("ZADD",), ("ZRANGE", "0", "-1"), ("ZCOUNT", "0", "1")),
         "field": (lambda r, number: (sessions(r, number),), ("HSET",), ("HGET",), ("HSTRLEN",)),
         "ints40": (ints40, ("SADD",), ("SMEMBERS",), ("SISMEMBER", "7"))}


def call(command, kind, number, words_after=()):
    names = ("sessions", f"session:{number}") if kind == "field" else (f"{kind}:{number}",)
    return request(command[0], *names, *command[1:], *words_after)


def measure(binary, kind, stored, keys, mode=None):
    _, write, whole, one = KINDS[kind]
    extra = () if mode is None else ("--value-compression", mode, "--value-compression-idle-seconds", "1", "--value-compression-cpu", "50")
    with Server(binary, extra=extra) as server:
        empty = used(server)
        write_us = 0.0
        for at in range(0, keys, DIFFERENT):
            numbers = range(at, min(at + DIFFERENT, keys))
            write_us += cpu_of(server, [call(write, kind, n, stored[n % len(stored)]) for n in numbers]) * len(numbers) / keys
        seconds = settle(server, keys) if mode == "idle" else 0
        per_key = (used(server) - empty) / keys
        chosen = random.Random(5).sample(range(keys), min(2 * READS, keys))
        us = [cpu_of(server, [call(read, kind, n) for n in numbers])
              for read, numbers in ((whole, chosen[::2]), (one, chosen[1::2]))]
        return per_key, write_us, us[0], us[1], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--keys", type=int, default=300000)
    args = parser.parse_args()
    args.ours, args.peer = os.path.abspath(args.ours), os.path.abspath(args.peer)
    print(f"{args.keys} keys\n{'kind':8} {'server':7} {'bytes/key':>9} {'of peer':>8} {'write us':>9} {'whole us':>9} {'one us':>7} {'seconds':>8}")
    for kind in args.only.split(","):
        r = random.Random(f"{kind} 1")
        stored = [KINDS[kind][0](r, number) for number in range(min(DIFFERENT, args.keys))]
        peer = None
        for name, binary, mode in (("peer", args.peer, None), ("no", args.ours, "no"), ("idle", args.ours, "idle")):
            per_key, write_us, whole_us, one_us, seconds = measure(binary, kind, stored, args.keys, mode)
            peer = peer or per_key
            print(f"{kind:8} {name:7} {per_key:9.1f} {per_key / peer:8.2f} {write_us:9.2f} {whole_us:9.2f} {one_us:7.2f} {seconds:8.1f}", flush=True)


if __name__ == "__main__":
    main()

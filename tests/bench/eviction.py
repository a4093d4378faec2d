#!/usr/bin/env python3
"""Compares which keys eviction keeps, and its cost, in two servers.

    tests/bench/eviction.py OURS PEER [--requests N] [--keys N] [--policy NAME,...] [--limit]

Both servers are a cache in front of N keys with values of 100 bytes: GET, and SET of what was missed. Traces: `zipf`
(exponent 0.99) and `polluted` (the same, and after each 20 requests a run of 10 keys that are asked for once and never
again). maxmemory leaves room for 10 % and 30 % of the keys. Printed: hits in percent of the requests of the trace's own
keys, after a warm-up of a third; CPU microseconds of the server a request.

With --limit: SETs of new keys (values of 100 bytes, batches of 100) at the limit under allkeys-lru, where each evicts
one; CPU a request, medians of alternating rounds, with and without a limit."""
import argparse
import bisect
import itertools
import os
import random
import statistics

from keyspace import Server, cpu_us, request

POLICIES = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
            "volatile-ttl")
BATCH = 100
VALUE = b"v" * 100


def zipf(keys, count, rng):
    weights = list(itertools.accumulate(1 / (i + 1) ** 0.99 for i in range(keys)))
    names = list(range(keys))
    rng.shuffle(names)
    return [names[bisect.bisect_left(weights, rng.random() * weights[-1])] for _ in range(count)]


def trace(kind, options):
    rng = random.Random(5)
    own = zipf(options.keys, options.requests, rng)
    if kind == "zipf":
        return own
    out, once = [], options.keys
    for i in range(0, len(own), 20):
        out += own[i:i + 20] + list(range(once, once + 10))
        once += 10
    return out


def set_words(key, policy):
    words = ["SET", f"key:{key:012d}", VALUE]
    return words + ["EX", str(1000 + key % 9000)] if policy.startswith("volatile") else words


def play(binary, numbers, policy, share, options):
    with Server(binary) as s:
        empty = s.used()
        s.send([request(*set_words(key, policy)) for key in range(2000)])
        per_key = (s.used() - empty) / 2000
        s.ask("FLUSHALL")
        s.ask("CONFIG", "SET", "maxmemory-policy", policy)
        s.ask("CONFIG", "SET", "maxmemory", str(int(empty + 200000 + per_key * options.keys * share)))
        hits = asked = 0
        warm = len(numbers) // 3
        cpu = s.cpu()
        for at in range(0, len(numbers), BATCH):
            batch = numbers[at:at + BATCH]
            s.socket.sendall(b"".join(request("GET", f"key:{key:012d}") for key in batch))
            missed = []
            for key in batch:
                hit = s.reply() is not None
                if not hit:
                    missed.append(key)
                if at >= warm and key < options.keys:
                    asked += 1
                    hits += hit
            s.send([request(*set_words(key, policy)) for key in missed])
        return 100 * hits / asked, (s.cpu() - cpu) * 1e6 / len(numbers)


def at_limit(options):
    """SETs of new keys, each of which evicts a key."""
    with Server(options.ours) as ours, Server(options.peer) as peer:
        results = {}
        number = 0
        for limited in (False, True):
            if limited:
                for s in (ours, peer):
                    s.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
                    s.ask("CONFIG", "SET", "maxmemory", str(s.used()))
            for _ in range(12):
                batches = [b"".join(request("SET", f"key:{i:012d}", VALUE) for i in range(at, at + BATCH))
                           for at in range(number, number + 50000, BATCH)]
                number += 50000
                for name, s in (("ours", ours), ("peer", peer)):
                    cpu = cpu_us(s)
                    for batch in batches:
                        s.socket.sendall(batch)
                        for _ in range(BATCH):
                            s.reply()
                    results.setdefault((limited, name), []).append((cpu_us(s) - cpu) / 50000)
    for limited in (False, True):
        ours_us, peer_us = (statistics.median(results[limited, name][4:]) for name in ("ours", "peer"))
        print(f"{'at the limit' if limited else 'no limit':14} ours {ours_us:.3f} us, peer {peer_us:.3f} us, "
              f"peer/ours {peer_us / ours_us:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--requests", type=int, default=600000)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--policy", default=",".join(POLICIES))
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    if options.limit:
        at_limit(options)
        return
    print(f"{'policy':17}{'trace':10}{'room':>5}   hits %: ours   peer   diff   us a request: ours   peer")
    for kind in ("zipf", "polluted"):
        numbers = trace(kind, options)
        for policy, share in itertools.product(options.policy.split(","), (0.1, 0.3)):
            ours, ours_us = play(options.ours, numbers, policy, share, options)
            peer, peer_us = play(options.peer, numbers, policy, share, options)
            print(f"{policy:17}{kind:10}{share:5.0%}{ours:15.2f}{peer:7.2f}{ours - peer:+7.2f}"
                  f"{ours_us:21.2f}{peer_us:7.2f}", flush=True)


if __name__ == "__main__":
    main()

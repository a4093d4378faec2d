#!/usr/bin/env python3
"""Compares many small hashes that share their field names in two servers: memory, commands, loading.

    tests/bench/records.py OURS PEER [--only NAME,...] [--scale F] [--rounds N] [--base BINARY]

OURS and PEER are server binaries; both run on free ports without persistence, and hold the same 300,000 hashes, made by
one HSET each (`stepwise`: by one HSET a field). Kinds:

  6 fields    names and values of 8 bytes
  20 fields   the same
  51 fields   names of 13 bytes, values of 8
  mixed       10 schemas of applications with optional fields
  stepwise    6 fields, set one by one
  random      6 fields whose names nobody shares

For each: bytes per hash (used_memory over that of the empty server), ours without shapes (hash-max-shapes 0), and OURS/PEER.
For `6 fields`, `20 fields` and `51 fields` also CPU microseconds of the server process per request at pipeline 100, the median of the
rounds: HGET of the middle field, HMGET of 6, HGETALL, HSET of one field, HSET of a new record. For all of them
seconds of CPU to save the hashes to an RDB file, and to load them. --base: another binary of this project, to compare with. --scale multiplies the number
of hashes. Needs Python 3.9, nothing else."""
import argparse
import os
import random
import statistics

from keyspace import Server, request

HASHES = 300000
PIPELINE = 100
REQUESTS = 20000

SCHEMAS = {
    "user": ("id name email created status", "phone avatar locale last_login"),
    "session": ("token user_id created_at expires_at ip", "user_agent device"),
    "product": ("sku title price currency stock category", "discount brand weight color"),
    "order": ("order_id customer_id total currency status placed_at", "coupon shipped_at note"),
    "address": ("street city postcode country", "state company"),
    "event": ("type source timestamp severity host", "trace_id span_id"),
    "device": ("serial model firmware battery last_seen", "latitude longitude"),
    "invoice": ("number issued_at due_at amount tax customer", "paid_at reference"),
    "message": ("from to subject sent_at folder", "reply_to attachment read_at"),
    "cart": ("owner items_count subtotal updated_at", "voucher gift"),
}


def even(fields, width):
    names = [("f%0*d" % (width - 1, i)).encode() for i in range(fields)]
    return lambda rng, i: [(n, b"%08x" % rng.getrandbits(32)) for n in names]


def mixed(rng, _):
    needed, optional = rng.choice(list(SCHEMAS.values()))
    names = needed.split() + [n for n in optional.split() if rng.random() < 0.5]
    return [(n, "%x" % rng.getrandbits(rng.choice((8, 16, 32, 48)))) for n in names]


def random_names(rng, _):
    return [(b"%08x" % rng.getrandbits(32), b"%08x" % rng.getrandbits(32)) for _ in range(6)]


KINDS = {"6 fields": even(6, 8), "20 fields": even(20, 8), "51 fields": even(51, 13), "mixed": mixed,
         "stepwise": even(6, 8), "random": random_names}
TIMED = ("6 fields", "20 fields", "51 fields")


def key(i):
    return "record:%09d" % i


def requests_of(kind, count):
    rng = random.Random(kind)
    for i in range(count):
        pairs = KINDS[kind](rng, i)
        if kind == "stepwise":
            for name, value in pairs:
                yield request("HSET", key(i), name, value)
        else:
            yield request("HSET", key(i), *[w for pair in pairs for w in pair])


def fill(server, kind, count):
    batch = []
    for one in requests_of(kind, count):
        batch.append(one)
        if len(batch) == 1000:
            server.pass_over(b"".join(batch))
            batch = []
    server.pass_over(b"".join(batch))


def cpu_of(server, batches):
    before = server.cpu()
    for batch in batches:
        server.pass_over(batch)
    return server.cpu() - before


def batches_of(make):
    words = [make(i) for i in range(REQUESTS)]
    return [b"".join(request(*w) for w in words[i:i + PIPELINE]) for i in range(0, REQUESTS, PIPELINE)]


def rows_of(kind, count):
    rng = random.Random(7)
    names = [name for name, _ in KINDS[kind](random.Random(1), 0)]
    middle, six = names[len(names) // 2], names[:6]
    some = lambda: key(rng.randrange(count))  # noqa: E731
    record = lambda i: [w for n in names for w in (n, b"%08x" % rng.getrandbits(32))]  # noqa: E731
    return {
        "HGET": lambda i: ("HGET", some(), middle),
        "HMGET of 6": lambda i: ("HMGET", some(), *six),
        "HGETALL": lambda i: ("HGETALL", some()),
        "HSET of a field": lambda i: ("HSET", some(), middle, b"%08x" % rng.getrandbits(32)),
        "HSET of a record": lambda i: ("HSET", "new:%d" % i, *record(i)),
    }


def time_rows(servers, kind, count, options):
    for name, make in rows_of(kind, count).items():
        batches = batches_of(make)
        costs = {which: [] for which in servers}
        for _ in range(options.rounds):
            for which, server in servers.items():
                repeats = 10
                spent = 0
                for _ in range(repeats):
                    spent += cpu_of(server, batches)
                    if name == "HSET of a record":
                        server.pass_over(b"".join(request("DEL", "new:%d" % i) for i in range(REQUESTS)))
                costs[which].append(spent / repeats / REQUESTS * 1e6)
        middle = {which: statistics.median(c) for which, c in costs.items()}
        print(f"    {name:18}" + "".join(f" {which} {us:.3f} us" for which, us in middle.items()), flush=True)


def time_files(servers, rounds):
    costs = {name: {which: [] for which in servers} for name in ("save", "load")}
    for _ in range(rounds):
        for which, server in servers.items():
            for name, words in (("save", ("SAVE",)), ("load", ("DEBUG", "RELOAD", "NOSAVE"))):
                before = server.cpu()
                server.ask(*words)
                costs[name][which].append(server.cpu() - before)
    for name, of_name in costs.items():
        print(f"    {name:18}" + "".join(f" {which} {statistics.median(c):.2f} s" for which, c in of_name.items()), flush=True)


def run_kind(kind, options):
    count = int(HASHES * options.scale)
    binaries = {"ours": (options.ours, ()), "plain": (options.ours, ("--hash-max-shapes", "0")), "peer": (options.peer, ())}
    if options.base:
        binaries["base"] = (options.base, ())
    servers, sizes = {}, {}
    try:
        for which, (binary, extra) in binaries.items():
            server = servers[which] = Server(binary, extra=extra)
            start = server.used()
            fill(server, kind, count)
            sizes[which] = (server.used() - start) / count
        print(f"{kind:10}" + "".join(f"  {which} {size:.1f} B" for which, size in sizes.items()) +
              f"  ours/peer {sizes['ours'] / sizes['peer']:.2f}  plain/peer {sizes['plain'] / sizes['peer']:.2f}", flush=True)
        if kind in TIMED and options.rounds:
            time_rows(servers, kind, count, options)
        if options.rounds:
            time_files(servers, options.rounds)
    finally:
        for server in servers.values():
            server.__exit__()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--base")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in ("ours", "peer", "base"):
        path = getattr(options, name)
        setattr(options, name, path and os.path.abspath(path))
    for kind in options.only.split(","):
        run_kind(kind, options)


if __name__ == "__main__":
    main()

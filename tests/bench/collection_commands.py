#!/usr/bin/env python3
"""Compares the cost of commands on sorted sets, geo indexes, bitmaps, HyperLogLogs and SORT in two servers.

    tests/bench/collection_commands.py OURS PEER [--only NAME,...] [--rounds N] [--scale F]

OURS and PEER are server binaries; both run at the same time on free ports without persistence, hold the same data, and
get the same batches of 16 requests in alternating rounds. A row is CPU microseconds of the server process per request,
the median of the rounds, and PEER/OURS: 1 and more means that ours is not slower. --only takes parts of names.

Two rows stand apart: `ordered` (ZADD of new members to one sorted set of 1 M, ZRANK and ZREM of random ones), and
`field-ttl` (1 M fields with a time in one hash, and 1 M hashes with one such field: CPU and memory to make them, and
until the last one has gone, and how late that was).

--scale multiplies the counts of requests (and of the fields). Needs Python 3.9, nothing else."""
import argparse
import os
import random
import statistics
import time

from keyspace import Server, cpu_us, request

PIPELINE = 16


def run(server, requests):
    for i in range(0, len(requests), PIPELINE):
        server.pass_over(b"".join(requests[i:i + PIPELINE]))


# ---------------------------------------------------------------- rows

def member(i):
    return "member:%07d" % i


def load_pairs(server, key, count, score):
    rng = random.Random(1)
    for i in range(0, count, 500):
        pairs = [x for j in range(i, min(count, i + 500)) for x in (score(rng, j), member(j))]
        server.ask("ZADD", key, *pairs)


def fill(server):
    """The data all rows read."""
    load_pairs(server, "z", 100000, lambda rng, j: rng.randrange(1 << 30))
    load_pairs(server, "small", 100, lambda rng, j: j)
    for k, low in (("u1", 0), ("u2", 5000)):
        for i in range(low, low + 10000, 500):
            server.ask("ZADD", k, *[x for j in range(i, i + 500) for x in (j, member(j))])
    rng = random.Random(2)
    for i in range(0, 100000, 500):
        server.ask("GEOADD", "geo", *[x for j in range(i, i + 500)
                                      for x in ("%.6f" % rng.uniform(5, 15), "%.6f" % rng.uniform(45, 55), member(j))])
    for k in ("b1", "b2", "b3"):
        server.ask("SET", k, random.Random(k).randbytes(1 << 20))
    for k, low in (("h1", 0), ("h2", 30000)):
        for i in range(low, low + 50000, 500):
            server.ask("PFADD", k, *[member(j) for j in range(i, i + 500)])
    rng = random.Random(3)
    numbers = [rng.randrange(1 << 30) for _ in range(10000)]
    for i in range(0, len(numbers), 500):
        server.ask("RPUSH", "numbers", *numbers[i:i + 500])
        server.ask("RPUSH", "words", *["w%x" % n for n in numbers[i:i + 500]])
    ids = list(range(1000))
    rng.shuffle(ids)
    server.ask("RPUSH", "ids", *ids)
    for i in ids:
        server.ask("SET", "weight_%d" % i, rng.randrange(1 << 20))
        server.ask("HSET", "object_%d" % i, "name", "n%d" % i, "weight", rng.randrange(1 << 20))


def fill_streams(server):
    for key in ("stream", "pending", "deleted", "trimmed", "read"):
        for i in range(0, 100000, 500):
            run(server, [request("XADD", key, "%d-1" % (i + j + 1), "field", "value:%d" % j) for j in range(500)])
        server.ask("XGROUP", "CREATE", key, "group", 0)
    server.ask("XREADGROUP", "GROUP", "group", "consumer", "STREAMS", "pending", ">")


def area(rng, radius):
    return ("FROMLONLAT", "%.4f" % rng.uniform(6, 14), "%.4f" % rng.uniform(46, 54), "BYRADIUS", radius, "km")


# name, requests per round, function that returns the words of request number i
ROWS = [
    ("ZADD new", 20000, lambda rng, i: ("ZADD", "zn%d" % rng.randrange(10), rng.random(), "n%d" % rng.getrandbits(40))),
    ("ZADD same member", 20000, lambda rng, i: ("ZADD", "z", rng.randrange(1 << 30), member(rng.randrange(100000)))),
    ("ZINCRBY", 20000, lambda rng, i: ("ZINCRBY", "z", 1, member(rng.randrange(100000)))),
    ("ZSCORE", 20000, lambda rng, i: ("ZSCORE", "z", member(rng.randrange(100000)))),
    ("ZRANK", 20000, lambda rng, i: ("ZRANK", "z", member(rng.randrange(100000)))),
    ("ZRANK small", 20000, lambda rng, i: ("ZRANK", "small", member(rng.randrange(100)))),
    ("ZRANGE 100", 8000, lambda rng, i: ("ZRANGE", "z", *(lambda at: (at, at + 99))(rng.randrange(99000)))),
    ("ZRANGE 100 WITHSCORES", 4000,
     lambda rng, i: ("ZRANGE", "z", *(lambda at: (at, at + 99))(rng.randrange(99000)), "WITHSCORES")),
    ("ZRANGEBYSCORE 100", 8000,
     lambda rng, i: ("ZRANGEBYSCORE", "z", rng.randrange(1 << 29), "+inf", "LIMIT", 0, 100)),
    ("ZREM+ZADD", 20000, lambda rng, i: ("ZREM", "z", member(i // 2 % 100000)) if i % 2 == 0
     else ("ZADD", "z", rng.randrange(1 << 30), member(i // 2 % 100000))),
    ("ZUNIONSTORE 2x10k", 16, lambda rng, i: ("ZUNIONSTORE", "d", 2, "u1", "u2")),
    ("ZINTERSTORE 2x10k", 32, lambda rng, i: ("ZINTERSTORE", "d", 2, "u1", "u2")),
    ("ZINTER 2x10k", 32, lambda rng, i: ("ZINTER", 2, "u1", "u2")),
    ("ZINTERCARD 2x10k", 32, lambda rng, i: ("ZINTERCARD", 2, "u1", "u2")),
    ("ZDIFFSTORE 2x10k", 32, lambda rng, i: ("ZDIFFSTORE", "d", 2, "u1", "u2")),
    ("ZRANGESTORE 5k", 32, lambda rng, i: ("ZRANGESTORE", "d", "u1", 0, 4999)),
    ("GEOADD", 20000, lambda rng, i: ("GEOADD", "g%d" % rng.randrange(10), "%.5f" % rng.uniform(-90, 90),
                                      "%.5f" % rng.uniform(-80, 80), "n%d" % rng.getrandbits(30))),
    ("GEODIST", 20000,
     lambda rng, i: ("GEODIST", "geo", member(rng.randrange(100000)), member(rng.randrange(100000)))),
    ("GEOPOS", 20000, lambda rng, i: ("GEOPOS", "geo", member(rng.randrange(100000)))),
    ("GEOHASH", 20000, lambda rng, i: ("GEOHASH", "geo", member(rng.randrange(100000)))),
    ("GEOSEARCH 10 km", 4000, lambda rng, i: ("GEOSEARCH", "geo", *area(rng, 10))),
    ("GEOSEARCH 50 km", 600, lambda rng, i: ("GEOSEARCH", "geo", *area(rng, 50))),
    ("GEOSEARCH 50 km ASC WITHDIST WITHCOORD", 320,
     lambda rng, i: ("GEOSEARCH", "geo", *area(rng, 50), "ASC", "WITHDIST", "WITHCOORD")),
    ("GEOSEARCH nearest 10", 600, lambda rng, i: ("GEOSEARCH", "geo", *area(rng, 50), "COUNT", 10)),
    ("GEOSEARCH box", 600, lambda rng, i: ("GEOSEARCH", "geo", *area(rng, 50)[:3], "BYBOX", 80, 80, "km")),
    ("BITCOUNT 1 MB", 640, lambda rng, i: ("BITCOUNT", "b1")),
    ("BITCOUNT 16 KB", 20000, lambda rng, i: ("BITCOUNT", "b1", 0, 16383)),
    ("BITPOS 1 MB", 640, lambda rng, i: ("BITPOS", "zeros", 1)),
    ("BITOP AND 1 MB", 320, lambda rng, i: ("BITOP", "AND", "bd", "b1", "b2", "b3")),
    ("BITOP OR 1 MB", 320, lambda rng, i: ("BITOP", "OR", "bd", "b1", "b2", "b3")),
    ("BITOP XOR 1 MB", 320, lambda rng, i: ("BITOP", "XOR", "bd", "b1", "b2", "b3")),
    ("BITOP NOT 1 MB", 320, lambda rng, i: ("BITOP", "NOT", "bd", "b1")),
    ("PFADD", 20000, lambda rng, i: ("PFADD", "h1", "n%d" % rng.getrandbits(40))),
    ("PFADD sparse", 20000, lambda rng, i: ("PFADD", "s%d" % rng.randrange(1000), "n%d" % rng.getrandbits(40))),
    ("PFCOUNT after PFADD", 2000, lambda rng, i: ("PFCOUNT", "h1") if i % 2 else ("PFADD", "h1", "n%d" % rng.getrandbits(50))),
    ("PFCOUNT kept", 20000, lambda rng, i: ("PFCOUNT", "h2")),
    ("PFCOUNT two keys", 1000, lambda rng, i: ("PFCOUNT", "h1", "h2")),
    ("PFMERGE", 1000, lambda rng, i: ("PFMERGE", "hd", "h1", "h2")),
    ("DUMP", 20000, lambda rng, i: ("DUMP", "weight_%d" % rng.randrange(1000))),
    ("SCAN MATCH COUNT 100", 8000, lambda rng, i: ("SCAN", 0, "MATCH", "weight_1*", "COUNT", 100)),
    ("XADD", 20000, lambda rng, i: ("XADD", "xn", "*", "field", "value:%d" % i)),
    ("XADD 10 fields", 20000, lambda rng, i: ("XADD", "xw", "*", *[x for f in range(10) for x in ("field%d" % f, "value:%d" % i)])),
    ("XADD MAXLEN ~ 1000", 20000, lambda rng, i: ("XADD", "xm", "MAXLEN", "~", 1000, "*", "field", "value:%d" % i)),
    ("XRANGE COUNT 100", 3000, lambda rng, i: ("XRANGE", "stream", rng.randrange(99000), "+", "COUNT", 100)),
    ("XREVRANGE COUNT 1", 20000, lambda rng, i: ("XREVRANGE", "stream", "+", "-", "COUNT", 1)),
    ("XREAD of the last entry", 20000, lambda rng, i: ("XREAD", "COUNT", 1, "STREAMS", "stream", "99999-1")),
    ("XREADGROUP+XACK", 20000, lambda rng, i: ("XREADGROUP", "GROUP", "group", "c%d" % (i // 2 % 10), "COUNT", 1, "STREAMS", "read", ">")
     if i % 2 == 0 else ("XACK", "read", "group", "%d-1" % (i // 2 + 1))),
    ("XAUTOCLAIM COUNT 10", 3000,
     lambda rng, i: ("XAUTOCLAIM", "pending", "group", "c%d" % (i % 3), 0, rng.randrange(90000), "COUNT", 10, "JUSTID")),
    ("XPENDING 10", 10000, lambda rng, i: ("XPENDING", "pending", "group", rng.randrange(90000), "+", 10)),
    ("XDEL", 20000, lambda rng, i: ("XDEL", "deleted", "%d-1" % (rng.randrange(100000) + 1))),
    ("XTRIM MAXLEN ~", 20000, lambda rng, i: ("XTRIM", "trimmed", "MAXLEN", "~", 100000 - i)),
    ("SORT 10k numbers", 32, lambda rng, i: ("SORT", "numbers")),
    ("SORT 10k ALPHA", 32, lambda rng, i: ("SORT", "words", "ALPHA")),
    ("SORT 10k LIMIT 10", 64, lambda rng, i: ("SORT", "numbers", "LIMIT", 0, 10)),
    ("SORT 1k BY GET", 160, lambda rng, i: ("SORT", "ids", "BY", "weight_*", "GET", "object_*->name", "GET", "#")),
    ("SORT 10k STORE", 32, lambda rng, i: ("SORT", "numbers", "STORE", "d")),
]


def wanted(name, only):
    return not only or any(part.lower() in name.lower() for part in only)


def rows(servers, options):
    for server in servers:
        fill(server)
        fill_streams(server)
        server.ask("SETBIT", "zeros", (1 << 23) - 1, 1)
    products = []
    for name, count, make in ROWS:
        if not wanted(name, options.only):
            continue
        count = max(PIPELINE, int(count * options.scale))
        spent = [[], []]
        for turn in range(options.rounds):
            rng = random.Random(turn)
            requests = [request(*make(rng, i)) for i in range(count)]
            for index in ((0, 1) if turn % 2 == 0 else (1, 0)):
                begin = cpu_us(servers[index])
                run(servers[index], requests)
                spent[index].append((cpu_us(servers[index]) - begin) / count)
        ours, peer = (statistics.median(s) for s in spent)
        ratio = peer / ours
        products.append(ratio)
        print("%-40s ours %9.2f  peer %9.2f us   peer/ours %5.2f%s"
              % (name, ours, peer, ratio, "" if ratio >= 0.95 else "   SLOWER"), flush=True)
    if products:
        print("geometric mean of %d rows: %.2f" % (len(products), statistics.geometric_mean(products)))


def ordered(servers, options):
    """One sorted set of 1 M members, beside bench_ordered's numbers of the index alone."""
    count = int(1000000 * options.scale)
    ids = list(range(count))
    random.Random(4).shuffle(ids)
    for title, make in (
            ("ZADD, new", lambda i: ("ZADD", "big", (i * 2654435761) % (1 << 32), member(i))),
            ("ZRANK", lambda i: ("ZRANK", "big", member(i))),
            ("ZREM", lambda i: ("ZREM", "big", member(i)))):
        some = ids if title != "ZRANK" else ids[:count // 4]
        spent = []
        for server in servers:
            begin = cpu_us(server)
            for at in range(0, len(some), 20000):
                run(server, [request(*make(i)) for i in some[at:at + 20000]])
            spent.append((cpu_us(server) - begin) / len(some))
        print("ordered %d: %-10s ours %6.2f  peer %6.2f us   peer/ours %.2f"
              % (count, title, *spent, spent[1] / spent[0]), flush=True)


def field_ttl(binaries, options):
    """Fields that all expire at the same time: the cost, and when the last one is removed."""
    count = int(1000000 * options.scale)
    for title in ("one hash", "a hash each"):
        for who, binary in zip(("ours", "peer"), binaries):
            with Server(binary) as server:
                empty = server.used()
                die_at = int(time.time() * 1000) + int(60000 * max(options.scale, 0.1))
                step = 100 if title == "one hash" else 1
                requests = []
                begin = cpu_us(server)
                for i in range(0, count, step):
                    key = "hash" if step > 1 else "hash:%d" % i
                    pairs = [x for j in range(i, i + step) for x in ("field:%07d" % j, "value")]
                    requests.append(request("HSETEX", key, "PXAT", die_at, "FIELDS", step, *pairs))
                    if len(requests) == 10000 // step:
                        run(server, requests)
                        requests.clear()
                run(server, requests)
                made, used = (cpu_us(server) - begin) / 1e6, server.used() - empty
                early = time.time() * 1000 < die_at
                while time.time() * 1000 < die_at:
                    time.sleep(0.01)
                begin = cpu_us(server)
                limit = time.time() + 120
                while time.time() < limit and server.ask("DBSIZE") != b"0":
                    time.sleep(0.02)
                late = time.time() - die_at / 1000
                print("%-12s %s: made in %.2f s CPU%s, %.1f bytes a field; gone %.2f s late, %.2f s CPU"
                      % (title, who, made, "" if early else " (TOO LATE: raise the time)", used / count, late,
                         (cpu_us(server) - begin) / 1e6), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    options.ours, options.peer = os.path.abspath(options.ours), os.path.abspath(options.peer)
    with Server(options.ours) as ours, Server(options.peer) as peer:
        rows([ours, peer], options)
        if wanted("ordered", options.only):
            ordered([ours, peer], options)
    if wanted("field-ttl", options.only):
        field_ttl([options.ours, options.peer], options)


if __name__ == "__main__":
    main()

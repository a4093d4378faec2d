#!/usr/bin/env python3
"""Compares the cost of commands on strings, lists, sets and hashes in two servers.

    tests/bench/request_cost.py OURS PEER [--only WORD] [--rounds N] [--pipeline 1,16,100] [--seconds S]

Both servers get the same data; each row is one command, sent again and again in batches of one connection. Printed are
CPU microseconds of the server process a request (/proc/PID/schedstat), medians of alternating rounds, and the ratio
PEER/OURS: above 1 is better. Rows of commands that cost more than some 20 us run with pipeline 1 alone."""
import argparse
import os
import statistics

from keyspace import Server, cpu_us, request


def names(prefix, first, count):
    return [f"{prefix}:{i}" for i in range(first, first + count)]


def pairs(count):
    return [word for i in range(count) for word in (f"field:{i}", f"value:{i}")]


def prepare(s):
    def many(command, key, words, step=500):
        for at in range(0, len(words), step):
            s.ask(command, key, *words[at:at + step])

    many("SADD", "a", names("member", 0, 10000))
    many("SADD", "b", names("member", 5000, 10000))
    many("SADD", "ints_a", [str(i) for i in range(10000)])
    many("SADD", "ints_b", [str(i) for i in range(5000, 15000)])
    many("SADD", "s1000", names("member", 0, 1000))
    many("SADD", "s100", names("m", 0, 100))
    many("HSET", "h50", pairs(50))
    many("HSET", "h2000", pairs(2000))
    many("RPUSH", "l600", names("element", 0, 600))
    many("RPUSH", "l10000", names("element", 0, 10000))
    for at in range(0, TEXTS, 500):
        s.ask("MSET", *[word for i in range(at, at + 500) for word in (f"text:{i}", "0123456789abcdef")])


TEXTS = 20000
HEAVY, LIGHT = "heavy", "light"
ROWS = [  # name, kind, command of request number i, requests sent before each round
    ("lpush", LIGHT, lambda i: ("LPUSH", "fresh", f"element:{i}"), lambda s: s.ask("DEL", "fresh")),
    ("rpush rpop", LIGHT, lambda i: ("RPUSH", "queue", "element") if i % 2 == 0 else ("RPOP", "queue"), None),
    ("rpop", LIGHT, lambda i: ("RPOP", "full"), lambda s: fill_list(s)),
    ("sadd", LIGHT, lambda i: ("SADD", "fresh", f"member:{i * 7919 % 100003}"), lambda s: s.ask("DEL", "fresh")),
    ("sadd many sets", LIGHT, lambda i: ("SADD", f"set:{i % 20000}", f"m:{i % 7}"), None),
    ("hset", LIGHT, lambda i: ("HSET", "fresh", f"field:{i * 7919 % 100003}", "value"),
     lambda s: s.ask("DEL", "fresh")),
    ("hset many hashes", LIGHT, lambda i: ("HSET", f"hash:{i % 20000}", f"f:{i % 7}", "value"), None),
    ("hget", LIGHT, lambda i: ("HGET", "h2000", f"field:{i % 2000}"), None),
    ("hincrby packed", LIGHT, lambda i: ("HINCRBY", "h50", "count", "1"), None),
    ("hincrby table", LIGHT, lambda i: ("HINCRBY", "h2000", "count", "1"), None),
    ("sismember", LIGHT, lambda i: ("SISMEMBER", "a", f"member:{i % 10000}"), None),
    ("spop", LIGHT, lambda i: ("SPOP", "full_set"), lambda s: fill_set(s)),
    ("lrange 100", HEAVY, lambda i: ("LRANGE", "l600", "0", "99"), None),
    ("lrange 600", HEAVY, lambda i: ("LRANGE", "l600", "0", "599"), None),
    ("lpos", HEAVY, lambda i: ("LPOS", "l600", "element:599"), None),
    ("lpos 10 k", HEAVY, lambda i: ("LPOS", "l10000", "element:9999"), None),
    ("hgetall 50", HEAVY, lambda i: ("HGETALL", "h50"), None),
    ("smembers 1 k", HEAVY, lambda i: ("SMEMBERS", "s1000"), None),
    ("sinter 10 k", HEAVY, lambda i: ("SINTER", "a", "b"), None),
    ("sinter 10 k ints", HEAVY, lambda i: ("SINTER", "ints_a", "ints_b"), None),
    ("sintercard 10 k", HEAVY, lambda i: ("SINTERCARD", "2", "a", "b"), None),
    ("sinterstore 10 k", HEAVY, lambda i: ("SINTERSTORE", "to", "a", "b"), None),
    ("sunionstore 10 k", HEAVY, lambda i: ("SUNIONSTORE", "to", "a", "b"), None),
    ("sunion 10 k", HEAVY, lambda i: ("SUNION", "a", "b"), None),
    ("sdiff 10 k", HEAVY, lambda i: ("SDIFF", "a", "b"), None),
    ("sdiffstore 10 k", HEAVY, lambda i: ("SDIFFSTORE", "to", "a", "b"), None),
    ("sintercard 10 k ints", HEAVY, lambda i: ("SINTERCARD", "2", "ints_a", "ints_b"), None),
    ("append", LIGHT, lambda i: ("APPEND", f"log:{i % 1000}", "0123456789"), lambda s: s.ask("DEL", *names("log", 0, 1000))),
    ("append 20 k keys", LIGHT, lambda i: ("APPEND", f"tail:{i % TEXTS}", "0123456789"), None),
    ("getex", LIGHT, lambda i: ("GETEX", f"text:{i % TEXTS}"), None),
    ("getex ex", LIGHT, lambda i: ("GETEX", f"text:{i % TEXTS}", "EX", "1000"), None),
    ("lindex 600", LIGHT, lambda i: ("LINDEX", "l600", "300"), None),
    ("lindex 10 k", LIGHT, lambda i: ("LINDEX", "l10000", "5000"), None),
    ("lindex 10 k any", LIGHT, lambda i: ("LINDEX", "l10000", i * 7919 % 10000), None),
    ("lrange 10", LIGHT, lambda i: ("LRANGE", "l600", "0", "9"), None),
    ("keys *", HEAVY, lambda i: ("KEYS", "*"), None),
    ("keys prefix", HEAVY, lambda i: ("KEYS", "text:199*"), None),
    ("keys middle", HEAVY, lambda i: ("KEYS", "*:199?7"), None),
]
FILLED = 200000


def fill_list(s):
    s.ask("DEL", "full")
    for _ in range(FILLED // 500):
        s.ask("RPUSH", "full", *["element"] * 500)


def fill_set(s):
    s.ask("DEL", "full_set")
    for at in range(0, FILLED, 500):
        s.ask("SADD", "full_set", *names("member", at, 500))


def measure(server, command, depth, count):
    """CPU of `count` requests in batches of `depth`, in us each."""
    batches = [b"".join(request(*command(i)) for i in range(at, at + depth)) for at in range(0, count, depth)]
    began = cpu_us(server)
    for batch in batches:
        server.pass_over(batch)
    return (cpu_us(server) - began) / (len(batches) * depth)


def row(servers, name, command, reset, depth, options):
    count = depth  # number of requests that take one round on the slower server
    for s in servers:
        if reset:
            reset(s)
        measure(s, command, depth, depth)
    each = max(measure(s, command, depth, depth * 4) for s in servers)
    count = max(depth, min(int(options.seconds * 1e6 / max(each, 0.2)), 100000) // depth * depth)
    results = [[] for _ in servers]
    for _ in range(options.rounds):
        for s, result in zip(servers, results):
            if reset:
                reset(s)
            result.append(measure(s, command, depth, count))
    ours, peer = (statistics.median(r) for r in results)
    print(f"{name:18} P{depth:<4} ours {ours:9.3f}  peer {peer:9.3f} us   peer/ours {peer / ours:5.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="CPU time of a round")
    parser.add_argument("--pipeline", default="1,16,100")
    options = parser.parse_args()
    with Server(options.ours) as ours, Server(options.peer) as peer:
        for s in (ours, peer):
            prepare(s)
        for name, kind, command, reset in ROWS:
            if options.only not in name:
                continue
            depths = [1] if kind == HEAVY else [int(d) for d in options.pipeline.split(",")]
            for depth in depths:
                row((ours, peer), name, command, reset, depth, options)


if __name__ == "__main__":
    main()

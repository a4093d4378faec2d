#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about strings and large hashes on a server that compresses values, beside one that does not.

    compressed_strings.py SERVER [TWIN] [--steps N] [--seed N] [--cuts N]

SERVER is the program whose values are compressed, TWIN the program of the server without compression, by default the same. The former has an append
only file, flushed always, as a kill may lose what a slow disk has not taken, and a replica with another setting. Every reply must be the same, and now
and then the digests of all three datasets. In between value-compression changes, single values are compressed (DEBUG COMPRESS), new dictionaries are
added, saves and rewrites run in both modes, the dataset is reloaded, and --cuts times SERVER is killed and started again. Expiry times are in the far
future. Ends with "N passed, N failed"."""
import argparse
import random
import sys
import time

from servers import Server

KEYS = [f"r:{i}" for i in range(120)] + [f"other:{i}" for i in range(30)] + [f"plain{i}" for i in range(10)]
HASHES = [f"h:{i}" for i in range(8)] + ["g:0", "g:1"]
PAGE, FUTURE_MS = 200, 4000000000000
MODES = ("no", "idle", "always")
COUNTED = "values_compressed"  # in INFO stats: what a run must have made


def record(rng):
    n = rng.randrange(100000)
    return (f'{{"user":{n},"name":"user {n * 7919:x}","roles":["reader","{rng.choice(["writer", "auditor"])}"],"created":"2026-11-{n % 30 + 1:02}",'
            f'"session":"{rng.getrandbits(64):016x}"}}')


def text(rng):
    kind = rng.randrange(12)
    if kind < 6:
        return "".join(record(rng) for _ in range(rng.randrange(1, 4)))
    if kind < 8:
        return record(rng)[:rng.randrange(140)]
    if kind == 8:
        return str(rng.randrange(-1000, 10**rng.randrange(1, 18)))
    if kind == 9:
        return rng.randbytes(rng.randrange(300))
    if kind == 10:
        return "x" * rng.randrange(400)
    return "".join(record(rng) for _ in range(rng.randrange(120)))


def words(rng):
    """One command. Errors are welcome: they must be the same."""
    key, other, third = rng.choice(KEYS), rng.choice(KEYS), rng.choice(KEYS)
    at, end, bit = rng.randrange(-300, 300), rng.randrange(-300, 400), rng.randrange(4000)
    when, value = FUTURE_MS + rng.randrange(10**6), text
    far = rng.choice([when, when, 300000000000000])
    field = rng.choice(["u8", "i16", "u63", "i64", "u3"])
    choices = [
        lambda: ["SET", key, value(rng)], lambda: ["SET", key, value(rng)], lambda: ["SET", key, value(rng), "PXAT", when],
        lambda: ["SET", key, value(rng), "KEEPTTL"], lambda: ["SET", key, value(rng), rng.choice(["NX", "XX", "GET"])],
        lambda: ["SET", key, value(rng), "IFEQ", value(rng)], lambda: ["SETNX", key, value(rng)], lambda: ["GETSET", key, value(rng)],
        lambda: ["MSET", key, value(rng), other, value(rng)], lambda: ["MSETNX", key, value(rng), other, value(rng)],
        lambda: ["GET", key], lambda: ["GET", key], lambda: ["MGET", key, other, third], lambda: ["GETRANGE", key, at, end],
        lambda: ["SUBSTR", key, at, end], lambda: ["STRLEN", key], lambda: ["GETDEL", key], lambda: ["GETEX", key, "PXAT", far],
        lambda: ["GETEX", key, "PERSIST"], lambda: ["GETEX", key], lambda: ["EXISTS", key, other], lambda: ["TYPE", key], lambda: ["TOUCH", key],
        lambda: ["OBJECT", "ENCODING", key], lambda: ["DUMP", key], lambda: ["PEXPIRETIME", key], lambda: ["EXPIRETIME", key],
        lambda: ["APPEND", key, record(rng)[:rng.randrange(60)]], lambda: ["SETRANGE", key, abs(at), record(rng)[:rng.randrange(40)]],
        lambda: ["SETBIT", key, bit, bit & 1], lambda: ["GETBIT", key, bit], lambda: ["BITCOUNT", key], lambda: ["BITCOUNT", key, at, end],
        lambda: ["BITCOUNT", key, at, end, "BIT"], lambda: ["BITPOS", key, bit & 1, at], lambda: ["BITPOS", key, bit & 1, at, end, "BIT"],
        lambda: ["BITFIELD_RO", key, "GET", field, bit], lambda: ["BITFIELD", key, "GET", field, bit],
        lambda: ["BITFIELD", key, "SET", field, bit, bit, "OVERFLOW", rng.choice(["WRAP", "SAT", "FAIL"]), "INCRBY", field, bit, at],
        lambda: ["BITOP", rng.choice(["AND", "OR", "XOR"]), key, other, third], lambda: ["BITOP", "NOT", key, other],
        lambda: ["LCS", key, other, "LEN"] if rng.random() < 0.1 else ["STRLEN", other],
        lambda: ["INCR", key], lambda: ["DECRBY", key, at], lambda: ["INCRBYFLOAT", key, "1.5"], lambda: ["INCREX", key, "BYINT", 5],
        lambda: ["PFADD", key, bit, at], lambda: ["PFCOUNT", key], lambda: ["PFCOUNT", key, other], lambda: ["PFMERGE", key, other],
        lambda: ["RENAME", key, other], lambda: ["RENAMENX", key, other], lambda: ["COPY", key, other], lambda: ["COPY", key, other, "REPLACE"],
        lambda: ["COPY", key, other, "DB", 3], lambda: ["MOVE", key, 3], lambda: ["DEL", key], lambda: ["UNLINK", key, other],
        lambda: ["PEXPIREAT", key, far], lambda: ["PEXPIREAT", key, when, rng.choice(["NX", "XX", "GT", "LT"])], lambda: ["PERSIST", key],
        lambda: ["DELIFEQ", key, value(rng)], lambda: ["DIGEST", key], lambda: ["GETPXT", key], lambda: ["MGETPXT", key, other],
        lambda: ["SORT", "list", "BY", "r:*", "ALPHA", "GET", "r:*", "GET", "#"], lambda: ["SORT", "list", "BY", "nosort", "GET", "r:*", "STORE", "sorted"],
        lambda: ["LPUSH", key, "x"] if rng.random() < 0.1 else ["HGET", key, "x"], lambda: ["RPUSH", "list", bit % 120],
        lambda: ["LTRIM", "list", 0, 20],
        lambda: ["EVAL", "local a = redis.call('get', KEYS[1]); redis.call('append', KEYS[2], 'x'); return {a, redis.call('getrange', KEYS[2], 0, 9)}", 2,
                 key, other],
        lambda: ["EVAL", "local d = redis.call('dump', KEYS[1]); if not d then return 0 end return redis.call('restore', KEYS[2], 0, d, 'REPLACE')", 2, key,
                 other],
    ]
    return rng.choice(choices)()


def hash_words(rng):
    """One command about a hash."""
    key, other, when, value = rng.choice(HASHES), rng.choice(HASHES), FUTURE_MS + rng.randrange(10**6), text
    field, second = f"f{rng.randrange(60)}", f"f{rng.randrange(60)}"
    choices = [
        *[lambda: ["HSET", key, *(word for _ in range(rng.randrange(1, 6)) for word in (f"f{rng.randrange(60)}", value(rng)))]] * 4,
        *[lambda: ["HGET", key, field]] * 4, lambda: ["HMGET", key, field, second, field], lambda: ["HSTRLEN", key, field],
        lambda: ["HEXISTS", key, field], lambda: ["HSETNX", key, field, value(rng)], lambda: ["HDEL", key, field, second], lambda: ["HLEN", key],
        lambda: ["HINCRBY", key, field, 3], lambda: ["HINCRBYFLOAT", key, field, "1.5"], lambda: ["HGETDEL", key, "FIELDS", 1, field],
        lambda: ["HPEXPIREAT", key, when, "FIELDS", 2, field, second], lambda: ["HPERSIST", key, "FIELDS", 1, field],
        lambda: ["HPEXPIRETIME", key, "FIELDS", 2, field, second], lambda: ["HGETEX", key, "PXAT", when, "FIELDS", 1, field],
        lambda: ["HGETEX", key, "PERSIST", "FIELDS", 1, field], lambda: ["HSETEX", key, "PXAT", when, "FIELDS", 1, field, value(rng)],
        lambda: ["HSETEX", key, rng.choice(["FNX", "FXX"]), "KEEPTTL", "FIELDS", 1, field, value(rng)],
        lambda: ["SORT", "list", "BY", "nosort", "GET", f"h:*->{field}"], lambda: ["DEBUG", "DIGEST-VALUE", key],
        lambda: ["COPY", key, other, "REPLACE"] if rng.random() < 0.2 else ["HGET", other, field],
        lambda: ["RENAME", key, other] if rng.random() < 0.2 else ["HGET", other, second],
        lambda: ["DEL", key] if rng.random() < 0.1 else ["HSTRLEN", other, second],
        lambda: ["PEXPIREAT", key, when], lambda: ["PERSIST", key],
        lambda: ["EVAL", "local a = redis.call('hget', KEYS[1], ARGV[1]); redis.call('hset', KEYS[1], ARGV[1], 'x'); return a", 1, key, field],
        lambda: ["EVAL", "local d = redis.call('dump', KEYS[1]); if not d then return 0 end return redis.call('restore', KEYS[2], 0, d, 'REPLACE')", 2, key,
                 other] if rng.random() < 0.2 else ["HGET", key, second],
    ]
    return rng.choice(choices)()


def is_same(ours, theirs):
    """A reload forgets which texts were written in place."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return all(map(is_same, ours, theirs))
    return ours == theirs or (ours, theirs) in ((b"raw", b"embstr"), (b"embstr", b"raw"))


def difference(ours, theirs):
    """The first part of two replies that is another one."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return next(difference(a, b) for a, b in zip(ours, theirs) if not is_same(a, b))
    return f"{str(ours)[:300]} here, {str(theirs)[:300]} at the twin"


def page(rng):
    commands = []
    while len(commands) < PAGE:
        if rng.random() < 0.03:
            commands += [["MULTI"], *(words(rng) for _ in range(rng.randrange(1, 5))), ["EXEC"]]
        else:
            commands.append(hash_words(rng) if rng.random() < 0.3 else words(rng))
    return commands


def wait_for(condition, what):
    end = time.time() + 120
    while not condition():
        if time.time() > end:
            raise RuntimeError(what)
        time.sleep(0.02)


def disturb(rng, subject, replica):
    """What must not be seen: settings, single values, dictionaries, saves, reloads."""
    client = subject.client
    requests = [["DEBUG", "COMPRESS", rng.choice(KEYS)] for _ in range(30)]
    requests += [["DEBUG", "COMPRESS", rng.choice(HASHES)] for _ in range(2)]
    chance = rng.random()
    if chance < 0.1:
        requests.append(["CONFIG", "SET", "value-compression", rng.choice(MODES), "value-compression-min-bytes", rng.choice([32, 64, 300])])
    elif chance < 0.13:
        prefix, sample = rng.choice(["r:", "other:", "h:", ""]), "".join(record(rng) for _ in range(4))
        requests.append(["DEBUG", "VALUE-DICTIONARY", prefix, sample])
    elif chance < 0.16:
        requests += [["CONFIG", "SET", "snapshot-mode", rng.choice(["fork", "inline"])], [rng.choice(["BGSAVE", "BGREWRITEAOF"])]]
    elif chance < 0.165:
        requests.append(["DEBUG", "RELOAD"])
    elif chance < 0.18:
        requests.append(["SWAPDB", 0, 0])
    client.many(requests)
    if chance > 0.95:
        replica.client.many([["CONFIG", "SET", "value-compression", rng.choice(MODES)], ["DEBUG", "VALUE-DICTIONARY", "r:", record(rng)]])


def digests(subject, twin, replica):
    subject.client("SET", "mark", "x")
    twin.client("SET", "mark", "x")
    wait_for(lambda: subject.client("WAIT", 1, 1000) == 1, "the replica does not follow")
    return [server.client("DEBUG", "DIGEST") for server in (subject, twin, replica)]


def run(subject, twin, replica, options):
    rng, passed = random.Random(options.seed), 0
    pages = max(options.steps // PAGE, 1)
    cuts = set(random.Random(options.seed + 1).sample(range(pages), min(options.cuts, pages)))
    for server in (subject, twin):
        server.client("RPUSH", "list", 1, 2, 3)
    replica.client("REPLICAOF", "127.0.0.1", subject.port)
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", "no synchronisation")
    for prefix in ("r:", "other:", "h:"):
        subject.client("DEBUG", "VALUE-DICTIONARY", prefix, record(rng))
    made = 0
    for number in range(pages):
        commands = page(rng)
        for command, ours, theirs in zip(commands, subject.client.many(commands), twin.client.many(commands)):
            if not is_same(ours, theirs):
                print(f"page {number}: {command}: {difference(ours, theirs)}")
                return passed, 1, made
        passed += len(commands)
        disturb(rng, subject, replica)
        if number in cuts:
            made += int(subject.info("stats")[COUNTED])
            subject.cut()
            wait_for(lambda: subject.client("PING") == b"PONG", "it does not load")
            subject.client.many([["CONFIG", "SET", "value-compression", rng.choice(MODES)], ["DEBUG", "VALUE-DICTIONARY", "r:", record(rng)],
                                 ["DEBUG", "VALUE-DICTIONARY", "h:", record(rng)]])
            wait_for(lambda: replica.info("replication")["master_link_status"] == "up", "no synchronisation")
        if number % 40 == 39 or number in cuts or number == pages - 1:
            found = digests(subject, twin, replica)
            passed += 1
            if len(set(found)) != 1:
                print(f"page {number}: the datasets differ: {found}")
                return passed, 1, made
    made += int(subject.info("stats")[COUNTED])
    return passed, 0, made


def main(text=__doc__, *settings):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("twin", nargs="?")
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--cuts", type=int, default=3)
    options = parser.parse_args()
    print("seed", options.seed, flush=True)
    servers, common = [], ("--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--hash-max-listpack-entries", "8", *settings)
    try:
        servers.append(Server(options.server, *common, "--appendonly", "yes", "--appendfsync", "always", "--value-compression", "always",
                              "--value-compression-min-bytes", "32", "--value-compression-idle-seconds", "1"))
        servers.append(Server(options.twin or options.server, *common))
        servers.append(Server(options.server, *common, "--value-compression", "idle", "--value-compression-idle-seconds", "1"))
        try:
            passed, failed, made = run(*servers, options)
        except ConnectionError as lost:
            print(lost)
            passed, failed, made = 0, 1, 0
        print(f"{COUNTED}: {made}")
        if failed:
            print(servers[0].last_lines(700))
    finally:
        for server in servers:
            server.stop()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

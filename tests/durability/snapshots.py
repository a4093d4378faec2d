#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Saves without a fork beside random commands on all types; each file must be the dataset at the start of its save.

  snapshots.py --server PATH [--rounds N] [--seed N]

Needs a build with checks: its files have a digest of the dataset at the start, with which a load compares what it has
loaded. A second server loads each file as the base of an append only file, so that keys that have expired are loaded, too;
then the values of some keys are compared with those before the save, with all expiry times."""

import argparse
import os
import random
import shutil
import tempfile
import time

from common import Reply, Results, Server, encode, field

KEYS = 12  # of each type, in each of DBS databases
DBS = 3
TYPES = "string", "list", "hash", "set", "zset", "stream"
LATER = 9999999999999


class Commands:
    """Random commands; those that are refused, as by a key of another type, do no harm."""

    def __init__(self, rng):
        self.rng = rng

    def key(self, kind=None):
        kind = kind or self.rng.choice(TYPES)
        return f"{kind}:{self.rng.randrange(KEYS)}"

    def name(self):
        n = int(self.rng.random() ** 2 * 3000)
        return n if self.rng.random() < 0.5 else f"name:{n}"

    def text(self):
        size = self.rng.choice((3, 10, 10, 40, 40, 200, 2000, 30000 if self.rng.random() < 0.05 else 20))
        return self.rng.choice("abcxyz") * self.rng.randrange(1, size)

    def many(self):
        return self.rng.choice((1, 1, 2, 5, 20, 300 if self.rng.random() < 0.3 else 3))

    def string(self):
        key = self.key("string")
        return self.rng.choice((
            ("SET", key, self.text()), ("SET", key, self.rng.randrange(10 ** 9)), ("APPEND", key, self.text()),
            ("SETRANGE", key, self.rng.randrange(300), self.text()), ("INCR", key), ("GETDEL", key),
            ("SETBIT", key, self.rng.randrange(4000), 1), ("SET", key, self.text(), "PX", self.rng.randrange(1, 300)),
            ("GETEX", key, "PERSIST"), ("PFADD", key, self.name()), ("INCRBYFLOAT", key, "1.5")))

    def list(self):
        key, n = self.key("list"), self.many()
        return self.rng.choice((
            ("RPUSH", key, *(self.text() for _ in range(n))), ("LPUSH", key, *(self.name() for _ in range(n))),
            ("LPOP", key, n), ("RPOP", key, n), ("LSET", key, self.rng.randrange(30), self.text()),
            ("LTRIM", key, 0, 400), ("LINSERT", key, "BEFORE", self.name(), self.text()), ("LREM", key, 0, self.name()),
            ("LMOVE", key, self.key("list"), "LEFT", "RIGHT"), ("SORT", key, "ALPHA", "STORE", self.key("list"))))

    def hash(self):
        key, n = self.key("hash"), self.many()
        names = [self.name() for _ in range(n)]
        pairs = [word for name in names for word in (name, self.text())]
        return self.rng.choice((
            ("HSET", key, *pairs), ("HSET", key, *pairs), ("HSET", key, *pairs), ("HDEL", key, *names),
            ("HINCRBY", key, self.name(), 7), ("HSETNX", key, self.name(), self.text()),
            ("HPEXPIRE", key, self.rng.randrange(1, 400), "FIELDS", n, *names),
            ("HPEXPIREAT", key, LATER + self.rng.randrange(1000), "FIELDS", n, *names),
            ("HPERSIST", key, "FIELDS", n, *names),
            ("HSETEX", key, "PXAT", LATER, "FIELDS", n, *pairs), ("HSETEX", key, "KEEPTTL", "FIELDS", n, *pairs),
            ("HGETEX", key, "PERSIST", "FIELDS", n, *names)))

    def set(self):
        key, other, n = self.key("set"), self.key("set"), self.many()
        names = [self.name() for _ in range(n)]
        return self.rng.choice((
            ("SADD", key, *names), ("SADD", key, *names), ("SADD", key, *names), ("SREM", key, *names),
            ("SPOP", key, n), ("SPOP", key), ("SMOVE", key, other, names[0]), ("SUNIONSTORE", key, other, self.key("set")),
            ("SDIFFSTORE", key, other, self.key("set")), ("SORT", key, "ALPHA", "STORE", self.key("list"))))

    def zset(self):
        key, n = self.key("zset"), self.many()
        names = [self.name() for _ in range(n)]
        scored = [word for name in names for word in (self.rng.randrange(1000) / 4, name)]
        low = self.rng.randrange(250)
        return self.rng.choice((
            ("ZADD", key, *scored), ("ZADD", key, *scored), ("ZADD", key, "GT", *scored), ("ZREM", key, *names),
            ("ZINCRBY", key, 2.5, self.name()), ("ZPOPMIN", key, n), ("ZPOPMAX", key),
            ("ZREMRANGEBYRANK", key, low, low + self.rng.randrange(60)), ("ZREMRANGEBYSCORE", key, low, low + 5),
            ("ZREMRANGEBYLEX", key, "[name:5", "[name:51"), ("ZUNIONSTORE", key, 2, self.key("zset"), self.key("set")),
            ("ZRANGESTORE", key, self.key("zset"), 0, 500), ("GEOADD", key, 13, 38, self.name())))

    def stream(self):
        key, number = self.key("stream"), self.rng.randrange(100)
        return self.rng.choice((
            ("XADD", key, "*", "f", self.text()), ("XADD", key, "*", "f", "1", "g", self.text()),
            ("EVAL", "for i = 1, 60 do redis.call('XADD', KEYS[1], '*', 'f', ARGV[1]) end", 1, key, self.text()),
            ("EVAL", "local e = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 60) "
             "for i = 1, #e, 2 do redis.call('XDEL', KEYS[1], e[i][1]) redis.call('XACK', KEYS[1], 'g1', e[i][1]) end", 1, key),
            ("XTRIM", key, "MAXLEN", 200), ("XGROUP", "CREATE", key, f"g{number % 3}", "0", "MKSTREAM"),
            ("XREADGROUP", "GROUP", f"g{number % 3}", f"c{number % 4}", "COUNT", 5, "STREAMS", key, ">"),
            ("XGROUP", "DESTROY", key, "g2"), ("XSETID", key, f"{LATER}-1") if number == 0 else ("XLEN", key),
            ("XAUTOCLAIM", key, "g1", "c0", 0, 0)))

    def keys(self):
        kind = self.rng.choice(TYPES)
        key, other = self.key(kind), self.key(kind)
        return self.rng.choice((
            ("DEL", key), ("UNLINK", key), ("RENAME", key, other), ("RENAMENX", key, other), ("COPY", key, other, "REPLACE"),
            ("COPY", key, other, "DB", self.rng.randrange(DBS), "REPLACE"), ("MOVE", key, self.rng.randrange(DBS)),
            ("PEXPIRE", key, self.rng.randrange(1, 400)), ("PEXPIREAT", key, LATER), ("PERSIST", key), ("EXPIRE", key, 100000),
            ("SET", key, "another type"), ("OBJECT", "FREQ", key), ("TOUCH", key)))

    def rare(self):
        return self.rng.choice((
            ("SELECT", self.rng.randrange(DBS)), ("SELECT", self.rng.randrange(DBS)), ("SELECT", 0), ("SELECT", 0),
            ("SWAPDB", self.rng.randrange(DBS), self.rng.randrange(DBS)),
            ("FLUSHDB", self.rng.choice(("SYNC", "ASYNC"))), ("MEMORY", "PURGE"),
            ("EVAL", "for i = 1, 50 do redis.call('HSET', KEYS[1], 'f' .. i, i) end return redis.call('DEL', KEYS[2])", 2,
             self.key("hash"), self.key())))

    def one(self):
        r = self.rng.random()
        if r < 0.01:
            return self.rare()
        if r < 0.12:
            return self.keys()
        return getattr(self, self.rng.choice(TYPES + ("hash", "set", "zset")))()

    def batch(self, count):
        """Bytes, and the number of replies."""
        out, replies = [], 0
        while replies < count:
            if self.rng.random() < 0.05:
                inner = [self.one() for _ in range(self.rng.randrange(1, 8))]
                out += [encode("MULTI"), *(encode(*c) for c in inner), encode("EXEC")]
                replies += len(inner) + 2
            else:
                out.append(encode(*self.one()))
                replies += 1
        return b"".join(out), replies


def read_any(client):
    try:
        return client.read()
    except Reply as error:
        return error


def run(client, commands, count):
    data, replies = commands.batch(count)
    client.send(data)
    for _ in range(replies):
        read_any(client)


def describe(client, key):
    """Everything about a key, in an order that depends on its content only."""
    kind = client.ask("TYPE", key)
    facts = [kind, client.ask("PEXPIRETIME", key)]
    if kind == b"hash":
        flat = client.ask("HGETALL", key)
        names = flat[::2]
        if not names:
            return facts
        times = client.ask("HPEXPIRETIME", key, "FIELDS", len(names), *names)
        facts.append(sorted(zip(names, flat[1::2], times)))
    elif kind == b"set":
        facts.append(sorted(client.ask("SMEMBERS", key)))
    elif kind == b"zset":
        facts.append(client.ask("ZRANGE", key, 0, -1, "WITHSCORES"))
    elif kind == b"list":
        facts.append(client.ask("LRANGE", key, 0, -1))
    elif kind == b"stream":
        facts.append(client.ask("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    else:
        facts.append(client.ask("GET", key))
    return facts


def is_lasting(facts):
    """True if nothing of the key expires during the test."""
    if facts[0] == b"none" or 0 <= facts[1] < LATER:
        return False
    return facts[0] != b"hash" or len(facts) > 2 and all(f[2] == -1 or f[2] >= LATER for f in facts[2])


class Pair:
    """The server that saves, and the one that loads its files."""

    def __init__(self, server, folder):
        self.folders = [os.path.join(folder, name) for name in ("saves", "loads")]
        for name in self.folders:
            os.mkdir(name)
        self.saver = Server(server, self.folders[0], "--appendonly", "no", "--snapshot-mode", "inline",
                            "--rdb-key-save-delay", "0", "--maxmemory-policy", "allkeys-random")
        self.loader = Server(server, self.folders[1])
        self.client = self.saver.connect()
        self.loading = self.loader.connect()
        self.loading.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        base = os.path.join(self.folders[1], "appendonlydir")
        self.base = os.path.join(base, next(name for name in os.listdir(base) if ".base." in name))

    def await_end(self):
        end = time.monotonic() + 120
        while field(self.client, "rdb_bgsave_in_progress") != "0":
            if time.monotonic() > end:
                raise SystemExit("the save does not end")
            time.sleep(0.002)

    def check_file(self, before):
        """A text if the file is not the dataset of the start."""
        path = os.path.join(self.folders[0], "dump.rdb")
        with open(path, "rb") as file:
            if b"dataset-digest" not in file.read(4096):
                raise SystemExit("the server is not a build with checks")
        shutil.copy(path, self.base)
        try:
            self.loading.ask("DEBUG", "LOADAOF")
        except Reply as error:
            return f"{error}: {self.loader.log()[-2000:]}"
        for (number, key), facts in before.items():
            self.loading.ask("SELECT", number)
            found = describe(self.loading, key)
            if found != facts:
                return f"db {number}, {key}: {str(facts)[:2000]} became {str(found)[:2000]}"
        return ""

    def end(self):
        for server in self.saver, self.loader:
            if server.process.poll() is None:
                server.kill()


def one_round(pair, commands, rng):
    client = pair.client
    run(client, commands, rng.randrange(600))
    client.ask("CONFIG", "SET", "rdb-key-save-delay", rng.choice((0, 1, 10, 100, 300)),
               "rdbcompression", rng.choice(("yes", "no")))
    before = {}
    for _ in range(4):
        number, key = rng.randrange(DBS), commands.key()
        client.ask("SELECT", number)
        facts = describe(client, key)
        if is_lasting(facts):
            before[number, key] = facts
    client.ask("SELECT", rng.randrange(DBS))
    client.ask("BGSAVE")
    evicts = rng.random() < 0.1
    for _ in range(rng.choice((0, 1, 3, 10, 30))):
        run(client, commands, rng.randrange(1, 80))
        if evicts and rng.random() < 0.3:
            used = int(client.ask("INFO", "memory").split(b"used_memory:")[1].split()[0])
            client.ask("CONFIG", "SET", "maxmemory", used - 20000)
        if field(client, "rdb_bgsave_in_progress") == "0":
            break
    if evicts:
        client.ask("CONFIG", "SET", "maxmemory", 0)
    cancels = rng.random() < 0.05
    client.ask("CONFIG", "SET", "rdb-key-save-delay", 0)
    if cancels:
        try:
            client.ask("BGSAVE", "CANCEL")
        except Reply:
            pass  # it has ended
        while field(client, "snapshot_inline_cleanup") != "0":
            run(client, commands, 5)
        return None
    pair.await_end()
    if field(client, "rdb_last_bgsave_status") != "ok":
        return "the save failed"
    return pair.check_file(before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    results = Results()
    folder = tempfile.mkdtemp(prefix="snapshots")
    pair = Pair(os.path.abspath(options.server), folder)
    commands = Commands(rng)
    divided = 0
    try:
        for number in range(options.rounds):
            fault = one_round(pair, commands, rng)
            if fault is None:
                continue
            divided += int(field(pair.client, "snapshot_inline_divided_values"))
            results.note(f"round {number}", fault)
            if fault:
                break
    except (OSError, Exception) as error:  # a server that has crashed
        results.note("both servers run", f"{type(error).__name__} {error}: {pair.saver.log()[-5000:]}"
                                         f"{pair.loader.log()[-5000:]}")
    finally:
        pair.end()
    if not results.failed:
        results.note("values were saved in parts", "" if divided > 0 else "none was")
        shutil.rmtree(folder)
    print(f"{divided} values in parts")
    results.finish()


if __name__ == "__main__":
    main()

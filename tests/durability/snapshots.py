#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Saves without a fork beside random commands on all types; each file must be the dataset at the start of its save.

  snapshots.py --server PATH [--rounds N] [--seed N] [--first N]

Needs a build with checks: its files have a digest of the dataset at the start, with which a load compares what it has
loaded. A second server loads each file, while the next round runs, as the base of an append only file, so that keys that
have expired are loaded, too. In some rounds all facts about some keys, such as the groups of streams, are also
compared with those before the save. At the end both servers must stop cleanly, which in builds with AddressSanitizer finds leaks.

Rounds are in blocks of BLOCK, which begin with an empty dataset and have commands and sizes of their own: --first, rounded down
to a block, begins with any of them. What expires, and where a save is when a command comes, depends on time, too."""

import argparse
import os
import random
import shutil
import tempfile
import time
from dataclasses import dataclass

from common import Closed, Reply, Results, Server, encode

DBS = 3
TYPES = "string", "list", "hash", "set", "zset", "stream"
LATER = 9999999999999
BLOCK = 50  # rounds
UNITS = 800  # commands or transactions of a block, sent many times in random order
END = b"$19\r\nend of the commands\r\n"


@dataclass
class Scale:
    """The sizes of a block's dataset and rounds."""
    keys: int  # of each type, in each database
    names: int
    sizes: tuple  # of texts
    long: float  # the share of texts of up to 30,000 bytes
    counts: tuple  # of elements in a command
    before: int  # commands before a save, at most
    batches: tuple  # during a save
    batch: int  # commands in one, at most
    ttl_ms: int


# Values in parts have 9 elements or more in the hostile build, 257 or more in others.
SMALL = Scale(2, 60, (3, 10, 10, 40), 0.002, (1, 1, 2, 3, 12), 12, (0, 1, 1, 2, 4), 6, 40)
FEW_LARGE = Scale(1, 900, (3, 10, 10, 20), 0.01, (1, 2, 5, 20, 300), 16, (0, 1, 2, 3, 6), 8, 60)
MANY_LARGE = Scale(12, 3000, (3, 10, 10, 40, 40, 200, 2000), 0.005, (1, 1, 2, 5, 20, 100), 200, (0, 1, 3, 10, 20), 30, 400)
SCALES = (SMALL,) * 3 + (FEW_LARGE,) + (SMALL,) * 4 + (FEW_LARGE,) + (SMALL,) * 3 + (MANY_LARGE,)


class Commands:
    """Random commands; those that are refused, as by a key of another type, do no harm."""

    def __init__(self, rng, scale):
        self.rng = rng
        self.scale = scale

    def key(self, kind=None):
        kind = kind or self.rng.choice(TYPES)
        return f"{kind}:{self.rng.randrange(self.scale.keys)}"

    def name(self):
        n = int(self.rng.random() ** 2 * self.scale.names)
        return n if self.rng.random() < 0.5 else f"name:{n}"

    def text(self):
        size = 30000 if self.rng.random() < self.scale.long else self.rng.choice(self.scale.sizes)
        return self.rng.choice("abcxyz") * self.rng.randrange(1, size)

    def many(self):
        return self.rng.choice(self.scale.counts)

    def soon(self):
        return self.rng.randrange(1, self.scale.ttl_ms)

    def string(self):
        key = self.key("string")
        return self.rng.choice((
            ("SET", key, self.text()), ("SET", key, self.rng.randrange(10 ** 9)), ("APPEND", key, self.text()),
            ("SETRANGE", key, self.rng.randrange(300), self.text()), ("INCR", key), ("GETDEL", key),
            ("SETBIT", key, self.rng.randrange(4000), 1), ("SET", key, self.text(), "PX", self.soon()),
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
            ("HPEXPIRE", key, self.soon(), "FIELDS", n, *names),
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
            ("EVAL", "redis.call('XTRIM', KEYS[1], 'MAXLEN', 0) if redis.pcall('XSETID', KEYS[1], '5-1').err then return end "
             "for i = 1, 9 do redis.call('XADD', KEYS[1], '6-' .. i, 'f', 'lower ids than those removed') end", 1, key),
            ("XAUTOCLAIM", key, "g1", "c0", 0, 0)))

    def keys(self):
        kind = self.rng.choice(TYPES)
        key, other = self.key(kind), self.key(kind)
        return self.rng.choice((
            ("DEL", key), ("UNLINK", key), ("RENAME", key, other), ("RENAMENX", key, other), ("COPY", key, other, "REPLACE"),
            ("COPY", key, other, "DB", self.rng.randrange(DBS), "REPLACE"), ("MOVE", key, self.rng.randrange(DBS)),
            ("PEXPIRE", key, self.soon()), ("PEXPIREAT", key, LATER), ("PERSIST", key), ("EXPIRE", key, 100000),
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

    def unit(self):
        """The bytes of a command, or of a transaction."""
        if self.rng.random() < 0.95:
            return encode(*self.one())
        inner = [self.one() for _ in range(self.rng.randrange(1, 8))]
        return b"".join([encode("MULTI"), *(encode(*c) for c in inner), encode("EXEC")])


def run(client, commands):
    """Sends encoded commands; the bytes of all replies, with those of INFO at the end."""
    client.send(b"".join(commands) + encode("INFO", "persistence") + encode("ECHO", "end of the commands"))
    replies = b""
    while not replies.endswith(END):
        more = client.socket.recv(1 << 20)
        if not more:
            raise Closed
        replies += more
    return replies


def number_in(info, name):
    return int(info.split(name + b":")[1].split(b"\r")[0])


def is_saving(replies):
    return b"rdb_bgsave_in_progress:0" not in replies[-4096:]


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
    if facts[0] == b"none" or facts[1] < LATER and facts[1] != -1:  # -2: it has expired since TYPE
        return False
    return facts[0] != b"hash" or len(facts) > 2 and all(f[2] == -1 or f[2] >= LATER for f in facts[2])


class Pair:
    """The server that saves, and the one that loads its files."""

    def __init__(self, server, folder):
        self.folders = [os.path.join(folder, name) for name in ("saves", "loads")]
        for name in self.folders:
            os.mkdir(name)
        self.saver = Server(server, self.folders[0], "--appendonly", "no", "--snapshot-mode", "inline", "--loglevel", "warning",
                            "--rdb-key-save-delay", "0", "--maxmemory-policy", "allkeys-random")
        self.loader = Server(server, self.folders[1], "--loglevel", "warning")
        self.client = self.saver.connect()
        self.loading = self.loader.connect()
        self.loading.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for client in self.client, self.loading:
            client.socket.settimeout(300)
        base = os.path.join(self.folders[1], "appendonlydir")
        self.base = os.path.join(base, next(name for name in os.listdir(base) if ".base." in name))
        self.loads = False

    def await_end(self):
        """INFO after the save."""
        end = time.monotonic() + 120
        polls = 0
        while is_saving(info := run(self.client, [])):
            polls += 1
            if time.monotonic() > end:
                raise SystemExit("the save does not end")
            time.sleep(0.0005 if polls > 5 else 0)
        return info

    def begin_load(self):
        """Makes the loader load the file; await_load() has the result."""
        path = os.path.join(self.folders[0], "dump.rdb")
        with open(path, "rb") as file:
            if b"dataset-digest" not in file.read(4096):
                raise SystemExit("the server is not a build with checks")
        os.rename(path, self.base)
        self.loading.send(encode("DEBUG", "LOADAOF"))
        self.loads = True

    def await_load(self):
        """A text if the file was not the dataset of the start; none if there was no file."""
        try:
            if self.loads:
                self.loading.read()
        except Reply as error:
            return f"{error}: {self.loader.log()[-2000:]}"
        self.loads = False
        return ""

    def compare(self, before):
        """A text if the loader's keys differ."""
        for (number, key), facts in before.items():
            self.loading.ask("SELECT", number)
            found = describe(self.loading, key)
            if found != facts:
                return f"db {number}, {key}: {str(facts)[:2000]} became {str(found)[:2000]}"
        return ""

    def stop(self):
        """A text if a server does not end well."""
        for server in self.saver, self.loader:
            code = server.stop(120)
            if code != 0:
                return f"exit code {code}: {server.log()[-5000:]}"
        return ""

    def end(self):
        for server in self.saver, self.loader:
            if server.process.poll() is None:
                server.kill()


class Rounds:
    def __init__(self, pair, seed):
        self.pair = pair
        self.seed = seed
        self.divided = self.early = self.cancelled = 0

    def begin_block(self, number):
        self.scale = SCALES[number % len(SCALES)]
        self.rng = random.Random(f"{self.seed} {number}")
        self.commands = Commands(self.rng, self.scale)
        self.units = [self.commands.unit() for _ in range(UNITS)]
        self.pair.client.ask("FLUSHALL", self.rng.choice(("SYNC", "ASYNC")))

    def some(self, most):
        return self.rng.choices(self.units, k=self.rng.randrange(1, most + 1))

    def look(self):
        """The facts of some keys."""
        client, before = self.pair.client, {}
        for _ in range(4):
            number, key = self.rng.randrange(DBS), self.commands.key()
            client.ask("SELECT", number)
            facts = describe(client, key)
            if is_lasting(facts):
                before[number, key] = facts
        return before

    def evict(self):
        used = int(self.pair.client.ask("INFO", "memory").split(b"used_memory:")[1].split()[0])
        self.pair.client.ask("CONFIG", "SET", "maxmemory", used - self.rng.randrange(1000, 20000))

    def save(self, evicts):
        """Starts a save, at a random speed, and changes the dataset meanwhile."""
        client, rng, scale = self.pair.client, self.rng, self.scale
        delay = rng.choice((0, 1, 10, 100, 300))
        start = [encode("CONFIG", "SET", "rdb-key-save-delay", delay, "rdbcompression", rng.choice(("yes", "no"))),
                 encode("SELECT", rng.randrange(DBS)), encode("BGSAVE")]
        if rng.random() < 0.5:
            start += self.some(scale.batch)
        replies = run(client, start)
        if b"+Background saving started" not in replies:
            raise SystemExit(f"BGSAVE: {replies[:1000]}")
        for _ in range(rng.choice(scale.batches)):
            if not is_saving(replies):
                break
            if evicts and rng.random() < 0.3:
                self.evict()
            replies = run(client, self.some(scale.batch))
        client.send(encode("CONFIG", "SET", "rdb-key-save-delay", 0, "maxmemory", 0))
        client.read()

    def cancel(self):
        """FLUSHALL, too, ends a save."""
        words = self.rng.choice((("BGSAVE", "CANCEL"), ("BGSAVE", "CANCEL"), ("FLUSHALL", "SYNC"), ("FLUSHALL", "ASYNC")))
        try:
            self.pair.client.ask(*words)
        except Reply:
            pass  # it has ended
        while b"snapshot_inline_cleanup:0" not in run(self.pair.client, self.some(5)):
            pass
        self.cancelled += 1

    def one(self):
        """A text if this round or the load of the one before has failed."""
        pair, rng = self.pair, self.rng
        run(pair.client, self.some(self.scale.before))
        before = self.look() if rng.random() < 0.15 else {}
        self.save(evicts=rng.random() < 0.1)
        if rng.random() < 0.05:
            self.cancel()
            return ""
        info = pair.await_end()
        self.divided += number_in(info, b"snapshot_inline_divided_values")
        self.early += number_in(info, b"snapshot_inline_early_keys")
        if b"rdb_last_bgsave_status:ok" not in info:
            return "the save failed"
        fault = pair.await_load()
        if fault:
            return f"the file of an earlier round: {fault}"
        pair.begin_load()
        if not before:
            return ""
        return pair.await_load() or pair.compare(before)


def end_of(log):
    """The start of the crash report, which has the reason, or the last lines of a log without one."""
    at = log.find("BUG REPORT START")
    return log[max(at - 1500, 0):][:5000] if at >= 0 else log[-5000:]


def run_rounds(rounds, first, count, results):
    for number in range(first, first + count):
        if number % BLOCK == 0:
            rounds.begin_block(number // BLOCK)
        fault = rounds.one()
        if number == first + count - 1:
            fault = fault or rounds.pair.await_load()
        results.note(f"round {number}", fault)
        if fault:
            break
        if number % 5000 == 4999:
            print(f"{number + 1 - first} rounds", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results = Results()
    folder = tempfile.mkdtemp(prefix="snapshots", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    pair = Pair(os.path.abspath(options.server), folder)
    rounds = Rounds(pair, options.seed)
    try:
        run_rounds(rounds, options.first // BLOCK * BLOCK, options.rounds, results)
        if not results.failed:
            results.note("the servers stop without a leak", pair.stop())
    except (OSError, Exception) as error:  # a server that has crashed
        results.note("both servers run", f"{type(error).__name__} {error}: {end_of(pair.saver.log())}"
                                         f"{end_of(pair.loader.log())}")
    finally:
        pair.end()
    if not results.failed:
        results.note("values were saved in parts", "" if rounds.divided > 0 else "none was")
        shutil.rmtree(folder)
    else:
        print(f"files: {folder}")
    print(f"{rounds.divided} values in parts, {rounds.early} before a change; {rounds.cancelled} saves cancelled")
    results.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ends snapshots in the serving process at any moment, and writes them to bad disks.

  inline.py [--server PATH] [--programs FOLDER] [--cycles N] [--seed N] [--only saves|syncs|full|slow]

saves  Servers are killed at random times of a BGSAVE while a client writes: the next one has the dataset of a moment at which
       a snapshot began, no older than the last one that was reported as saved.
syncs  A primary or a replica is killed while two replicas are synchronised and a client writes: each replica serves a whole
       dataset of one moment, and after a restart all have the same.
full   Files cannot grow: the snapshot fails, the server goes on, and the next snapshot is complete.
slow   A disk that is slower than keys change: what is put aside stays within snapshot-excess-limit, the file is that of the start.

Most of the dataset is large collections, which are written in parts; each operation changes all of them in one transaction."""

import os
import random
import resource
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, Unexpected, encode, field, option_parser

MODE = ("--snapshot-mode", "inline")
SIZE = 3000  # elements of each collection
SLOW_KEYS, SLOW_BYTES, SLOW_RATE = 1500, 10000, 20 << 20
LIMIT = 1 << 20
BOUND_S = 60


class Collections:
    """Operation n changes element n % SIZE of a hash, a sorted set and a list to n, adds n to a stream, and counts."""

    REPLIES = 7

    def prepare(self, client):
        for first in range(0, SIZE, 500):
            numbers = range(first, first + 500)
            client.ask("HSET", "hash", *(word for i in numbers for word in (f"f{i}", self.text(0))))
            client.ask("ZADD", "zset", *(word for i in numbers for word in (0, f"m{i}")))
            client.ask("RPUSH", "list", *(self.text(0) for _ in numbers))
        client.ask("DEBUG", "POPULATE", SIZE, "filler", 20)
        client.ask("SET", "count", 0)

    @staticmethod
    def text(n):
        return f"value:{n:060d}"

    def operation(self, n):
        i = n % SIZE
        return b"".join(encode(*words) for words in (
            ("MULTI",), ("HSET", "hash", f"f{i}", self.text(n)), ("ZADD", "zset", n, f"m{i}"),
            ("LSET", "list", i, self.text(n)), ("XADD", "stream", f"{n}-1", "n", n), ("INCR", "count"), ("EXEC",)))

    def check(self, client):
        """The number of operations; a text if the dataset is not what they produce."""
        if client.ask("GET", "count") is None:
            return None
        client.send(b"".join(encode(*words) for words in (
            ("MULTI",), ("GET", "count"), ("HGETALL", "hash"), ("ZRANGE", "zset", 0, -1, "WITHSCORES"),
            ("LRANGE", "list", 0, -1), ("XLEN", "stream"), ("EXEC",))))
        count, flat, scores, items, length = [client.read() for _ in range(self.REPLIES)][-1]
        count = int(count)
        last = [max(count - (count - i) % SIZE, 0) for i in range(SIZE)]
        fields = dict(zip(flat[::2], flat[1::2]))
        if fields != {f"f{i}".encode(): self.text(n).encode() for i, n in enumerate(last)}:
            return f"the hash is not that of {count} operations"
        if dict(zip(scores[::2], map(float, scores[1::2]))) != {f"m{i}".encode(): n for i, n in enumerate(last)}:
            return f"the sorted set is not that of {count} operations"
        if items != [self.text(n).encode() for n in last]:
            return f"the list is not that of {count} operations"
        return count if length == count else f"the stream has {length} and not {count} entries"


class Writer(threading.Thread):
    """Runs operations until the server ends."""

    WINDOW = 8

    def __init__(self, port, done):
        super().__init__(daemon=True)
        self.port, self.sent, self.acknowledged = port, done, done
        self.ends = False
        self.fault = ""

    def run(self):
        workload = Collections()
        try:
            client = Client(self.port, BOUND_S)
            while not self.ends or self.acknowledged < self.sent:
                while self.sent < self.acknowledged + self.WINDOW and not self.ends:
                    self.sent += 1
                    client.send(workload.operation(self.sent))
                for _ in range(Collections.REPLIES):
                    client.read()
                self.acknowledged += 1
        except (Closed, OSError):
            pass
        except Reply as error:
            self.fault = f"the writer: {error}"

    def stop(self):
        self.ends = True
        self.join(BOUND_S)
        if self.fault:
            raise Unexpected(self.fault)


def await_field(client, name, value):
    end = time.monotonic() + BOUND_S
    while field(client, name) != value:
        if time.monotonic() > end:
            raise Unexpected(f"{name} does not become {value}: {field(client, name)}")
        time.sleep(0.002)


def start(options, folder, *more, environment=None):
    server = Server(options.server, folder, "--appendonly", "no", *MODE, *more, environment=environment)
    server.client = server.connect()
    if server.client is None:
        raise Unexpected(f"the server does not start: {server.log()[-2000:]}")
    return server


def checked(client, low, high):
    found = Collections().check(client)
    if not isinstance(found, int) or not low <= found <= high:
        raise Unexpected(f"{found} instead of {low} to {high} operations")
    return found


def save(server, writer):
    """Begins a snapshot; returns the least and the greatest number of operations that it may have."""
    low = writer.acknowledged
    server.client.ask("BGSAVE")
    return low, writer.sent


# ---- the server is killed


def saves(options, rng):
    with tempfile.TemporaryDirectory(prefix="inline.", ignore_cleanup_errors=True) as folder:
        server = start(options, folder)
        Collections().prepare(server.client)
        server.client.ask("SAVE")
        low = high = 0  # of the file
        try:
            for _ in range(options.cycles):
                writer = Writer(server.port, checked(server.client, low, high))
                server.client.ask("CONFIG", "SET", "rdb-key-save-delay", rng.choice((0, 0, 3, 30)))
                low, high = writer.acknowledged, writer.acknowledged
                writer.start()
                end = time.monotonic() + rng.uniform(0.03, 0.3)
                begun = None
                while time.monotonic() < end:
                    if field(server.client, "rdb_bgsave_in_progress") == "0":
                        if begun and field(server.client, "rdb_last_bgsave_status") != "ok":
                            raise Unexpected("the save has failed")
                        if begun:
                            low, high = begun
                        begun = save(server, writer)
                        # Before or after the walk has ended, and while the file is being renamed.
                        end = min(end, time.monotonic() + rng.uniform(0, 0.1))
                server.kill()
                writer.stop()
                high = max(high, begun[1] if begun else high)
                server = start(options, folder)
            checked(server.client, low, high)
        finally:
            server.kill()


def in_sync(primary, replica):
    return (field(replica.client, "master_link_status") == "up"
            and field(replica.client, "slave_repl_offset") == field(primary.client, "master_repl_offset")
            and primary.client.ask("DEBUG", "DIGEST") == replica.client.ask("DEBUG", "DIGEST"))


def follow(replica, primary):
    """Tells a replica, which may be loading a dataset, where its primary is now."""
    end = time.monotonic() + BOUND_S
    while True:
        try:
            replica.client.ask("REPLICAOF", "127.0.0.1", primary.port)
            return
        except Reply as error:
            if not str(error).startswith("LOADING") or time.monotonic() > end:
                raise
            time.sleep(0.005)


def await_sync(primary, replicas):
    end = time.monotonic() + BOUND_S
    for replica in replicas:
        while True:
            try:
                if in_sync(primary, replica):
                    break
            except Reply:  # it is loading
                pass
            if time.monotonic() > end:
                raise Unexpected(f"a replica does not synchronise: {replica.log()[-1500:]}")
            time.sleep(0.01)


def check_served(replica, high):
    """A replica without its primary: the dataset of one moment, or none yet."""
    end = time.monotonic() + BOUND_S
    while time.monotonic() < end:
        try:
            if field(replica.client, "loading") == "0":
                found = Collections().check(replica.client)
                if isinstance(found, str) or found is not None and found > high:
                    raise Unexpected(f"a replica serves {found} of {high} operations")
                return
        except Reply:
            pass
        time.sleep(0.005)
    raise Unexpected("a replica does not serve")


def sync_cycle(options, rng, folder):
    paths = [os.path.join(folder, name) for name in ("primary", "first", "second")]
    for path in paths:
        os.mkdir(path)
    more = ("--repl-diskless-sync", rng.choice(("yes", "no")), "--repl-diskless-sync-delay", "0",
            "--repl-diskless-sync-max-replicas", "2", "--repl-diskless-load",
            rng.choice(("disabled", "swapdb")))
    servers = [start(options, path, *more) for path in paths]
    try:
        Collections().prepare(servers[0].client)
        servers[0].client.ask("SAVE")
        servers[0].client.ask("CONFIG", "SET", "rdb-key-save-delay", rng.choice((0, 5, 20)))
        writer = Writer(servers[0].port, 0)
        writer.start()
        for replica in servers[1:]:
            follow(replica, servers[0])
        time.sleep(rng.uniform(0, 0.25))
        victim = rng.randrange(3)
        servers[victim].kill()
        if victim == 0:
            writer.stop()
            for replica in servers[1:]:
                check_served(replica, writer.sent)
        servers[victim] = start(options, paths[victim], *more)
        if victim == 0:
            checked(servers[0].client, 0, writer.sent)  # a synchronisation by files replaces that of SAVE
        for replica in servers[1:]:
            follow(replica, servers[0])
        servers[0].client.ask("CONFIG", "SET", "rdb-key-save-delay", 0)
        writer.stop()
        await_sync(servers[0], servers[1:])
        count = checked(servers[0].client, 0 if victim == 0 else writer.acknowledged, writer.sent)
        for replica in servers[1:]:
            checked(replica.client, count, count)
    finally:
        for server in servers:
            server.kill()


def syncs(options, rng):
    for _ in range(max(options.cycles // 5, 3)):
        with tempfile.TemporaryDirectory(prefix="inline.", ignore_cleanup_errors=True) as folder:
            sync_cycle(options, rng, folder)


# ---- bad disks


def full(options, rng):
    with tempfile.TemporaryDirectory(prefix="inline.", ignore_cleanup_errors=True) as folder:
        server = start(options, folder, "--stop-writes-on-bgsave-error", "no", "--rdbcompression", "no")
        try:
            Collections().prepare(server.client)
            writer = Writer(server.port, 0)
            writer.start()
            for _ in range(5):
                resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE,
                                 (rng.randrange(1, 128 << 10), resource.RLIM_INFINITY))
                save(server, writer)
                await_field(server.client, "rdb_bgsave_in_progress", "0")
                if field(server.client, "rdb_last_bgsave_status") != "err":
                    raise Unexpected("the save does not fail")
                if left := [name for name in os.listdir(folder) if name.startswith("temp-")]:
                    raise Unexpected(f"left behind: {left}")
                await_field(server.client, "snapshot_inline_cleanup", "0")
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            low, high = save(server, writer)
            await_field(server.client, "rdb_bgsave_in_progress", "0")
            if field(server.client, "rdb_last_bgsave_status") != "ok":
                raise Unexpected("the save fails")
            server.kill()
            writer.stop()
            server = start(options, folder)
            checked(server.client, low, high)
        finally:
            server.kill()


def overwrite(server, commands):
    """Sends them beside a slow snapshot, and returns the greatest memory that it reported."""
    writer = server.connect()
    peak = 0

    def read():
        for _ in commands:
            writer.read()

    server.client.ask("BGSAVE")
    writer.send(b"".join(commands))
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while field(server.client, "rdb_bgsave_in_progress") != "0":
        peak = max(peak, int(field(server.client, "snapshot_inline_memory")))
    reader.join(BOUND_S)
    if reader.is_alive():
        raise Unexpected("writes go on waiting after the snapshot")
    return peak


def slow(options, rng):
    environment = {"LD_PRELOAD": os.path.join(options.programs, "shim.so"), "SHIM_RATE": str(SLOW_RATE)}
    old, new = "o" * SLOW_BYTES, "n" * 100
    names = [f"{i}" for i in range(SLOW_KEYS)]
    rng.shuffle(names)
    # How each is made, changed and read.
    shapes = {"keys": ("SET k:%s", "SET k:%s", "GET k:%s"), "fields": ("HSET hash f%s", "HSET hash f%s", "HGET hash f%s"),
              "items": ("RPUSH list", "LSET list %s", "LINDEX list %s")}

    def words(command, name):
        return command.replace("%s", name).split()

    for shape, (make, change, look) in shapes.items():
        with tempfile.TemporaryDirectory(prefix="inline.", ignore_cleanup_errors=True) as folder:
            server = start(options, folder, "--rdbcompression", "no", "--snapshot-excess-limit", str(LIMIT),
                           environment=environment)
            try:
                for name in names:
                    server.client.ask(*words(make, name), old)
                peak = overwrite(server, [encode(*words(change, name), new) for name in names])
                excess = int(field(server.client, "snapshot_inline_excess_peak"))
                if field(server.client, "rdb_last_bgsave_status") != "ok":
                    raise Unexpected(f"{shape}: the save fails: {server.log()[-600:]}")
                print(f"slow disk, {shape}: {excess} bytes beyond the fixed memory, {peak} in all", flush=True)
                if not 0 < excess < 2 * LIMIT:
                    raise Unexpected(f"{shape}: {excess} bytes were put aside; the limit is {LIMIT}")
                if server.client.ask(*words(look, names[-1])) != new.encode():
                    raise Unexpected(f"{shape}: a write is lost")
                server.kill()
                server = start(options, folder)
                for name in names:
                    if server.client.ask(*words(look, name)) != old.encode():
                        raise Unexpected(f"{shape}: {name} is not as at the start")
            finally:
                server.kill()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", help="one part")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results = Results()
    for part in (saves, syncs, full, slow):
        if options.only not in (None, part.__name__):
            continue
        fault = ""
        try:
            part(options, random.Random(options.seed))
        except (Unexpected, Closed, Reply) as error:
            fault = f"{type(error).__name__}: {error}"
        results.note(part.__name__, fault)
    results.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Restarts a primary and its replica, both with an append only file, at random times while clients write.

  restarts.py [--server PATH] [--cycles N] [--seed N]

Each cycle ends one of them or both with SIGKILL or SIGTERM; sometimes the end of its file is cut off, as a power failure
does. After the restart all that was acknowledged must be there (unless the primary's file was cut), and when the replica
has caught up, partially or fully, both must have the same data: a position in the stream that a file does not have shows
as a change that was applied twice or not at all."""

import glob
import os
import random
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, encode, field, option_parser

OPTIONS = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--auto-aof-rewrite-min-size", "100kb"]
KINDS = ["replica", "replica cut", "primary", "primary cut", "both", "idle primary", "primary TERM", "replica TERM"]
SCRIPT = "redis.call('incr', KEYS[1]) redis.call('append', KEYS[2], 'y') return redis.call('get', KEYS[1])"


class Writer(threading.Thread):
    """Counts: `acknowledged` has the last value that a reply has told of each counter."""

    def __init__(self, number, port, acknowledged, seed):
        super().__init__(daemon=True)
        self.number, self.port, self.acknowledged = number, port, acknowledged
        self.rng = random.Random(seed)
        self.ends = False
        self.fault = ""

    def run(self):
        try:
            client = Client(self.port)
            while not self.ends:
                self.step(client)
                if self.rng.random() < 0.3:
                    time.sleep(self.rng.random() * 0.01)  # so that turns differ
            client.close()
        except (Closed, OSError, ValueError, TypeError):
            pass
        except Reply as error:
            self.fault = str(error)

    def count(self, client, key, times):
        client.send(encode("INCR", key) * times)
        for _ in range(times):
            self.acknowledged[key] = client.read()

    def step(self, client):
        rng, number = self.rng, self.number
        key = f"count:{number}:{rng.randrange(20)}"
        what = rng.random()
        if what < 0.5:
            self.count(client, key, 1)
        elif what < 0.6:
            self.count(client, key, 20)
        elif what < 0.68:
            client.ask("PUBLISH", "channel", "text" * rng.randrange(5))
        elif what < 0.76:
            client.send(encode("MULTI") + encode("INCR", key) + encode("RPUSH", f"list:{number}", "x") + encode("EXEC"))
            self.acknowledged[key] = [client.read() for _ in range(4)][3][0]
        elif what < 0.82:
            client.ask("SET", f"short:{rng.randrange(50)}", "v", "PX", rng.randrange(5, 3000))
            client.ask("GET", f"short:{rng.randrange(50)}")
        elif what < 0.88:
            client.ask("EVAL", SCRIPT, 2, f"script:{number}", f"text:{number}")
        elif what < 0.92:
            client.ask("DEL", "none")
            client.ask("SADD", "set", rng.random(), rng.random())
            client.ask("SPOP", "set")
        elif what < 0.94:
            client.ask("WAIT", 1, 20)
        elif what < 0.96:
            client.ask("SELECT", 1)
            client.ask("INCR", key)
            client.ask("SELECT", 0)
        elif what < 0.995:
            client.ask("SET", f"large:{number}", "z" * rng.randrange(20000))
        else:
            try:
                client.ask("BGREWRITEAOF")
            except Reply:
                pass  # one is running


def cut(folder, rng):
    """Removes bytes at the end of the last file."""
    names = glob.glob(os.path.join(folder, "appendonlydir", "*.incr.aof"))
    path = max(names, key=lambda name: int(name.split(".")[-3]))
    os.truncate(path, max(0, os.path.getsize(path) - rng.randrange(1, 3000)))


class Pair:
    def __init__(self, program, base, policy):
        self.program, self.policy = program, policy
        self.folders = [os.path.join(base, name) for name in ("primary", "replica")]
        for folder in self.folders:
            os.mkdir(folder)
        self.primary = self.replica = None
        self.start_primary()
        self.start_replica()

    def start_primary(self):
        self.primary = Server(self.program, self.folders[0], "--appendfsync", self.policy, *OPTIONS)

    def start_replica(self):
        self.replica = Server(self.program, self.folders[1], "--appendfsync", self.policy, *OPTIONS,
                              "--replicaof", f"127.0.0.1 {self.primary.port}")

    def follow(self):
        client = self.replica.connect()
        client.ask("REPLICAOF", "127.0.0.1", self.primary.port)
        client.close()

    def synced(self):
        primary, replica = self.primary.connect(), self.replica.connect()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            same = field(primary, "master_repl_offset") == field(replica, "master_repl_offset")
            if same and field(replica, "master_link_status") == "up" and \
                    primary.ask("DEBUG", "DIGEST") == replica.ask("DEBUG", "DIGEST"):
                return True
            time.sleep(0.02)
        return False

    def end(self):
        for server in (self.primary, self.replica):
            server.kill()


def missing(pair, acknowledged):
    client = pair.primary.connect()
    for key, value in acknowledged.items():
        found = int(client.ask("GET", key) or 0)
        if found < value:
            return f"{key} is {found}, acknowledged was {value}"
    return ""


def cycle(pair, kind, acknowledged, counts, rng):
    """Returns a fault or ""."""
    writers = [Writer(i, pair.primary.port, acknowledged, rng.random()) for i in range(3)]
    for writer in writers:
        writer.start()
    time.sleep(rng.random())

    def end_writers():
        for writer in writers:
            writer.ends = True
        for writer in writers:
            writer.join()

    if kind == "idle primary":
        end_writers()
        time.sleep(rng.random())
    fault = ""
    end = "stop" if "TERM" in kind else "kill"
    if "replica" in kind or kind == "both":
        getattr(pair.replica, end)()
        if "cut" in kind:
            cut(pair.folders[1], rng)
    if "primary" in kind or kind == "both":
        getattr(pair.primary, end)()
        end_writers()
        if "cut" in kind:
            cut(pair.folders[0], rng)
            acknowledged.clear()
        pair.start_primary()
        fault = missing(pair, acknowledged)
    before = int(field(pair.primary.connect(), "sync_full"))
    if pair.replica.process.poll() is not None:
        pair.start_replica()
    else:
        pair.follow()
    end_writers()
    if not fault and not pair.synced():
        fault = "the replica has other data, or does not follow"
    fault = fault or next((writer.fault for writer in writers if writer.fault), "")
    full = int(field(pair.primary.connect(), "sync_full")) - before
    counts.setdefault(kind, [0, 0])[full > 0] += 1
    return fault


def main():
    options = option_parser(__doc__)
    options.add_argument("--cycles", type=int, default=40)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    arguments = options.parse_args()
    rng = random.Random(arguments.seed)
    print(f"restarts.py: seed {arguments.seed}, {arguments.cycles} cycles")
    results = Results()
    for policy in ("everysec", "always"):
        counts, acknowledged = {}, {}
        with tempfile.TemporaryDirectory() as base:
            pair = Pair(arguments.server, base, policy)
            try:
                fault = "" if pair.synced() else "no first synchronisation"
                for number in range(arguments.cycles // 2):
                    kind = rng.choice(KINDS)
                    fault = fault or cycle(pair, kind, acknowledged, counts, rng)
                    if fault:
                        fault = f"cycle {number}, {kind}: {fault}\n{pair.primary.log()[-3000:]}\n{pair.replica.log()[-3000:]}"
                        break
            finally:
                pair.end()
        text = ", ".join(f"{kind} {partial}:{full}" for kind, (partial, full) in sorted(counts.items()))
        print(f"appendfsync {policy}, partial:full of {text}")
        results.note(f"restarts with appendfsync {policy}", fault)
    results.finish()


if __name__ == "__main__":
    main()

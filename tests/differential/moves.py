#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Moves a dataset between two servers under writes, and compares all keys.

    moves.py OURS PEER [--back] [--seconds N] [--rate N] [--base N] [--seed N] [--stay]

OURS and PEER are programs of servers, for example of Redis 7.4 to 8.6. PEER is filled and written to (streams, hashes with times of fields, scripts,
transactions, lists, sorted sets, expiring keys, other databases). OURS becomes its replica; the link is cut once by either side, and once for longer
than the backlog lasts, while it synchronises fully again. Then all keys are compared, PEER hands over to OURS with FAILOVER, and after
further writes all keys are compared again. --back: from OURS with `outgoing-format redis` to PEER. --seconds: between two cuts. --rate: writes a second that
are tried. --stay: without the hand-over. Commands that PEER does not have are left out. Ends with "N passed, N failed"."""
import argparse
import random
import signal
import sys
import time

import move_workload
from move_workload import Writers
from servers import Client, Server

SECONDS = 120
STREAM_PARTS = ("last-generated-id", "max-deleted-entry-id", "entries-added", "recorded-first-entry-id")
# Ours reports these only of streams that have used them.
PRODUCERS = {"idmp-duration": 100, "idmp-maxsize": 100, "pids-tracked": 0, "iids-tracked": 0, "iids-added": 0, "iids-duplicates": 0}


class Failed(Exception):
    pass


def wait(is_done, what, server=None):
    """The last lines of the server's log explain why it was not in time."""
    end = time.monotonic() + SECONDS
    while not is_done():
        if time.monotonic() > end:
            raise Failed(f"not in time: {what}\n{server.last_lines() if server else ''}")
        time.sleep(0.02)


# ---- what a server has

def paired(flat):
    return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)} if isinstance(flat, list) else {}


def stream_state(info):
    """Without consumers that have no pending entries: a Redis does not tell its replicas that a read without a result has made one."""
    info = paired(info)
    out = {part: info[part] for part in STREAM_PARTS} | {part: info.get(part, value) for part, value in PRODUCERS.items()}
    for group in map(paired, info.get("groups", [])):
        pending = group["pending"] if "pending" in group and isinstance(group["pending"], list) else group["pel"]
        out[group["name"]] = [group["last-delivered-id"], group["entries-read"], sorted(pending)]
    return out


def details(client, key, kind):
    """The requests whose replies are the value."""
    return {b"string": [("GET", key)], b"list": [("LRANGE", key, 0, -1)], b"set": [("SMEMBERS", key)], b"hash": [("HGETALL", key)],
            b"zset": [("ZRANGE", key, 0, -1, "WITHSCORES")],
            b"stream": [("XRANGE", key, "-", "+"), ("XINFO", "STREAM", key, "FULL", "COUNT", 0)]}.get(kind, [("DUMP", key)])


def hash_state(client, key, flat):
    names = flat[::2]
    times = client("HPEXPIRETIME", key, "FIELDS", len(names), *names) if names else []
    return sorted(zip(names, flat[1::2], times)) if isinstance(times, list) else times


def state_of(client, key):
    """Type, expiry time and value of a key of the selected database."""
    kind, expiry = client.many([("TYPE", key), ("PEXPIRETIME", key)])
    if kind == b"none":
        return None
    value = client.many(details(client, key, kind))
    if kind == b"hash":
        value = hash_state(client, key, value[0])
    elif kind == b"stream":
        value[1] = stream_state(value[1])
    elif kind == b"set":
        value = sorted(value[0])
    return kind, expiry, value


def names_of(client, databases):
    names = set()
    for db in range(databases):
        client("SELECT", db)
        names |= {(db, key) for key in client("KEYS", "*")}
    return names


def without_producers(state):
    if state and state[0] == b"stream":
        state[2][1] = {part: value for part, value in state[2][1].items() if part not in PRODUCERS}
    return state


def differing(clients, names, producers):
    out = []
    for db in sorted({db for db, _ in names}):
        for client in clients:
            client("SELECT", db)
        for key in sorted(key for number, key in names if number == db):
            one, two = (state_of(client, key) for client in clients)
            if not producers:
                one, two = without_producers(one), without_producers(two)
            if one != two:
                out.append((db, key, one, two))
    return out


def where_differ(one, two):
    """The parts of two texts around their first difference."""
    at = next((i for i, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))
    begin = max(0, at - 100)
    return f"{one[:10]}\n    ..{one[begin:at + 150]}\n    ..{two[begin:at + 150]}"


def libraries(client):
    return sorted(paired(library)["library_code"] for library in client("FUNCTION", "LIST", "WITHCODE"))


def compare(first, second, what, producers):
    """Raises Failed if the data differ, apart from what expires meanwhile; `producers`: also the ids of producers of streams."""
    clients = [Client(server.port) for server in (first, second)]
    names = names_of(clients[0], 16) | names_of(clients[1], 16)
    count, differences = len(names), differing(clients, names, producers)
    end = time.monotonic() + 15
    while differences and time.monotonic() < end:
        differences = differing(clients, {(db, key) for db, key, _, _ in differences}, producers)
    if libraries(clients[0]) != libraries(clients[1]):
        raise Failed(what + ": the functions differ")
    for client in clients:
        client.close()
    if differences:
        shown = "\n".join(f"  db {db} {key!r}: {where_differ(repr(one), repr(two))}" for db, key, one, two in differences[:8])
        raise Failed(f"{what}: {len(differences)} of {count} keys differ\n{shown}")
    print(f"        {what}: {count} keys, 0 differ", flush=True)


# ---- the move

class Move:
    """`source` has the data and hands over to `target`."""

    def __init__(self, options):
        self.options, self.servers, self.kinds = options, [], []
        try:
            for program in (options.ours, options.peer):
                ours = ("--outgoing-format", "redis") if program == options.ours and options.back else ()
                self.servers.append(Server(program, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb", *ours))
            ours, peer = self.servers
            self.source, self.target = (ours, peer) if options.back else (peer, ours)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        for server in self.servers:
            server.stop()

    def known(self):
        """Templates of commands that the servers have that must have them."""
        asked = self.servers if self.options.back else [self.source]
        out = []
        for server in asked:
            move_workload.prepare(server.client, 0)
        for template in move_workload.templates():
            if all(move_workload.known_to(server.client, template) for server in asked):
                out.append(template)
        for server in asked:
            server.client("FLUSHALL")
        return out

    def is_linked(self):
        return self.target.info("replication").get("master_link_status") == "up"

    def synchronisations(self):
        stats = self.source.info("stats")
        return int(stats["sync_full"]), int(stats["sync_partial_ok"])

    def follow(self):
        self.target.client("REPLICAOF", "127.0.0.1", self.source.port)
        wait(self.is_linked, "the first synchronisation", self.target)

    def cut(self, server, kind, full):
        """Closes the link at one side. It comes back by a partial resynchronisation; a Redis as the replica may have forgotten its position, also with a
        Redis as the primary. If `full`, the target is stopped until the backlog, which is made small, has lost what it needs."""
        before = self.synchronisations()
        if full:
            self.target.process.send_signal(signal.SIGSTOP)
            self.source.client("CONFIG", "SET", "repl-backlog-size", 16384)
        try:
            server.client("CLIENT", "KILL", "TYPE", kind)
            if full:
                offset = self.offset(self.source)
                wait(lambda: self.offset(self.source) > offset + (1 << 17), "the writes that the backlog loses")
        finally:
            self.target.process.send_signal(signal.SIGCONT)

        def is_synchronised():
            now = self.synchronisations()
            return now[0] > before[0] if full else now[1] > before[1] or (self.options.back and now[0] > before[0])
        wait(is_synchronised, f"the {'full' if full else 'partial'} resynchronisation", self.target)
        wait(self.is_linked, "the link", self.target)
        if full:
            self.source.client("CONFIG", "SET", "repl-backlog-size", 1 << 26)
        elif self.synchronisations()[0] != before[0] and not self.options.back:
            raise Failed("a short cut led to a full synchronisation\n" + self.target.last_lines())

    @staticmethod
    def offset(server):
        return int(server.info("replication")["master_repl_offset"])

    def level(self, first, second):
        """Waits until the replica `second` has all of `first`."""
        wait(lambda: self.offset(first) == self.offset(second), "equal offsets", second)

    def compare(self, first, second, what):
        """While nothing is written. Redis gives us the ids of producers, if it has them, and gets none."""
        first.client("SET", "mark", what)
        self.level(first, second)
        has_producers = any("XADD" in words and "IDMP" in words for template in self.kinds for words in template)
        compare(first, second, what, has_producers and first == self.source and not self.options.back)
        for server in self.servers:
            fields = server.info("replication")
            if fields.get("master_stream_errors", "0") != "0":
                raise Failed(f"{what}: {fields['master_stream_errors']} errors of the stream: {fields.get('master_stream_last_error')}")

    def hand_over(self):
        self.source.client("FAILOVER", "TO", "127.0.0.1", self.target.port, "TIMEOUT", 60000)
        wait(lambda: self.target.client("ROLE")[0] == b"master", "the hand-over", self.source)
        wait(lambda: self.source.info("replication").get("master_link_status") == "up", "the former primary as a replica", self.source)


def phase(move, known, seed, what, act):
    """Writes while `act` runs and for some seconds after it; returns what each writer had acknowledged."""
    options = move.options
    writers = Writers([move.source.port, move.target.port], known, seed, options.rate)
    try:
        wait(lambda: all(writers.acked()), "the writers")
        act()
        time.sleep(options.seconds)
    finally:
        rate = writers.end()
    if writers.errors():
        raise Failed(f"{what}: a write failed: {writers.errors()[0]}")
    print(f"        {what}: {writers.sent()} writes, {rate:.0f} a second", flush=True)
    return writers.acked()


def run(move):
    known = move.kinds = move.known()
    print(f"        {len(known)} of {len(move_workload.templates())} kinds of writes", flush=True)
    move_workload.prepare(move.source.client, move.options.base)
    cuts = [(move.source, "replica", False), (move.target, "master", False), (move.source, "replica", True)]

    def follow_with_cuts():
        move.follow()
        for server, kind, full in cuts:
            time.sleep(move.options.seconds)
            move.cut(server, kind, full)

    phase(move, known, move.options.seed, "following, with three cuts", follow_with_cuts)
    print("        full and partial synchronisations: %d, %d" % move.synchronisations())
    move.compare(move.source, move.target, "before the hand-over")
    if move.options.stay:
        return
    acked = phase(move, known, move.options.seed + 1, "the hand-over", move.hand_over)
    move.compare(move.target, move.source, "after the hand-over")
    for i, value in enumerate(acked):
        if int(move.target.client("GET", f"count:{i}")) < value:
            raise Failed(f"an acknowledged write of writer {i} is missing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--back", action="store_true")
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, default=50000)
    parser.add_argument("--base", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    problem = None
    move = Move(options)
    try:
        run(move)
    except (Failed, OSError) as error:
        problem = error
        for server in move.servers:
            if server.process.poll() is not None:
                problem = f"{problem}\na server has ended:\n{server.last_lines(60)}"
    finally:
        move.stop()
    title = f"{'back to' if options.back else 'from'} {options.peer}"
    print(f"FAILED  {title}: {problem}" if problem else f"ok      {title}")
    print(f"{int(not problem)} passed, {int(bool(problem))} failed")
    return int(bool(problem))


if __name__ == "__main__":
    sys.exit(main())

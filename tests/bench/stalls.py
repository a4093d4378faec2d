#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long a neighbour waits for a GET while one client does something large, on one or two servers.

    tests/bench/stalls.py OURS [PEER] [--only REGEX] [--rounds N] [--scale F] [--most MS]

For each row a server is started and prepared. Then the neighbour, a process of its own, sends one GET after the other, 0.1 ms
apart, while the row's act runs. Printed is the longest wait (ms), the least of the rounds: other programs only ever add. The row
`nothing` tells what the machine adds by itself. Rows above --most (default 2 ms) on OURS are repeated at the end; exits with 1 if
there are any. `-` is an act that the server refuses. --scale multiplies the counts. Rows with many clients have as many as
`ulimit -n` allows, at most 20,000; they are in the name of the row. The server and the neighbour get real-time priorities, if
the script may set them. Needs Python 3.9, nothing else."""
import argparse
import functools
import multiprocessing
import os
import random
import re
import resource
import select
import socket
import sys
import time

from keyspace import PING, Server, request

GAP_S = 0.0001
CLIENTS = min(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 2000)
SCALE = 1.0
ROWS = []
HOLDERS = []  # processes of the current row


def scaled(count):
    return max(1, int(count * SCALE))


def row(name, *extra, nodes=0):
    """Registers a generator: what comes before its `yield` prepares the server, the rest is measured. `extra` are directives,
    `nodes` is the number of nodes in the map of a cluster."""
    def add(function):
        ROWS.append((name, function, extra, nodes))
        return function
    return add


class Link:
    """A client of its own, which discards replies."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *requests):
        """Sends encoded requests while it reads, and returns after the reply to a PING that follows them."""
        rest, tail = memoryview(b"".join(requests) + PING), b""
        self.socket.setblocking(False)
        while not tail.endswith(b"+PONG\r\n"):
            readable, writable, _ = select.select([self.socket], [self.socket] if rest else [], [], 120)
            if writable:
                rest = rest[self.socket.send(rest[:1 << 20]):]
            if readable:
                some = self.socket.recv(1 << 20)
                if not some:
                    raise RuntimeError("the server closed the connection")
                tail = (tail + some)[-16:]
        self.socket.setblocking(True)

    def words(self, *words):
        self.ask(request(*words))

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)  # close() alone would not: the neighbour's process has it, too
        self.socket.close()


def grow(server, make, count, step=1000):
    """Sends make(from, to) for parts of `count` elements; the requests must have simple replies."""
    parts = [request(*make(at, min(at + step, count))) for at in range(0, count, step)]
    for at in range(0, len(parts), 50):
        server.send(parts[at:at + 50])


def populate(server, count):
    server.ask("DEBUG", "POPULATE", count, "key", 16)


# ------------------------------------------------------------------ requests and replies


@row("nothing")
def nothing(server):
    yield
    time.sleep(1)


@row("pipeline of 100,000 GET")
def pipeline_get(server):
    server.ask("SET", "k", "v" * 16)
    link = Link(server)
    yield
    link.ask(request("GET", "k") * scaled(100000))


@row("pipeline of 100,000 SET")
def pipeline_set(server):
    link = Link(server)
    many = b"".join(request("SET", f"key:{i}", "v" * 16) for i in range(scaled(100000)))
    yield
    link.ask(many)


@row("10 pipelines of 100,000 GET")
def pipelines(server):
    server.ask("SET", "k", "v" * 16)
    many = request("GET", "k") * scaled(100000)
    readers = [multiprocessing.Process(target=Link(server).ask, args=(many,)) for _ in range(10)]
    yield
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()




@row("1 M arguments, refused (GET)")
def arguments_refused(server):
    link = Link(server)
    many = request("GET", *range(scaled(1000000)))
    yield
    link.ask(many)


@row("1 M arguments, executed (EXISTS)")
def arguments_executed(server):
    link = Link(server)
    many = request("EXISTS", *range(scaled(1000000)))
    yield
    link.ask(many)


@row("1 M arguments in MULTI, DISCARD")
def arguments_discarded(server):
    link = Link(server)
    many = request("MULTI") + request("EXISTS", *range(scaled(1000000))) + request("DISCARD")
    yield
    link.ask(many)


@row("reply of 1 M elements (LRANGE)")
def reply_long(server):
    grow(server, lambda a, b: ["RPUSH", "list", *range(a, b)], scaled(1000000))
    link = Link(server)
    yield
    link.words("LRANGE", "list", "0", "-1")


@row("1,000 replies of 1,000 elements")
def replies(server):
    grow(server, lambda a, b: ["RPUSH", "list", *range(a, b)], 1000)
    link = Link(server)
    yield
    link.ask(request("LRANGE", "list", "0", "-1") * scaled(1000))


@row("10 pipelines of 1,000 LRANGE of 1,000")
def reply_pipelines(server):
    grow(server, lambda a, b: ["RPUSH", "list", *range(a, b)], 1000)
    many = request("LRANGE", "list", "0", "-1") * scaled(1000)
    readers = [multiprocessing.Process(target=Link(server).ask, args=(many,)) for _ in range(10)]
    yield
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def unsent(server, word, count):
    """A client with about `count` MB of replies that it does not read."""
    server.ask("SET", "large", b"x" * 1000000)
    server.ask("RPUSH", "list", *range(100000))
    server.ask("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    link = Link(server)
    link.socket.sendall(request(*word) * count)
    address = b" addr=127.0.0.1:%d " % link.socket.getsockname()[1]
    while True:
        held = [re.search(rb" omem=(\d+)", line) for line in server.ask("CLIENT", "LIST").split(b"\n") if address in line]
        if held and int(held[0].group(1)) > count * 900000:
            return link
        time.sleep(0.05)


@row("close with 500 MB unsent (GET of 1 MB)")
def close_unsent(server):
    link = unsent(server, ("GET", "large"), scaled(500))
    yield
    link.close()
    time.sleep(0.5)


@row("close with 500 MB unsent (LRANGE)")
def close_unsent_list(server):
    link = unsent(server, ("LRANGE", "list", "0", "-1"), scaled(500))
    yield
    link.close()
    time.sleep(0.5)


@row("close amid a request of 1 M arguments")
def close_arguments(server):
    link = Link(server)
    many = request("EXISTS", *range(scaled(1000000)))
    link.socket.sendall(many[:-100])
    yield
    link.close()
    time.sleep(0.5)


# ------------------------------------------------------------------ reports


def many_clients(server, count=CLIENTS):
    pipe, other = multiprocessing.Pipe()
    holder = multiprocessing.Process(target=hold_clients, args=(server.port, count, other), daemon=True)
    holder.start()
    HOLDERS.append(holder)
    pipe.recv()
    return pipe


def hold_clients(port, count, pipe):
    links = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    pipe.send("ready")
    while True:
        text, due = pipe.recv()
        for link in links:
            if due:
                link.sendall(request("BLPOP", "nolist", f"{due - time.time():.3f}"))
            else:
                link.sendall(text)
        pipe.send("sent")


MANY = ("--maxclients", str(CLIENTS + 100), "--tcp-backlog", "4000")


@row(f"CLIENT LIST, {CLIENTS:,} clients", *MANY)
def client_list(server):
    many_clients(server)
    link = Link(server)
    yield
    link.words("CLIENT", "LIST")


@row(f"ACL SETUSER, {CLIENTS:,} clients", *MANY)
def acl_setuser(server):
    many_clients(server)
    link = Link(server)
    yield
    link.words("ACL", "SETUSER", "default", "-debug")
    link.words("ACL", "SETUSER", "other", "on", "nopass", "~*", "+@all")
    link.words("ACL", "DELUSER", "other")


@row(f"ACL DELUSER of {CLIENTS:,} clients", *MANY)
def acl_deluser(server):
    server.ask("ACL", "SETUSER", "many", "on", "nopass", "~*", "+@all")
    holder = many_clients(server)
    holder.send((request("AUTH", "many", "x"), 0))
    holder.recv()
    time.sleep(1)
    yield
    server.ask("ACL", "DELUSER", "many")
    time.sleep(1)


@row(f"{CLIENTS:,} timers at once (BLPOP)", *MANY)
def timers(server):
    holder = many_clients(server)
    due = time.time() + 4
    holder.send((b"", due))
    holder.recv()
    while time.time() < due - 0.2:
        time.sleep(0.05)
    yield
    time.sleep(1)


@row(f"end of a pause, {CLIENTS:,} clients wait", *MANY)
def unpause(server):
    holder = many_clients(server)
    server.ask("CLIENT", "PAUSE", "60000", "WRITE")
    holder.send((request("SET", "k", "v"), 0))
    holder.recv()
    time.sleep(1)
    yield
    server.ask("CLIENT", "UNPAUSE")
    time.sleep(1)


@row(f"PUBLISH to {CLIENTS:,} clients", *MANY)
def publish(server):
    holder = many_clients(server)
    holder.send((request("SUBSCRIBE", "c"), 0))
    holder.recv()
    time.sleep(1)
    yield
    server.ask("PUBLISH", "c", "message")
    time.sleep(1)


@row("INFO everything, cluster", nodes=1)
def info_cluster(server):
    populate(server, scaled(100000))
    link = Link(server)
    yield
    link.words("INFO", "everything")


@row("CLUSTER SLOTS, 1,000 nodes", nodes=1000)
def cluster_slots(server):
    link = Link(server)
    yield
    link.words("CLUSTER", "SLOTS")


@row("CLUSTER SHARDS, 1,000 nodes", nodes=1000)
def cluster_shards(server):
    link = Link(server)
    yield
    link.words("CLUSTER", "SHARDS")


@row("CLUSTER NODES, 1,000 nodes", nodes=1000)
def cluster_nodes(server):
    link = Link(server)
    yield
    link.words("CLUSTER", "NODES")


@row("CLUSTER NODES, 16,384 ranges", nodes=-1000)
def cluster_ranges(server):
    link = Link(server)
    yield
    link.words("CLUSTER", "NODES")
    link.words("CLUSTER", "SLOTS")


@row("CLUSTER SLOT-STATS, all slots", "--cluster-slot-stats-enabled", "yes", nodes=1)
def slot_stats(server):
    link = Link(server)
    yield
    link.words("CLUSTER", "SLOT-STATS", "SLOTSRANGE", "0", "16383")


@row("CONFIG GET *")
def config_get(server):
    link = Link(server)
    yield
    link.words("CONFIG", "GET", "*")


@row("COMMAND")
def command(server):
    link = Link(server)
    yield
    link.words("COMMAND")


@row("COMMAND DOCS")
def command_docs(server):
    link = Link(server)
    yield
    link.words("COMMAND", "DOCS")


@row("LATENCY HISTOGRAM")
def latency_histogram(server):
    for words in (["GET", "k"], ["SET", "k", "v"], ["LPUSH", "l", "v"], ["HSET", "h", "f", "v"], ["ZADD", "z", "1", "m"]):
        server.ask(*words)
    link = Link(server)
    yield
    link.words("LATENCY", "HISTOGRAM")


@row("SLOWLOG GET -1, 100,000 entries", "--slowlog-max-len", "100000", "--slowlog-log-slower-than", "0")
def slowlog_get(server):
    fill_slowlog(server)
    link = Link(server)
    yield
    link.words("SLOWLOG", "GET", "-1")


@row("SLOWLOG RESET, 100,000 entries", "--slowlog-max-len", "100000", "--slowlog-log-slower-than", "0")
def slowlog_reset(server):
    fill_slowlog(server)
    link = Link(server)
    yield
    link.words("SLOWLOG", "RESET")


def fill_slowlog(server):
    server.send([request("SET", "key", "value")] * scaled(100000))
    server.ask("CONFIG", "SET", "slowlog-log-slower-than", "-1")


@row("PUBSUB CHANNELS, 1 M channels")
def pubsub_channels(server):
    hold = subscribe(server)
    link = Link(server)
    yield
    link.words("PUBSUB", "CHANNELS")
    hold.close()


def subscribe(server):
    server.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
    link = Link(server)
    link.words("HELLO", "3")  # PING has its usual reply
    for at in range(0, scaled(1000000), 10000):
        link.words("SUBSCRIBE", *range(at, at + 10000))
    return link


# ------------------------------------------------------------------ the keyspace


@row("growth of the table, 1 M to 2.4 M keys")
def growth(server):
    count = scaled(1000000)
    populate(server, count)
    link = Link(server)
    parts = [b"".join(request("SET", f"more:{i}", "v") for i in range(at, at + 50)) for at in range(0, int(count * 1.4), 50)]
    yield
    for part in parts:
        link.ask(part)


@row("active defragmentation, 1 M keys", "--active-defrag-ignore-bytes", "1mb", "--active-defrag-threshold-lower", "1")
def defragment(server):
    grow(server, lambda a, b: ["MSET", *(w for i in range(a, b) for w in (f"d:{i}", "v" * 100))], scaled(1000000))
    grow(server, lambda a, b: ["HSET", "hash", *(w for i in range(a, b) for w in (f"f:{i}", "v" * 50))], scaled(200000))
    chosen = random.Random(1).sample(range(scaled(1000000)), scaled(800000))
    grow(server, lambda a, b: ["UNLINK", *(f"d:{i}" for i in chosen[a:b])], len(chosen))
    yield
    server.ask("CONFIG", "SET", "activedefrag", "yes")
    time.sleep(3)


def huge(server, kind):
    count = scaled(1000000)
    if kind == "hash":
        grow(server, lambda a, b: ["HSET", "huge", *(w for i in range(a, b) for w in (f"f:{i}", f"value:{i}"))], count)
    elif kind == "set":
        grow(server, lambda a, b: ["SADD", "huge", *(f"m:{i}" for i in range(a, b))], count)
    elif kind == "zset":
        grow(server, lambda a, b: ["ZADD", "huge", *(w for i in range(a, b) for w in (i, f"m:{i}"))], count)
    elif kind == "list":
        grow(server, lambda a, b: ["RPUSH", "huge", *(f"e:{i}" for i in range(a, b))], count)
    else:
        for at in range(0, count, 1000):
            server.send([request("XADD", "huge", f"{i + 1}-1", "f", f"v{i}") for i in range(at, at + 1000)])


def add_huge():
    for kind in ("hash", "set", "zset", "list", "stream"):
        @row(f"DEL of a {kind} of 1 M")
        def delete(server, kind=kind):
            huge(server, kind)
            yield
            server.ask("DEL", "huge")
            time.sleep(0.2)
    for kind in ("hash", "zset", "stream"):
        @row(f"DEL of a {kind} of 1 M, lazyfree no", "--lazyfree-lazy-user-del", "no")
        def delete_now(server, kind=kind):
            huge(server, kind)
            yield
            server.ask("DEL", "huge")
            time.sleep(0.2)


add_huge()


@row("expiry of a hash of 1 M")
def expiry(server):
    huge(server, "hash")
    yield
    server.ask("PEXPIRE", "huge", "20")
    time.sleep(0.5)


@row("overwriting a hash of 1 M (SET)")
def overwrite(server):
    huge(server, "hash")
    yield
    server.ask("SET", "huge", "v")
    time.sleep(0.2)


@row("eviction of a hash of 1 M", "--maxmemory-policy", "allkeys-lru")
def eviction(server):
    huge(server, "hash")
    link = Link(server)
    yield
    server.ask("CONFIG", "SET", "maxmemory", server.used() - 10000000)
    for _ in range(100):
        link.words("SET", "small", "v")  # refused until memory has come back
    time.sleep(0.2)


@row("RENAME over a set of 1 M")
def rename_over(server):
    huge(server, "set")
    server.ask("SET", "small", "v")
    yield
    server.ask("RENAME", "small", "huge")
    time.sleep(0.2)


@row("FLUSHALL SYNC, ten sets of 1 M")
def flushall_few(server):
    huge(server, "set")
    for i in range(9):
        server.ask("COPY", "huge", f"copy:{i}")
    yield
    server.ask("FLUSHALL", "SYNC")
    time.sleep(0.2)


def members_that_expire(server, zset):
    due = int(time.time() * 1000) + 8000
    for at in range(0, scaled(1000000), 1000):
        names = [w for i in range(at, at + 1000) for w in ((i, f"m:{i}") if zset else (f"m:{i}",))]
        server.send([request("ZADDEX" if zset else "SADDEX", "huge", "PXAT", due, "MEMBERS", 1000, *names)])
    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    time.sleep(max(0, due / 1000 - time.time() + 0.01))


def add_expiring():
    for name, zset, words in (("SCARD", False, ("SCARD", "huge")), ("SADD", False, ("SADD", "huge", "new")),
                              ("ZCARD", True, ("ZCARD", "huge")), ("ZADD", True, ("ZADD", "huge", "1", "new"))):
        @row(f"{name}, 1 M members have expired")
        def expired(server, zset=zset, words=words):
            members_that_expire(server, zset)
            link = Link(server)
            yield
            link.words(*words)


add_expiring()


@row("HGETALL, 1 M fields have expired")
def expired_fields(server):
    due = int(time.time() * 1000) + 8000
    for at in range(0, scaled(1000000), 1000):
        pairs = [w for i in range(at, at + 1000) for w in (f"f:{i}", "v")]
        server.send([request("HSETEX", "huge", "PXAT", due, "FIELDS", 1000, *pairs)])
    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    time.sleep(max(0, due / 1000 - time.time() + 0.01))
    link = Link(server)
    yield
    link.words("HGETALL", "huge")
    link.words("HRANDFIELD", "huge")
    link.words("HSET", "huge", "new", "v")


# ------------------------------------------------------------------ reads of single values


def reads(name, kind, *words):
    """A row with one command on a value of a million elements."""
    @row(name)
    def read(server):
        huge(server, kind)
        if kind == "stream" and words[0].startswith("X") and words[0] not in ("XRANGE", "XREVRANGE", "XREAD"):
            server.ask("XGROUP", "CREATE", "huge", "group", "0")
            Link(server).ask(*(request("XREADGROUP", "GROUP", "group", f"c:{i}", "COUNT", 1000, "STREAMS", "huge", ">")
                               for i in range(scaled(1000))))
        link = Link(server)
        yield
        link.words(*words)


for command in (("stream", "XRANGE", "huge", "-", "+"), ("stream", "XREVRANGE", "huge", "+", "-"),
                ("stream", "XREAD", "STREAMS", "huge", "0"), ("stream", "XPENDING", "huge", "group", "-", "+", "1000000"),
                ("stream", "XINFO", "STREAM", "huge", "FULL", "COUNT", "0"), ("set", "SRANDMEMBER", "huge", "900000"),
                ("set", "SRANDMEMBER", "huge", "-1000000"), ("hash", "HRANDFIELD", "huge", "900000"),
                ("zset", "ZRANDMEMBER", "huge", "900000"), ("set", "DUMP", "huge"), ("hash", "DUMP", "huge"),
                ("zset", "DUMP", "huge"), ("list", "DUMP", "huge"), ("stream", "DUMP", "huge"),
                ("set", "MEMORY", "USAGE", "huge", "SAMPLES", "0"), ("hash", "MEMORY", "USAGE", "huge", "SAMPLES", "0"),
                ("set", "SORT", "huge", "ALPHA"), ("zset", "ZSCAN", "huge", "0", "COUNT", "1000000")):
    reads(f"{' '.join(command[1:])} ({command[0]})", *command)


def add_geo():
    for tail in ((), ("ASC",), ("COUNT", "100")):
        @row(" ".join(("GEOSEARCH of 1 M", *tail)))
        def geosearch(server, tail=tail):
            grow(server, lambda a, b: ["GEOADD", "geo", *(w for i in range(a, b)
                                                          for w in (i * 7919 % 360000 / 1000 - 180, i % 160000 / 1000 - 80, f"p:{i}"))],
                 scaled(1000000))
            link = Link(server)
            yield
            link.words("GEOSEARCH", "geo", "FROMLONLAT", "0", "0", "BYRADIUS", "20000", "km", *tail)


add_geo()


def add_texts():
    for words in (("BITCOUNT", "text"), ("BITPOS", "text", "1"), ("GET", "text"), ("GETRANGE", "text", "1", "-2"), ("DUMP", "text")):
        @row(f"{words[0]} of 500 MB")
        def read_text(server, words=words):
            server.ask("SETRANGE", "text", scaled(500000000), "x")
            server.ask("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
            link = Link(server)
            yield
            link.words(*words)


add_texts()


@row("SET of 100 MB")
def set_text(server):
    link = Link(server)
    text = b"x" * scaled(100000000)
    yield
    link.words("SET", "text", text)


@row("LCS of 10,000 and 10,000 bytes")
def lcs(server):
    chosen = random.Random(1)
    for key in ("a", "b"):
        server.ask("SET", key, "".join(chosen.choice("abcdefgh") for _ in range(10000)))
    link = Link(server)
    yield
    link.words("LCS", "a", "b")
    link.words("LCS", "a", "b", "IDX")


@row("PFCOUNT of 999 keys")
def pfcount(server):
    for i in range(999):
        server.send([request("PFADD", f"p:{i}", *(f"e:{i}:{j}" for j in range(1500)))])
    link = Link(server)
    yield
    link.words("PFCOUNT", *(f"p:{i}" for i in range(999)))


@row("200,000 keys that expire at once")
def expire_keys(server):
    due = int(time.time() * 1000) + 4000
    server.send([request("SET", f"e:{i}", "v", "PXAT", due) for i in range(scaled(200000))])
    time.sleep(max(0, due / 1000 - time.time() - 0.2))
    yield
    time.sleep(2)


@row("UNSUBSCRIBE of 1 M channels")
def unsubscribe(server):
    link = subscribe(server)
    yield
    link.words("UNSUBSCRIBE")


@row("close of a subscriber of 1 M channels")
def close_subscriber(server):
    link = subscribe(server)
    yield
    link.close()
    time.sleep(1)


@row("UNWATCH of 100,000 keys")
def unwatch(server):
    link = Link(server)
    for at in range(0, scaled(100000), 1000):
        link.words("WATCH", *range(at, at + 1000))
    yield
    link.words("UNWATCH")


@row("FLUSHALL SYNC, 2 M keys")
def flushall_sync(server):
    populate(server, scaled(2000000))
    yield
    server.ask("FLUSHALL", "SYNC")
    time.sleep(0.2)


@row("FLUSHALL ASYNC, 2 M keys")
def flushall_async(server):
    populate(server, scaled(2000000))
    yield
    server.ask("FLUSHALL", "ASYNC")
    time.sleep(0.5)


@row("SWAPDB, 2 M keys")
def swapdb(server):
    populate(server, scaled(2000000))
    yield
    server.ask("SWAPDB", "0", "1")
    time.sleep(0.2)


@row("FLUSHDB ASYNC with 100,000 watched keys")
def flush_watched(server):
    link = Link(server)
    populate(server, scaled(100000))
    for at in range(0, scaled(100000), 1000):
        link.words("WATCH", *(f"key:{i}" for i in range(at, at + 1000)))
    yield
    server.ask("FLUSHDB", "ASYNC")
    time.sleep(0.2)


# ------------------------------------------------------------------ measuring


def prioritize(pid, policy, level):
    try:
        os.sched_setscheduler(pid, policy, os.sched_param(level))
    except PermissionError:
        pass


def neighbour(port, pipe):
    prioritize(0, os.SCHED_FIFO, 2)
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    get, longest, told = request("GET", "neighbour"), 0, False
    while not pipe.poll():
        began = time.perf_counter()
        try:
            link.sendall(get)
            link.recv(64)
        except OSError:
            break  # the server was ended because it refused the act
        took = time.perf_counter() - began
        if told:
            longest = max(longest, took)
        else:
            pipe.send("ready")
            told = True
        time.sleep(GAP_S)
    pipe.send(longest)


CLUSTER = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-allow-reads-when-down", "yes")


def write_map(nodes, folder, port):
    """A nodes.conf with this node and others that nobody hears of; a negative number deals slots out one by one."""
    count, lines = abs(nodes), []
    for at in range(count):
        if nodes < 0:
            slots = " ".join(str(slot) for slot in range(at, 16384, count))
        else:
            slots = f"{at * 16384 // count}-{(at + 1) * 16384 // count - 1}"
        flags = "myself,master" if at == 0 else "master"
        address = f"127.0.0.1:{port if at == 0 else 1}@{port + 10000 if at == 0 else 1}"
        lines.append(f"{at:040x} {address},,tls-port=0,shard-id={at + 7:040x} {flags} - 0 0 {at + 1} connected {slots}\n")
    with open(os.path.join(folder, "nodes.conf"), "w", encoding="ascii") as file:
        file.write("".join(lines) + f"vars currentEpoch {count} lastVoteEpoch 0\n")


def measure(binary, function, extra, nodes):
    if nodes:
        extra = (*CLUSTER, *extra)
    with Server(binary, extra=extra, prepare=nodes and functools.partial(write_map, nodes)) as server:
        act = function(server)
        try:
            next(act)
            pipe, other = multiprocessing.Pipe()
            process = multiprocessing.Process(target=neighbour, args=(server.port, other), daemon=True)
            prioritize(server.process.pid, os.SCHED_RR, 1)
            process.start()
            pipe.recv()
            next(act, None)
            time.sleep(0.05)
        except RuntimeError as error:
            print(f"  refused: {error}", file=sys.stderr)
            return None
        finally:
            while HOLDERS:
                holder = HOLDERS.pop()
                holder.kill()
                holder.join()
        pipe.send("end")
        longest = pipe.recv()
        process.join()
        return longest * 1000


def shown(ms):
    return f"{'-' if ms is None else format(ms, '.2f'):>10}"


def main():
    global SCALE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--most", type=float, default=2)
    options = parser.parse_args()
    SCALE = options.scale
    behind = []
    binaries = [binary for binary in (options.ours, options.peer) if binary]
    print(f"{'ms':44}{'ours':>10}" + (f"{'peer':>10}" if options.peer else ""), flush=True)
    for name, function, extra, nodes in ROWS:
        if not re.search(options.only, name):
            continue
        rounds = [[measure(binary, function, extra, nodes) for binary in binaries] for _ in range(options.rounds)]
        least = [min((ms for ms in column if ms is not None), default=None) for column in zip(*rounds)]
        print(f"{name:44}" + "".join(map(shown, least)), flush=True)
        if least[0] is not None and least[0] > options.most:
            behind.append((least[0], name))
    print(f"{len(behind)} rows above {options.most} ms")
    for ms, name in sorted(behind, reverse=True):
        print(f"{shown(ms)}  {name}")
    sys.exit(1 if behind else 0)


if __name__ == "__main__":
    main()

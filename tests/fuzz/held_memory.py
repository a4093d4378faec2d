#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tries each row of the table in docs/memory.md, "What connections can hold", with peers that mean harm.

  held_memory.py --server PATH [--jobs N] [ROW...]

A row fails if the server comes to hold more than its bound, if the peer is not treated as the row says, and if there is no
trial for it; a trial without a row fails as well. A bound is a sum: sizes, directives (what CONFIG GET says while the row is
tried) and what the peer has sent, each with a factor, for all peers together or for `each`."""

import concurrent.futures
import os
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hostile_peers import Fault, Listener, Rig, Sentinel, report, requests, settle  # noqa: E402
from common import ROOT, Client, Closed, Reply, Results, encode, field, option_parser, reserve_port  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "memory.md")
TITLE = "## What connections can hold"
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
MARGIN = 512 << 10  # what else a server allocates meanwhile
WAIT_S = 60
QUIET_S = 2  # peers that can neither send nor receive for so long are done
FLOOD = 24 << 20  # bytes that all peers together send, unless a trial says another number


class Row:
    def __init__(self, line):
        self.name, _, self.bound, self.then = [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def rows():
    """The rows of the table, by name."""
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().split(TITLE + "\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return {row.name: row for row in map(Row, lines[1:])}


def directive(client, name):
    """The number that a directive has; of client-output-buffer-limit that of a class."""
    words = name.split()
    value = client.ask("CONFIG", "GET", words[0])[1].decode().split()
    return int(value[value.index(words[1].replace("replica", "slave")) + 1] if len(words) > 1 else value[0])


def bound_of(text, client, trial):
    """The bytes that a bound stands for."""
    total = 0
    for term in text.split(" + "):
        found = re.fullmatch(r"(?:(\d+) x )?(?:(\d+) ([KMG]B)|`([^`]+)`|(received))( each)?", term)
        if not found:
            raise Fault(f"the bound {term!r} cannot be read")
        factor, size, unit, name, received, each = found.groups()
        value = int(size) * UNITS[unit] if size else trial.sent if received else directive(client, name)
        total += int(factor or 1) * value * (trial.peers if each and not received else 1)
    return total + MARGIN


class Trial:
    """Peers of one server, and what the server holds because of them."""

    def __init__(self, options, folder):
        self.rig = Rig(options, folder, random.Random(0), Results())
        self.server = self.client = None
        self.sockets, self.listeners = [], []
        self.base = self.peak = self.sent = self.peers = self.closed = 0
        self.blocked = False

    def start(self, *arguments, password=None):
        self.server, self.client = self.rig.start(*arguments)
        if password:
            self.client.ask("AUTH", password)
        self.begin()

    def begin(self):
        self.base = self.used()

    def used(self):
        return int(field(self.client, "used_memory"))

    def measure(self):
        self.peak = max(self.peak, self.used() - self.base)

    def connect(self, count, port=None):
        made = []
        for _ in range(count):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what is not read is the server's
            peer.settimeout(WAIT_S)
            peer.connect(("127.0.0.1", port or self.server.port))
            made.append(peer)
        self.sockets += made
        self.peers = len(self.sockets)
        return made

    def listen(self, talk):
        listener = Listener(talk)
        self.listeners.append(listener)
        return listener

    def flood(self, data, most=FLOOD, head=b"", until=lambda: False):
        """Sends `head` and then `data` again and again on all connections, until each is closed or takes nothing any more."""
        pending = {peer: memoryview(head + data) for peer in self.sockets}
        moved_s = measured_s = time.monotonic()
        for peer in pending:
            peer.setblocking(False)
        while pending and self.sent < most and time.monotonic() < moved_s + QUIET_S and not until():
            _, ready, _ = select.select([], pending, [], 0.05)
            for peer in ready:
                try:
                    n = peer.send(pending[peer])
                except BlockingIOError:
                    continue
                except OSError:
                    self.closed += 1
                    del pending[peer]
                    continue
                self.sent += n
                moved_s = time.monotonic()
                pending[peer] = pending[peer][n:] or memoryview(data)
            if time.monotonic() > measured_s + 0.02:
                self.measure()
                measured_s = time.monotonic()
        self.blocked = bool(pending) and self.sent < most
        self.measure()

    def drive(self, step, is_closed, most=30000):
        """Runs step(), which makes the server produce what the peers do not read, until is_closed() says that one is closed."""
        for i in range(most):
            step()
            if i % 50 == 0:
                self.measure()
                self.closed = is_closed()
                if self.closed:
                    break
        self.measure()

    def note_closed(self):
        """Counts the peers whose connection the server has closed. They have read nothing: the kernel says so."""
        poll = select.poll()
        for peer in self.sockets:
            poll.register(peer, select.POLLRDHUP)
        self.closed = len(poll.poll(0))

    def outcome(self):
        if not self.closed:
            self.note_closed()
        return "closed" if self.closed else "not read" if self.blocked else "believed"

    def end(self):
        for listener in self.listeners:
            listener.close()
        for peer in self.sockets:
            peer.close()
        self.measure()
        self.rig.end(self.server)


TRIALS = {}


def trial(name):
    def add(function):
        TRIALS[name] = function
        return function
    return add


# ---------------------------------------------------------------------------------------------------- clients

OPEN_SET = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$%d\r\n"
BEFORE_LOGIN = ("--requirepass", "secret", "--client-memory-before-auth", "2mb")


def before_login(t, port=None):
    t.connect(300, port)
    t.flood(b"$16000\r\n" + b"x" * 16000 + b"\r\n", head=b"*10\r\n")


@trial("client before login")
def client_before_login(t):
    t.start(*BEFORE_LOGIN, password="secret")
    before_login(t)


@trial("client on the admin port, before login")
def client_admin_port(t):
    port, guard = reserve_port()
    with guard:
        t.start(*BEFORE_LOGIN, "--admin-port", str(port), password="secret")
        before_login(t, port)


@trial("client: unfinished or queued commands")
def client_unfinished(t):
    t.start("--client-query-buffer-limit", "1mb")
    t.connect(2)
    t.flood(b"$1\r\nx\r\n" * 1000, head=b"*2000000000\r\n")
    t.connect(2)
    t.flood(b"x" * 65536, 2 * FLOOD, head=OPEN_SET % 100000000)
    t.connect(2)
    t.flood(b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n" * 1000, 3 * FLOOD, head=b"*1\r\n$5\r\nMULTI\r\n")


def unread(t):
    t.client.ask("SET", "value", "x" * 1000)
    t.begin()
    t.connect(5)
    t.flood(encode("GET", "value") * 100)


@trial("client: replies")
def client_replies(t):
    t.start("--client-output-buffer-limit", "normal 1mb 0 0")
    unread(t)


@trial("clients together")
def clients_together(t):
    t.start("--maxmemory-clients", "4mb")
    unread(t)
    t.connect(20)
    t.flood(b"x" * 65536, 3 * FLOOD, head=OPEN_SET % 1000000)


@trial("subscriber")
def subscriber(t):
    t.start("--client-output-buffer-limit", "pubsub 1mb 0 0")
    for peer in t.connect(10):
        peer.sendall(encode("SUBSCRIBE", "news"))
    settle("they do not subscribe", lambda: t.client.ask("PUBSUB", "NUMSUB", "news")[1] == 10)
    t.drive(lambda: t.client.ask("PUBLISH", "news", "x" * 1000), lambda: t.client.ask("PUBSUB", "NUMSUB", "news")[1] < 10)


@trial("MONITOR")
def monitor(t):
    t.start("--client-output-buffer-limit", "normal 1mb 0 0")
    for peer in t.connect(5):
        peer.sendall(encode("MONITOR"))
        peer.recv(5)
    t.drive(lambda: t.client.ask("ECHO", "x" * 1000), lambda: int(field(t.client, "connected_clients")) == 1)


# ---------------------------------------------------------------------------------------------------- replication

OUTPUT = ("--client-output-buffer-limit", "replica 1mb 0 0", "--repl-backlog-size", "1mb")


def fill(client, megabytes):
    """Keys of one slot, below 8192."""
    for i in range(megabytes * 16):
        client.ask("SET", f"{{b}}{i}", "x" * 65536)


def ask_dataset(t):
    (peer,) = t.connect(1)
    peer.sendall(encode("REPLCONF", "capa", "eof", "capa", "psync2", "version", "9.1.2"))
    peer.recv(5)
    peer.sendall(encode("PSYNC", "?", "-1"))
    return peer


def has_no_replica(t):
    return field(t.client, "connected_slaves") == "0"


@trial("replica")
def replica(t):
    t.start(*OUTPUT)
    peer = ask_dataset(t)
    data, mark = b"", None
    while not (mark and data.count(mark) == 2):
        data += peer.recv(4096)
        found = re.search(rb"\$EOF:(.{40})\r\n", data)
        mark = found and found.group(1)
    peer.sendall(encode("REPLCONF", "ACK", "0"))
    settle("it is not online", lambda: "state=online" in field(t.client, "slave0"))
    t.begin()
    t.drive(lambda: t.client.ask("SET", "key", "x" * 1000), lambda: has_no_replica(t))


@trial("replica: dataset")
def replica_dataset(t):
    t.start(*OUTPUT, "--repl-timeout", "3")
    fill(t.client, 20)
    t.begin()
    ask_dataset(t)
    settle("no dataset is sent", lambda: not has_no_replica(t))
    t.drive(lambda: t.client.ask("SET", "key", "x" * 1000), lambda: has_no_replica(t))


def follow(t, talk):
    """`talk` is a primary's."""
    listener = t.listen(talk)
    t.client.ask("REPLICAOF", "127.0.0.1", listener.port)
    return listener


def await_closed(t):
    """Until the server has closed one of the connections that it has opened."""
    end = time.monotonic() + WAIT_S
    while not t.closed:
        if time.monotonic() > end:
            raise Fault("it closes no connection")
        t.measure()


def pour(t, connection, data, most=FLOOD):
    """Sends data again and again until the connection is closed or takes nothing for a while."""
    connection.settimeout(QUIET_S)
    try:
        while t.sent < most:
            t.sent += connection.send(data)
    except TimeoutError:
        t.blocked = True
    except OSError:
        t.closed += 1


@trial("primary: handshake")
def primary_handshake(t):
    def talk(connection):
        connection.recv(100)
        pour(t, connection, b"+" * 65536)

    t.start()
    follow(t, talk)
    await_closed(t)


class Primary:
    """Talks with replicas: says yes to all, and sends an empty dataset of another server."""

    def __init__(self, t, dataset, streams):
        self.t, self.dataset, self.streams = t, dataset, streams
        self.done = threading.Event()

    def talk(self, connection):
        for words in requests(connection):
            name = words[0].lower()
            if name == b"psync":
                connection.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 100\r\n$EOF:" + b"m" * 40 + b"\r\n" + self.dataset + b"m" * 40)
                settle("the link is not up", lambda: field(Client(self.t.server.port), "master_link_status") == "up")
                self.streams(connection)
                self.done.set()
                self.t.ended.wait(WAIT_S)
                return
            connection.sendall(b"+PONG\r\n" if name == b"ping" else b"+OK\r\n")


def empty_dataset(t):
    """A dataset without keys, as the server writes it."""
    t.client.ask("SAVE")
    with open(os.path.join(t.server.folder, "dump.rdb"), "rb") as file:
        return file.read()


def measure_until(t, event):
    end = time.monotonic() + WAIT_S
    while not event.wait(0.02):
        t.measure()
        if time.monotonic() > end:
            raise Fault(f"it takes too long:\n{t.server.log()[-2000:]}")
    t.measure()


@trial("primary: stream")
def primary_stream(t):
    t.start("--proto-max-bulk-len", "1mb", "--repl-timeout", "60")
    t.ended = threading.Event()

    def key_size():
        client = Client(t.server.port)
        try:
            return client.ask("STRLEN", "key")
        finally:
            client.close()

    def stream(connection):
        size = 2 << 20  # more than an argument of others may have
        connection.sendall(OPEN_SET % size + b"x" * size + b"\r\n")
        settle("a longer value than proto-max-bulk-len is not taken from the primary", lambda: key_size() == size)
        t.sent += size
        connection.sendall(OPEN_SET % (1 << 39))
        pour(t, connection, b"x" * 65536, 8 << 20)

    primary = Primary(t, empty_dataset(t), stream)
    t.begin()
    follow(t, primary.talk)
    measure_until(t, primary.done)
    t.ended.set()


@trial("primary: dual channel")
def primary_dual_channel(t):
    t.start("--client-output-buffer-limit", "replica 2mb 0 0", "--dual-channel-replication-enabled", "yes", "--repl-timeout", "60")
    done, ended = threading.Event(), threading.Event()
    dataset = empty_dataset(t)

    def talk(connection):
        asked = 0
        for words in requests(connection):
            name = words[0].lower()
            if name == b"sync":
                connection.sendall(b"$ENDOFF:100 " + b"a" * 40 + b" 0 7\r\n$EOF:" + b"m" * 40 + b"\r\n" + dataset[:5])
                ended.wait(WAIT_S)
                return
            if name == b"psync" and asked:
                connection.sendall(b"+CONTINUE\r\n")
                pour(t, connection, encode("SET", "key", "x" * 1000) * 60)
                done.set()
                ended.wait(WAIT_S)
                return
            asked += name == b"psync"
            connection.sendall(b"+DUALCHANNELSYNC\r\n" if name == b"psync" else b"+PONG\r\n" if name == b"ping" else b"+OK\r\n")

    t.begin()
    follow(t, talk)
    measure_until(t, done)
    ended.set()


# ---------------------------------------------------------------------------------------------------- cluster

OTHER = "f" * 40


def start_node(t, *arguments, talk=None, bus=None):
    """A node of a cluster with another one, which is no server: its port and that of its bus are talked to by `talk` and `bus`."""
    idle = threading.Event()
    t.ended = idle
    port = t.listen(talk or (lambda connection: idle.wait(WAIT_S))).port
    bus_port = t.listen(bus or (lambda connection: idle.wait(WAIT_S))).port
    t.bus_port, t.guard = reserve_port()
    folder = os.path.join(t.rig.folder, "0")
    line = "%s 127.0.0.1:%d@%d,,tls-port=0,shard-id=%s %s - 0 0 %d connected %s\n"
    os.mkdir(folder)
    with open(os.path.join(folder, "nodes.conf"), "w", encoding="ascii") as file:
        file.write(line % ("e" * 40, 1, 2, "e" * 40, "myself,master", 1, "0-8191"))
        file.write(line % (OTHER, port, bus_port, OTHER, "master", 2, "8192-16383"))
        file.write("vars currentEpoch 2 lastVoteEpoch 0\n")
    t.start("--cluster-enabled", "yes", "--cluster-port", str(t.bus_port), "--cluster-node-timeout", "600000", *arguments)
    settle("the cluster is not up", lambda: b"cluster_state:ok" in t.client.ask("CLUSTER", "INFO"))


@trial("slot migration: source")
def slot_source(t):
    start_node(t, "--proto-max-bulk-len", "1mb")
    t.begin()
    t.connect(2)
    for i, peer in enumerate(t.sockets):
        peer.sendall(encode("CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", OTHER, "NAME", f"{i:040x}", "SLOTSRANGE", 9000 + i, 9000 + i))
        reply = peer.recv(100)
        if reply != b"+OK\r\n":
            raise Fault(f"the import is refused: {reply}")
    t.flood(b"x" * 65536, 8 << 20, head=OPEN_SET % (1 << 39))


def migrate_slot(t):
    t.client.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, 8191, "NODE", OTHER)


@trial("slot migration: target, handshake")
def slot_target_handshake(t):
    def talk(connection):
        connection.recv(100)
        pour(t, connection, b"+" * 65536)

    start_node(t, talk=talk)
    t.peers = 1
    t.begin()
    migrate_slot(t)
    await_closed(t)


@trial("slot migration: target")
def slot_target(t):
    def talk(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.recv(1000)
        connection.sendall(b"+OK\r\n" + encode("CLUSTER", "SYNCSLOTS", "ACK"))
        t.sockets.append(connection)
        t.ended.wait(WAIT_S)

    start_node(t, *OUTPUT, talk=talk)
    fill(t.client, 20)
    t.peers = 1
    t.begin()
    migrate_slot(t)
    settle("no target", lambda: t.sockets)
    t.drive(lambda: t.client.ask("SET", "{b}0", "x" * 1000), lambda: b"failed" in str(t.client.ask("CLUSTER", "GETSLOTMIGRATIONS")).encode())


@trial("MIGRATE: target")
def migrate_target(t):
    endings = [b"+" * 65536, b"$500000000\r\n" + b"x" * 65536, b"-" + b"x" * 65536, b"+OK\r\n" * 10000 + b"+" * 9]

    def talk(connection):
        connection.recv(100)
        pour(t, connection, endings[t.peers % len(endings)], t.sent + (8 << 20))

    t.start()
    t.client.ask("SET", "key", "value")
    listener = t.listen(talk)
    t.begin()
    for t.peers in range(len(endings)):
        asked = Client(t.server.port)
        asked.send(encode("MIGRATE", "127.0.0.1", listener.port, "key", 0, 5000))
        while not select.select([asked.file], [], [], 0)[0]:
            t.measure()
        try:
            asked.read()
            raise Fault("such replies are believed")
        except Reply as error:
            if not str(error).startswith("IOERR") and "replied with error" not in str(error):
                raise Fault(str(error)) from error
        asked.close()
    t.peers = 1
    await_closed(t)


@trial("bus: unknown senders")
def bus_unknown(t):
    start_node(t)
    t.begin()
    t.connect(60, t.bus_port)
    t.flood(b"x" * 65536, 50 << 20, head=b"RCmb" + struct.pack(">IHHHH", 1 << 20, 1, 1, 0, 0))


@trial("bus: link")
def bus_link(t):
    def bus(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.recv(8)
        t.sockets.append(connection)
        t.ended.wait(WAIT_S)

    start_node(t, "--cluster-link-sendbuf-limit", "1mb", bus=bus)
    settle("no link", lambda: t.sockets)
    t.peers = 1
    t.begin()
    t.drive(lambda: t.client.ask("PUBLISH", "news", "x" * 10000),
            lambda: b"limit_exceeded:0" not in t.client.ask("CLUSTER", "INFO"))


# ---------------------------------------------------------------------------------------------------- others


@trial("Sentinel: link")
def sentinel_link(t):
    endings = [b"+" * 65536, b"$500000000\r\n" + b"x" * 65536, b"*3\r\n$900000\r\n" + b"x" * 900000 + b"\r\n"]
    opened = []

    def talk(connection):
        opened.append(connection)
        connection.recv(100)
        pour(t, connection, endings[len(opened) % 3], t.sent + FLOOD)

    folder = os.path.join(t.rig.folder, "sentinel")
    os.mkdir(folder)
    t.server = Sentinel(t.rig.options.server, folder)
    t.rig.servers.append(t.server)
    t.client = t.server.connect()
    t.used = lambda: resident(t.server)
    t.begin()
    t.client.ask("SENTINEL", "MONITOR", "mym", "127.0.0.1", t.listen(talk).port, 2)
    t.peers = 2
    end = time.monotonic() + WAIT_S
    while t.closed < 6:
        t.measure()
        if time.monotonic() > end:
            raise Fault("it closes no connection")


@trial("metrics port")
def metrics_port(t):
    port, guard = reserve_port()
    with guard:
        t.start("--metrics-port", str(port))
        t.connect(60, port)
        t.flood(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 1 << 20)


def resident(server):
    with open(f"/proc/{server.process.pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"Private_Dirty: +(\d+) kB", file.read()).group(1)) << 10


@trial("TLS handshake")
def tls_handshake(t):
    port, guard = reserve_port()
    certs = os.path.join(t.rig.folder, "certs")
    os.mkdir(certs)
    subprocess.run([os.path.join(ROOT, "tests/support/make_certs.sh"), certs], check=True)
    with guard:
        t.start("--tls-port", str(port), "--tls-cert-file", f"{certs}/server.crt", "--tls-key-file", f"{certs}/server.key",
                "--tls-ca-cert-file", f"{certs}/ca.crt")
        t.used = lambda: resident(t.server)
        t.begin()
        t.connect(200, port)
        # A ClientHello of 16,000 bytes, of which the last ones are not sent.
        hello = b"\x16\x03\x01" + struct.pack(">H", 16004) + b"\x01" + struct.pack(">I", 16000)[1:] + b"\x03\x03" + b"x" * 15900
        for peer in t.sockets:
            peer.sendall(hello)
        settle("handshakes are not ended", lambda: t.measure() or t.note_closed() or t.closed == 200)


# ---------------------------------------------------------------------------------------------------- all


def run(options, row):
    """The fault of a row, or an empty text."""
    folder = tempfile.mkdtemp(prefix="held_memory", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    t = Trial(options, folder)
    try:
        if row.name not in TRIALS:
            raise Fault("no peer tries this row")
        TRIALS[row.name](t)
        bound, outcome = bound_of(row.bound, t.client, t), t.outcome()
        t.end()
        print(f"{row.name}: {t.peak >> 10:,} KB of at most {bound >> 10:,}; {outcome}", flush=True)
        if t.peak > bound:
            raise Fault(f"it holds {t.peak:,} bytes, more than {bound:,}: {row.bound}")
        if not row.then.startswith(outcome):
            raise Fault(f"the peer is {outcome}; the page: {row.then}")
    except (Fault, Closed, Reply, OSError) as error:
        return f"{type(error).__name__} {error}\n" + "\n".join(report(server) for server in t.rig.servers)
    finally:
        for server in t.rig.servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    results, page = Results(), rows()
    for name in TRIALS:
        if name not in page:
            results.note(name, "the page has no such row")
    chosen = [page[name] for name in options.rows or page]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row, fault in zip(chosen, pool.map(lambda row: run(options, row), chosen)):
            results.note(row.name, fault)
    results.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lets servers talk to peers that say what no peer says; they must survive, and believe nothing that cannot be right.

  hostile_peers.py --server PATH [--rounds N] [--seconds N] [--seed N] [PART...]

  replica    claims offsets and ids to a primary with replication-quorum: nothing is confirmed by what was not received
  primary    answers a replica with invented replies, damaged datasets and streams
  target     answers MIGRATE: no key is lost unless the target has said that it has it
  slots      sends CLUSTER SYNCSLOTS with invented words
  hello      sends hello messages to a Sentinel, and answers it as the primary that it watches

bus_nodes.py does the same with messages of the cluster bus. Each part ends after N rounds or seconds."""

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from common import Client, Closed, Reply, Results, Server, encode, field, option_parser, reserve_port  # noqa: E402

WAIT_S = 60  # for anything that a server must do
NUMBERS = (0, 1, -1, 2, 7, 100, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -2**63, 2**63, 2**64 - 1, 2**64, "", "x", "-0", "1.5")
EPOCH_MAX = 2**62


class Fault(Exception):
    """A server did what it must not do."""


def settle(what, test):
    """Waits until test() is true."""
    end = time.monotonic() + WAIT_S
    while not test():
        if time.monotonic() > end:
            raise Fault(what)
        time.sleep(0.01)


def number(rng):
    return rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(-10, 100000)


def identity(rng, known="0" * 40):
    return rng.choice((known, f"{rng.getrandbits(160):040x}", "?", "", "x" * 39, "x" * 41, "\x01" * 40, " " * 40, "%n" * 20))


def damaged(rng, data):
    """The bytes with some of them changed, added, removed or cut off."""
    made = bytearray(data)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
        at = rng.randrange(len(made) + 1)
        made[at:at + rng.choice((0, 1, 1, 4))] = rng.randbytes(rng.choice((0, 1, 1, 4)))
    if rng.random() < 0.2:
        del made[rng.randrange(len(made) + 1):]
    return bytes(made)


class Listener:
    """Answers connections by talk(connection), one at a time, until it is closed."""

    def __init__(self, talk):
        self.talk, self.ended, self.accepted = talk, False, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.settimeout(WAIT_S)
        try:
            with connection:
                self.talk(connection)
        except (OSError, ValueError):
            pass

    def close(self):
        self.ended = True
        self.socket.close()


def requests(connection):
    """The requests that a server sends, as lists of words in lower case of the first."""
    with connection.makefile("rb") as file:
        while True:
            line = file.readline()
            if not line.endswith(b"\n"):
                return
            if not line.startswith(b"*"):
                yield line.split() or [b""]
                continue
            words = []
            for _ in range(int(line[1:])):
                size = int(file.readline()[1:])
                words.append(file.read(size + 2)[:-2])
            yield words


class Sentinel(Server):
    """Its file is `folder`/sentinel.conf; the port is the same after a restart."""

    def __init__(self, program, folder, former=None):
        self.folder, self.log_path = folder, os.path.join(folder, "log")
        self.port, self.guard = (former.port, former.guard) if former else reserve_port()
        if not former:
            with open(os.path.join(folder, "sentinel.conf"), "w") as file:
                file.write(f"port {self.port}\nbind 127.0.0.1\n")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([program, "sentinel.conf", "--sentinel"], cwd=folder, stdout=log, stderr=log)


class Rig:
    def __init__(self, options, folder, rng, results):
        self.options, self.rng, self.results, self.folder = options, rng, results, folder
        self.servers = []
        self.ran = 0  # rounds

    def start(self, *arguments):
        folder = os.path.join(self.folder, str(len(self.servers)))
        os.makedirs(folder, exist_ok=True)
        server = Server(self.options.server, folder, "--appendonly", "no", "--repl-diskless-sync-delay", "0", *arguments)
        self.servers.append(server)
        client = server.connect()
        if client is None:
            raise Fault(f"the server does not start:\n{server.log()[-3000:]}")
        return server, client

    def rounds(self):
        end = time.monotonic() + self.options.seconds
        for i in range(self.options.rounds):
            if i and time.monotonic() > end:
                return
            self.ran = i + 1
            yield i

    def end(self, server):
        code = server.stop(WAIT_S)
        if code != 0:
            raise Fault(f"it ends with {code}:\n{server.log()[-3000:]}")


# ---------------------------------------------------------------------------------------------------- a replica


def replica_words(rng):
    name = rng.choice(("listening-port", "ip-address", "capa", "version", "rdb-only", "rdb-channel", "rdb-filter-only",
                       "set-rdb-client-id", "set-cluster-node-id", "hold-acks", "ack", "getack", "nothing"))
    values = {"capa": ("eof", "psync2", "turn-acks", "confirmed-data", "dual-channel", "x"), "version": ("9.1.2", "255.255.255", "9", ""),
              "ip-address": ("127.0.0.1", "x" * 300, "\n")}
    return "REPLCONF", name, rng.choice(values[name]) if name in values else number(rng)


def answer(client):
    try:
        return client.read()
    except Reply as error:
        return str(error)


def hostile_replica(rig):
    rng = rig.rng
    server, client = rig.start("--replication-quorum", "1", "--replication-quorum-timeout", "200", "--repl-ping-replica-period", "3600")
    for _ in rig.rounds():
        peer = Client(server.port)
        try:
            for _ in range(rng.randrange(6)):
                peer.send(encode(*replica_words(rng)))
            if rng.random() < 0.7:
                peer.send(encode("REPLCONF", "capa", "eof", "capa", "psync2", "capa", "turn-acks", "version", "9.1.2"))
            known = field(client, "master_replid")
            peer.send(encode("PSYNC", identity(rng, known), number(rng)))
            for _ in range(rng.randrange(8)):
                words = ["REPLCONF", "ACK", number(rng)]
                peer.send(encode(*(words + ["FACK", number(rng)] if rng.random() < 0.5 else words)))
            # It never acknowledges what it has got: at most what was there before this write is claimed rightly.
            offset = int(field(client, "master_repl_offset"))
            writer = Client(server.port)
            writer.send(encode("SET", "key", "value"))
            for claimed in (offset + 10**6, 2**62, 2**63 - 1):
                peer.send(encode("REPLCONF", "ACK", claimed, "FACK", claimed))
            if answer(writer) == b"OK":
                raise Fault("a write is confirmed by an offset that does not exist")
            writer.close()
        except Closed:
            pass
        peer.close()
        client.ask("PING")
    rig.end(server)


# ---------------------------------------------------------------------------------------------------- a primary


def dataset_of(port):
    """A dataset as a server sends it, without its marks."""
    peer = Client(port)
    peer.send(encode("REPLCONF", "capa", "eof", "capa", "psync2", "version", "9.1.2"))
    peer.read()
    peer.send(encode("PSYNC", "?", "-1"))
    line = peer.file.readline()
    while not line.startswith(b"$EOF:"):
        line = peer.file.readline()
        if not line:
            raise Fault("no dataset")
    mark, data = line[5:-2], b""
    while not data.endswith(mark):
        data += peer.file.read(1)
    peer.close()
    return data[:-40]


def announcement(rng, data):
    mark = b"m" * 40
    return rng.choice((b"$%d\r\n" % len(data) + data, b"$EOF:" + mark + b"\r\n" + data + mark, b"$%d\r\n" % (len(data) + rng.choice((-1, 1))) + data,
                       b"$9223372036854775807\r\n" + data, b"$-1\r\n", b"$EOF:short\r\n", b"-ERR no\r\n", b"\n" * 5 + b"$\r\n", data))


def stream(rng):
    many = [encode("SELECT", rng.choice((0, 1, 9999, -1, "x"))), encode("SET", "stream", "value"), encode("MULTI"), encode("EXEC"), encode("PING"),
            encode("REPLCONF", "GETACK", rng.choice(("*", "TURN", "TICK", "x"))), encode("FLUSHALL"), encode("no-such-command", "x"),
            encode("HSET", "stream", "f", "v"), encode("DEL", "k1"), encode("EVAL", "return 1", "0"), encode("RESTORE", "r", "0", rng.randbytes(20)),
            encode("CONFIG", "SET", "maxmemory", "1"), encode("SHUTDOWN", "NOSAVE"), encode("DEBUG", "SEGFAULT"), b"*1000000000\r\n",
            b"*1\r\n$99999999999\r\n", b"*-5\r\n", b"\r\n\r\n", b"x" * 70000, encode("REPLICAOF", "NO", "ONE"), encode("SYNC"),
            encode("PSYNC", "?", "-1"), encode("RESET"), encode("QUIT"), encode("HELLO", "3"), encode("CLIENT", "REPLY", "ON"), encode("MONITOR")]
    return damaged(rng, b"".join(rng.choice(many) for _ in range(rng.randrange(8))))


def hostile_primary(rig):
    rng = rig.rng
    source, filler = rig.start()
    for i in range(20):
        filler.ask("RPUSH", f"l{i}", *range(i + 1))
        filler.ask("HSET", f"h{i}", *range(2 * i + 2))
        filler.ask("ZADD", f"z{i}", *range(2 * i + 2))
    good = dataset_of(source.port)
    rig.end(source)
    server, client = rig.start("--repl-timeout", "3", "--dual-channel-replication-enabled", "yes")

    def talk(connection):
        for words in requests(connection):
            name = words[0].lower()
            if rng.random() < 0.03:
                connection.sendall(rng.choice((b"-ERR no\r\n", b"", b"\0", b"+" + b"x" * 2000 + b"\r\n", b":1\r\n", b"$-1\r\n", b"*0\r\n")))
            elif name in (b"ping", b"auth"):
                connection.sendall(b"+PONG\r\n")
            elif name == b"replconf" and words[1].lower() != b"ack":
                connection.sendall(rng.choice((b"+OK\r\n",) * 9 + (b"-ERR unknown\r\n",)))
            elif name in (b"psync", b"sync"):
                head = [f"+FULLRESYNC {identity(rng)} {number(rng)}\r\n"] * 4 + [f"+FULLRESYNC {'a' * 40} 100\r\n"] * 4
                head += [f"+CONTINUE {identity(rng)} {number(rng)}\r\n", "+CONTINUE\r\n", "+DUALCHANNELSYNC\r\n", "-NOMASTERLINK x\r\n", "-LOADING x\r\n",
                         f"$ENDOFF:{number(rng)} {identity(rng)} {number(rng)} {number(rng)}\r\n"]
                connection.sendall(rng.choice(head).encode())
                connection.sendall(announcement(rng, good if rng.random() < 0.5 else damaged(rng, good)) + stream(rng))
                connection.settimeout(0.2)

    listener = Listener(talk)
    for _ in rig.rounds():
        before = listener.accepted
        client.ask("REPLICAOF", "127.0.0.1", listener.port)
        settle("it does not connect", lambda: listener.accepted > before)
        for _ in range(rng.randrange(5)):
            field(client, "role")
        client.ask("REPLICAOF", "NO", "ONE")
        client.ask("SET", "k", "v")
        if not 0 <= int(field(client, "master_repl_offset")) <= 2**62 + 10**9:
            raise Fault(f"offset {field(client, 'master_repl_offset')}")
    listener.close()
    rig.end(server)


# ---------------------------------------------------------------------------------------------------- MIGRATE


def hostile_target(rig):
    rng = rig.rng
    server, client = rig.start()
    has_said_ok = []

    def talk(connection):
        is_shifted = False  # a line that was not ended goes on with the next reply: it is one for an earlier request
        for words in requests(connection):
            is_key = words[0].lower().startswith(b"restore")
            reply = rng.choice((b"+OK\r\n",) * 3 + (b"-ERR no\r\n", b":1\r\n", b"$2\r\nOK\r\n", b"$-1\r\n", b"*1\r\n+OK\r\n", b"+O", b"\0\0\r\n", b"+OKAY\r\n",
                                b"$99999999999\r\n", b"+" + b"x" * 70000, b"-" + b"\r" * 100 + b"\n", b"*1000000000\r\n", b"%1\r\n+a\r\n+b\r\n"))
            is_shifted |= not reply.endswith(b"\n")
            if is_key and (is_shifted or reply.startswith(b"+")):
                has_said_ok.append(words[1])
            connection.sendall(reply)
            if rng.random() < 0.1:
                return

    listener = Listener(talk)
    for i in rig.rounds():
        keys = [f"key:{i}:{k}" for k in range(rng.choice((1, 1, 2, 5)))]
        for key in keys:
            client.ask("SET", key, "value" * rng.choice((1, 1000)))
        copies = rng.random() < 0.3
        options = rng.choice(([], ["AUTH", "x"], ["AUTH2", "u", "p"], ["REPLACE"])) + (["COPY"] if copies else [])
        # A port that replies nonsense to what was sent before must not confirm what comes later.
        try:
            client.ask("MIGRATE", "127.0.0.1", listener.port, "", rng.choice((0, 0, 3)), 100, *options, "KEYS", *keys)
        except Reply:
            pass
        for key in keys:
            if client.ask("EXISTS", key) == 0 and (copies or key.encode() not in has_said_ok):
                raise Fault(f"{key} is gone, and the target has not said that it has it ({options})")
    listener.close()
    rig.end(server)


# ---------------------------------------------------------------------------------------------------- slot migration


def hostile_slots(rig):
    rng = rig.rng
    bus_port, guard = reserve_port()  # the guard lasts until this function ends
    server, client = rig.start("--cluster-enabled", "yes", "--cluster-port", str(bus_port))
    client.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    settle("the cluster is not up", lambda: b"cluster_state:ok" in client.ask("CLUSTER", "INFO"))
    own = client.ask("CLUSTER", "MYID").decode()
    words = ("ESTABLISH", "SOURCE", "NAME", "SLOTSRANGE", "CAPA", "ACK", "SNAPSHOT-EOF", "REQUEST-PAUSE", "PAUSED", "REQUEST-FAILOVER",
             "FAILOVER-GRANTED", "FINISH", "STATE", "MESSAGE", "failed", "success")
    for i in range(50):
        client.ask("SET", f"k{i}", "v")
    for _ in rig.rounds():
        peer = Client(server.port)
        try:
            for _ in range(rng.randrange(1, 20)):
                sent = [rng.choice((*words, number(rng), identity(rng, own))) for _ in range(rng.randrange(1, 9))]
                if rng.random() < 0.4:
                    first = rng.randrange(16384)
                    sent = ["ESTABLISH", "SOURCE", identity(rng, own), "NAME", identity(rng), "SLOTSRANGE", first, number(rng)]
                peer.send(damaged(rng, encode("CLUSTER", "SYNCSLOTS", *sent)) if rng.random() < 0.1 else encode("CLUSTER", "SYNCSLOTS", *sent))
        except Closed:
            pass
        peer.close()
        client.ask("CLUSTER", "GETSLOTMIGRATIONS")
    if client.ask("DBSIZE") != 50:
        raise Fault("keys are gone")
    rig.end(server)


# ---------------------------------------------------------------------------------------------------- Sentinel


def hello(rng, primary_port):
    host = rng.choice(("127.0.0.1", "127.9.9.9", "::1", "no such", "", "x" * 300))
    id_ = rng.choice((f"{rng.randrange(2000):040x}", identity(rng)))
    fields = [host, number(rng), id_, number(rng), rng.choice(("mym", "other", "")), rng.choice(("127.0.0.1", host)),
              rng.choice((primary_port, primary_port, number(rng))), number(rng)]
    if rng.random() < 0.1:
        del fields[rng.randrange(len(fields))]
    return ",".join(map(str, fields))


def info(rng, run_id):
    lines = [f"run_id:{run_id}", "role:master", "master_replid:" + identity(rng)]
    lines += [f"slave{i}:ip={rng.choice(('127.0.0.1', '127.8.8.8', '', 'x'))},port={number(rng)},state=online,offset={number(rng)},lag=0"
              for i in range(rng.choice((0, 1, 5, 200)))]
    lines += [f"slave_repl_offset:{number(rng)}", f"slave_priority:{number(rng)}", f"master_port:{number(rng)}", f"replication_quorum:{number(rng)}",
              f"replication_quorum_read_lease:{number(rng)}", f"replication_quorum_acks_held_ms:{number(rng)}", "master_failover_state:x",
              f"master_link_down_since_seconds:{number(rng)}", rng.choice(("role:slave", "role:master", "role:", "x" * 3000))]
    text = damaged(rng, "\r\n".join(lines).encode())
    return b"$%d\r\n" % len(text) + text + b"\r\n"


def hostile_hello(rig):
    rng = rig.rng
    folder = os.path.join(rig.folder, "sentinel")
    os.mkdir(folder)
    run_id = f"{rng.getrandbits(160):040x}"

    def talk(connection):
        for words in requests(connection):
            name = words[0].lower()
            if name == b"info" and rng.random() < 0.9:
                connection.sendall(info(rng, run_id))
            elif name == b"subscribe":
                connection.sendall(b"*3\r\n$9\r\nsubscribe\r\n$18\r\n__sentinel__:hello\r\n:1\r\n")
                text = hello(rng, listener.port).encode()
                message = b"*3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$%d\r\n%s\r\n" % (len(text), text)
                connection.sendall(damaged(rng, message * rng.randrange(50)))
            elif rng.random() < 0.05:
                connection.sendall(rng.choice((b"-ERR no\r\n", b"*1000000000\r\n", b"$99999999999\r\n", b"\0", b"-NOAUTH x\r\n", b":1\r\n")))
            else:
                connection.sendall(b"+PONG\r\n" if name == b"ping" else b"+OK\r\n")

    listener = Listener(talk)
    server = Sentinel(rig.options.server, folder)
    rig.servers.append(server)
    client = server.connect()
    client.ask("SENTINEL", "MONITOR", "mym", "127.0.0.1", listener.port, 2)
    for option, value in (("down-after-milliseconds", 1000), ("failover-timeout", 1000)):
        client.ask("SENTINEL", "SET", "mym", option, value)
    client.ask("SENTINEL", "DEBUG", "info-period", 50, "ping-period", 50, "ask-period", 50, "publish-period", 50)
    for _ in rig.rounds():
        peer = Client(server.port)
        peer.send(b"".join(encode("PUBLISH", "__sentinel__:hello", hello(rng, listener.port)) for _ in range(rng.randrange(1, 100))))
        begin = time.monotonic()
        client.ask("PING")
        for asked in ("PRIMARY", "REPLICAS", "SENTINELS", "CKQUORUM"):
            try:
                known = client.ask("SENTINEL", asked, "mym")
            except Reply as error:
                known = str(error)
            if asked in ("REPLICAS", "SENTINELS") and len(known) > 1000:
                raise Fault(f"{len(known)} {asked}")
            if asked == "PRIMARY":
                fields = dict(zip(known[::2], known[1::2]))
                if int(fields[b"config-epoch"]) > EPOCH_MAX or not 0 <= int(fields[b"port"]) < 65536:
                    raise Fault(f"{fields}")
        if time.monotonic() - begin > WAIT_S / 2:
            raise Fault("it takes too long to answer")
        peer.close()
        if b"127.0.0.1" not in client.ask("SENTINEL", "GET-PRIMARY-ADDR-BY-NAME", "mym") or rng.random() < 0.1:
            try:
                client.ask("SENTINEL", "REMOVE", "mym")
            except Reply:
                pass
            client.ask("SENTINEL", "MONITOR", "mym", "127.0.0.1", listener.port, 2)
    client.ask("SENTINEL", "FLUSHCONFIG")
    listener.close()
    rig.end(server)
    # What it has written can be read.
    server = Sentinel(rig.options.server, folder, server)
    rig.servers.append(server)
    if server.connect() is None:
        raise Fault(f"its file cannot be read:\n{server.log()[-2000:]}")
    rig.end(server)


PARTS = {"replica": hostile_replica, "primary": hostile_primary, "target": hostile_target, "slots": hostile_slots, "hello": hostile_hello}


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results = Results()
    for part in options.parts:
        folder = tempfile.mkdtemp(prefix="hostile_peers", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        rig = Rig(options, folder, random.Random(f"{options.seed} {part}"), results)
        fault = ""
        try:
            PARTS[part](rig)
        except (Fault, Closed, Reply, OSError) as error:
            fault = f"{type(error).__name__} {error}\n" + "\n".join(report(server) for server in rig.servers)
        finally:
            for server in rig.servers:
                server.kill()
        print(f"{part}: {rig.ran} rounds", flush=True)
        results.note(f"hostile {part}", fault)
        if not fault:
            shutil.rmtree(folder)
    results.finish()


def report(server):
    log = server.log()
    at = log.find("BUG REPORT START")
    at = log.find("==ERROR") if at < 0 else at
    return log[max(at - 1500, 0):][:5000] if at >= 0 else log[-2000:]


if __name__ == "__main__":
    main()

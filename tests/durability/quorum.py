#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that with replication-quorum no acknowledged write is lost, and that what clients see is linearizable.

  quorum.py [--server PATH] [--members N] [--steps N] [--seed N] [--quorum N] [--lease MS] [--disk] [--fsync WHEN] [--tls]
            [--mistake WHICH]

Clients set, read and increment a few keys of a primary with replicas, one by one, in pipelines and in transactions, while
members are killed, stopped, and cut off from each other: replicas are turned away from a primary that goes on serving its
clients. With --disk what is confirmed is on disk, with --tls replication is encrypted. Another one is promoted by the rule
of docs/durability.md: enough replicas were turned away first, and the one with the greatest offset among them is taken,
after the lease if the primary may be alive. Then the history of each key
must be linearizable (histories.py). With --quorum 0, or a --mistake in the promotions, it is not, at times: that shows
what the check can find."""

import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, encode, field, option_parser, reserve_port
from histories import UNKNOWN, Op, counter_fault, register_fault

CLIENTS = 6
REGISTERS, COUNTERS = 3, 2
PATIENCE_S = 3  # how long a client waits for a reply


class Load(threading.Thread):
    """A client. Some leave a primary only when it refuses them, others as soon as there is another one."""

    def __init__(self, group, number, seed):
        super().__init__(daemon=True)
        self.group, self.number = group, number
        self.stays = number % 2 == 0
        self.rng = random.Random(seed)
        self.history = {}  # of each key
        self.client = self.port = None
        self.written = 0
        self.acknowledged = self.unknown = self.refused = 0

    def run(self):
        while not self.group.ended:
            self.connect()
            if self.client:
                self.request()
            else:
                time.sleep(0.01)

    def connect(self):
        port = self.group.primary.port
        if self.client and port != self.port and not self.stays:
            self.drop()
        if not self.client:
            try:
                self.client, self.port = Client(port, PATIENCE_S), port
            except OSError:
                pass

    def drop(self):
        try:
            self.client.close()
        except OSError:
            pass
        self.client = None

    def step(self):
        """A command, the key and the kind of the operation, and the value that is written."""
        is_counter = self.rng.random() < 0.3
        key = f"counter:{self.rng.randrange(COUNTERS)}" if is_counter else f"register:{self.rng.randrange(REGISTERS)}"
        if self.rng.random() < 0.5 or self.group.only_reads or (self.stays and self.group.only_reads_stay):
            return ("GET", key), key, "read", None
        if is_counter:
            return ("INCR", key), key, "increment", None
        self.written += 1
        value = f"{self.number}:{self.written}"
        return ("SET", key, value), key, "write", value

    def request(self):
        steps = [self.step() for _ in range(self.rng.choice((1, 1, 1, 3)))]
        in_transaction = len(steps) > 1 and self.rng.random() < 0.5
        commands = [step[0] for step in steps]
        if in_transaction:
            commands = [("MULTI",), *commands, ("EXEC",)]
        begin = time.monotonic()
        replies = self.exchange(commands)
        end = time.monotonic()
        if in_transaction:
            replies = self.inner_replies(replies, len(steps))
        for (_, key, kind, value), reply in zip(steps, replies):
            self.note(key, kind, value, reply, begin, end)
        if any(isinstance(reply, (Closed, Reply)) for reply in replies):
            self.drop()
            time.sleep(0.005)

    def exchange(self, commands):
        """A reply, an error that was replied, or Closed for each."""
        replies = []
        try:
            self.client.send(b"".join(encode(*words) for words in commands))
            for _ in commands:
                try:
                    replies.append(self.client.read())
                except Reply as error:
                    replies.append(error)
        except (Closed, OSError):
            pass
        return replies + [Closed()] * (len(commands) - len(replies))

    @staticmethod
    def inner_replies(replies, count):
        last = replies[-1]
        return last if isinstance(last, list) else [last] * count

    def note(self, key, kind, value, reply, begin, end):
        history = self.history.setdefault(key, [])
        if isinstance(reply, Closed) or (isinstance(reply, Reply) and str(reply).startswith("NOQUORUM")):
            self.unknown += 1
            if kind != "read":
                history.append(Op(kind, value, begin, UNKNOWN))
        elif isinstance(reply, Reply):
            self.refused += 1
        else:
            self.acknowledged += 1
            if kind != "write":
                value = reply.decode() if isinstance(reply, bytes) else reply
            history.append(Op(kind, value, begin, end))


class Group:
    """A primary and its replicas, and who fails."""

    def __init__(self, options, folder, rng):
        self.options, self.folder, self.rng = options, folder, rng
        self.started = 0
        self.tls_ports, self.guards = {}, []
        self.ended = False
        self.only_reads = self.only_reads_stay = False  # of all clients; of those at a primary that is being replaced
        self.closed = socket.socket()  # a port where nobody listens
        self.closed.bind(("127.0.0.1", 0))
        self.needed = options.members - 1 - options.quorum + 1 if options.quorum else 1
        self.primary = self.start()
        self.id = ""  # of the history
        self.replicas = []
        for _ in range(options.members - 1):
            self.add_replica()

    def start(self):
        self.started += 1
        folder = os.path.join(self.folder, str(self.started))
        os.mkdir(folder)
        server = Server(self.options.server, folder, *self.extra(folder), "--repl-diskless-sync-delay", "0",
                        "--repl-diskless-load", self.rng.choice(["disabled", "swapdb", "flush-before-load"]),
                        "--dual-channel-replication-enabled", self.rng.choice(["yes", "no"]),
                        "--replication-quorum", str(self.options.quorum), "--replication-quorum-timeout", "1000",
                        "--replication-read-lease", str(self.options.lease))
        server.control = server.connect()
        return server

    def extra(self, folder):
        """Clients use the plain port, replicas that of TLS."""
        words = ["--appendonly", "no"]
        if self.options.disk:
            words = ["--appendonly", "yes", "--appendfsync", self.options.fsync, "--replication-quorum-durability", "disk"]
        if not self.options.tls:
            return words
        certificate = os.path.join(self.folder, "certificate")
        if not os.path.exists(certificate):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=proof", "-keyout",
                            certificate + ".key", "-out", certificate], check=True, capture_output=True)
        self.tls_ports[folder], guard = reserve_port()
        self.guards.append(guard)
        return [*words, "--tls-port", str(self.tls_ports[folder]), "--tls-replication", "yes", "--tls-cert-file", certificate,
                "--tls-key-file", certificate + ".key", "--tls-ca-cert-file", certificate]

    def port_of(self, server):
        """The one that replicas connect to."""
        return self.tls_ports.get(server.folder, server.port)

    def add_replica(self):
        server = self.start()
        server.control.ask("REPLICAOF", "127.0.0.1", self.port_of(self.primary))
        self.replicas.append(server)

    def stop(self):
        self.ended = True
        for server in [self.primary, *self.replicas]:
            server.kill()

    def is_complete(self, server):
        """It has the dataset of this group, or a prefix of it, and is not receiving another one."""
        return field(server.control, "master_replid") == self.id and field(server.control, "master_sync_in_progress") == "0"

    def await_complete(self):
        """Returns a fault."""
        end = time.monotonic() + 60
        for server in self.replicas:
            while server.control.ask("ROLE")[3] != b"connected" or not self.is_complete(server):
                if time.monotonic() > end:
                    return f"a replica does not connect:\n{server.log()[-3000:]}"
                self.id = field(self.primary.control, "master_replid")  # the first replica gives it another one
                time.sleep(0.01)
        return ""

    def turn_away(self):
        """Some replicas, as many as a promotion needs or more, get nothing more from the primary. Returns them."""
        count = self.rng.randrange(self.needed, len(self.replicas) + 1)
        if self.options.mistake == "count":
            count = 1
        chosen = []
        for server in self.rng.sample(self.replicas, len(self.replicas)):
            server.control.ask("REPLICAOF", "127.0.0.1", self.closed.getsockname()[1])
            if self.is_complete(server):
                chosen.append(server)
            if len(chosen) == count:
                return chosen
        return chosen

    def promote(self, chosen):
        take = min if self.options.mistake == "offset" else max
        best = take(chosen, key=lambda server: int(field(server.control, "slave_repl_offset")))
        best.control.ask("REPLICAOF", "NO", "ONE")
        self.id = field(best.control, "master_replid")
        self.replicas.remove(best)
        for server in self.replicas:
            server.control.ask("REPLICAOF", "127.0.0.1", self.port_of(best))
        old, self.primary = self.primary, best
        return old

    def pause(self, least=0.0, most=0.4):
        time.sleep(self.rng.uniform(least, most))

    # Each step returns a fault. They begin and end with all members connected.

    def kill_primary(self):
        self.primary.kill()
        self.promote(self.turn_away())
        self.add_replica()
        return ""

    def stop_primary(self):
        os.kill(self.primary.process.pid, signal.SIGSTOP)
        return self.replace_alive(lambda server: os.kill(server.process.pid, signal.SIGCONT))

    def cut_primary(self):
        return self.replace_alive(lambda server: None)

    def replace_alive(self, revive):
        """Another primary while the old one lives, or will, and has clients."""
        self.only_reads_stay = self.rng.random() < 0.5
        # A write that is not confirmed holds back reads, too: here the lease alone must.
        self.only_reads = self.only_reads_stay = self.rng.random() < 0.5
        if self.only_reads:
            time.sleep(0.05)
        chosen = self.turn_away()
        if self.options.mistake != "lease":
            time.sleep(self.options.lease * 1.2 / 1000)
        old = self.promote(chosen)
        self.only_reads = False
        if self.rng.random() < 0.5:
            self.pause()
        revive(old)
        self.pause()
        old.control.ask("REPLICAOF", "127.0.0.1", self.port_of(self.primary))
        self.replicas.append(old)
        self.only_reads_stay = False
        return ""

    def kill_replica(self):
        victim = self.rng.choice(self.replicas)
        self.replicas.remove(victim)
        victim.kill()
        self.pause()
        self.add_replica()
        return ""

    def stop_replicas(self):
        for server in self.rng.sample(self.replicas, self.rng.randrange(1, len(self.replicas) + 1)):
            os.kill(server.process.pid, signal.SIGSTOP)
        self.pause(0.1, 1.5)
        for server in self.replicas:
            os.kill(server.process.pid, signal.SIGCONT)
        return ""

    def kill_replica_and_primary(self):
        """With three members and a quorum of one both replicas are needed: the one that was killed comes back empty and
        must get its dataset first."""
        self.kill_replica()
        if sum(self.is_complete(server) for server in self.replicas) < self.needed:
            return ""
        return self.kill_primary()

    def step(self):
        kind = self.rng.choice((self.kill_primary, self.stop_primary, self.cut_primary, self.cut_primary, self.kill_replica,
                                self.stop_replicas, self.kill_replica_and_primary))
        self.pause(0.05, 0.4)
        fault = kind() or self.await_complete()
        return kind.__name__, fault


def check(loads):
    """The faults of all keys."""
    faults = {}
    for key in {key for load in loads for key in load.history}:
        history = [op for load in loads for op in load.history.get(key, [])]
        history.sort(key=lambda op: op.begin)
        faults[key] = (counter_fault if key.startswith("counter") else register_fault)(history)
    return faults


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--quorum", type=int, help="default: so many that they and the primary are a majority")
    parser.add_argument("--lease", type=int, default=300, help="replication-read-lease; 0: old values are read at times")
    parser.add_argument("--disk", action="store_true", help="replication-quorum-durability disk")
    parser.add_argument("--fsync", choices=("always", "everysec"), default="always", help="appendfsync with --disk")
    parser.add_argument("--tls", action="store_true", help="tls-replication")
    parser.add_argument("--mistake", choices=("count", "offset", "lease"),
                        help="replicas that are turned away are too few; the one with the least offset is promoted; too early")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    if options.quorum is None:
        options.quorum = options.members // 2
    rng = random.Random(options.seed)
    results = Results()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="quorum.", ignore_cleanup_errors=True) as folder:
        group = Group(options, folder, rng)
        fault = group.await_complete()
        loads = [Load(group, number, rng.random()) for number in range(CLIENTS)]
        for load in loads:
            load.start()
        for number in range(options.steps):
            if fault:
                results.note(f"step {number}", fault)
                break
            name, fault = group.step()
            results.note(f"step {number}, {name}", fault)
        group.ended = True
        for load in loads:
            load.join(PATIENCE_S + 5)
        for key, fault in sorted(check(loads).items()):
            results.note(f"history of {key}", fault)
        group.stop()
    print(", ".join(f"{sum(getattr(load, what) for load in loads)} {what}" for what in ("acknowledged", "unknown", "refused")))
    results.finish()


main()

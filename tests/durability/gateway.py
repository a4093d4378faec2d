#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what clients of cluster-gateway-port see while nodes of a cluster are killed and stopped.

  gateway.py [--server PATH] [--shards N] [--steps N] [--seed N] [--quorum N] [--lease MS] [--stop] [--moves]

Clients set, read and increment a few keys of all shards through the gateways of random nodes, one by one, in pipelines and in
transactions. Each step kills a node, mostly a primary, and starts it again when its replica has taken over; with --stop some
stand still for longer than the node timeout instead; with --moves slots of the keys go to other primaries meanwhile.
With replication-quorum 1 the history of each key must be linearizable (histories.py), and the only errors are CLUSTERDOWN,
UNKNOWN and NOQUORUM. With --quorum 0 histories are not, at times: that shows what the check can find."""

import os
import random
import signal
import subprocess
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, encode, option_parser, reserve_port
from histories import UNKNOWN, Op, counter_fault, register_fault

CLIENTS = 6
REGISTERS, COUNTERS = 6, 3
TAGS = "abc"  # their slots belong to three shards
PATIENCE_S = 15
NODE_TIMEOUT_MS = 1500
UNCERTAIN = ("UNKNOWN ", "NOQUORUM ")
REFUSALS = ("CLUSTERDOWN ", "EXECABORT Transaction discarded because of: NOQUORUM ")
SECRET = "0123456789abcdef0123456789abcdef"


class Load(threading.Thread):
    """A client that knows nothing of clusters."""

    def __init__(self, cluster, number, seed):
        super().__init__(daemon=True)
        self.cluster, self.number = cluster, number
        self.rng = random.Random(seed)
        self.history = {}  # of each key
        self.client = None
        self.written = self.acknowledged = self.unknown = self.refused = 0
        self.faults = []

    def run(self):
        while not self.cluster.ended:
            if not self.client:
                self.connect()
            if self.client:
                self.request()

    def connect(self):
        try:
            self.client = Client(self.rng.choice(self.cluster.nodes).gateway, PATIENCE_S)
        except OSError:
            time.sleep(0.01)

    def drop(self):
        self.client.close()
        self.client = None

    def step(self, tag):
        """A command, the key and the kind of the operation, and the value that is written."""
        is_counter = self.rng.random() < 0.3
        name = f"counter:{self.rng.randrange(COUNTERS)}" if is_counter else f"register:{self.rng.randrange(REGISTERS)}"
        key = "{%s}%s" % (TAGS[tag], name)
        if self.rng.random() < 0.5:
            return ("GET", key), key, "read", None
        if is_counter:
            return ("INCR", key), key, "increment", None
        self.written += 1
        value = f"{self.number}:{self.written}"
        return ("SET", key, value), key, "write", value

    def request(self):
        in_transaction = self.rng.random() < 0.2
        tag = self.rng.randrange(3)
        steps = [self.step(tag if in_transaction else self.rng.randrange(3)) for _ in range(self.rng.choice((1, 1, 1, 3)))]
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
        if any(isinstance(reply, Closed) for reply in replies):
            self.drop()

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
        """EXECABORT has its cause in an error that was replied before it."""
        last = replies[-1]
        if isinstance(last, Reply) and str(last).startswith("EXECABORT "):
            last = next((reply for reply in replies if isinstance(reply, Reply)), last)
        return last if isinstance(last, list) else [last] * count

    def note(self, key, kind, value, reply, begin, end):
        history = self.history.setdefault(key, [])
        if isinstance(reply, Closed) or (isinstance(reply, Reply) and str(reply).startswith(UNCERTAIN)):
            self.unknown += 1
            if kind != "read":
                history.append(Op(kind, value, begin, UNKNOWN))
        elif isinstance(reply, Reply):
            self.refused += 1
            if not str(reply).startswith(REFUSALS):
                self.faults.append(str(reply))
        else:
            self.acknowledged += 1
            if kind != "write":
                value = reply.decode() if isinstance(reply, bytes) else reply
            history.append(Op(kind, value, begin, end))


class Node:
    """A node of the cluster, which keeps its ports."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        os.mkdir(folder)
        reserved = [reserve_port() for _ in range(3)]
        self.port, self.bus, self.gateway = [port for port, _ in reserved]
        self.guards = [guard for _, guard in reserved]
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.options.server, "--port", str(self.port), "--bind", "127.0.0.1", "--cluster-enabled", "yes",
                 "--cluster-port", str(self.bus), "--cluster-gateway-port", str(self.gateway), "--save", "",
                 "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--cluster-bus-secret", SECRET,
                 "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0", "--cluster-gateway-retry-ms", "8000",
                 "--replication-quorum", str(self.options.quorum), "--replication-quorum-timeout", "1000",
                 "--replication-read-lease", str(self.options.lease), *self.options.directives],
                cwd=self.folder, stdout=log, stderr=log)

    def ask(self, *words):
        client = Client(self.port)
        try:
            return client.ask(*words)
        finally:
            client.close()

    def text(self, *words):
        """The reply; empty while the node does not answer."""
        try:
            return self.ask(*words).decode()
        except (OSError, Closed, Reply):
            return ""

    def is_primary(self):
        return "role:master" in self.text("INFO", "replication")

    def is_well(self):
        """It serves requests: as a replica its link works, as a primary it has a replica."""
        info = self.text("INFO", "replication")
        linked = "master_link_status:up" in info if "role:slave" in info else "state=online" in info
        return linked and "cluster_state:ok" in self.text("CLUSTER", "INFO")

    def kill(self):
        self.process.kill()
        self.process.wait()


def wait_for(what, condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"never: {what}")
        time.sleep(0.05)


class Cluster:
    def __init__(self, options, folder, rng):
        self.rng, self.ended, self.shards = rng, False, options.shards
        self.nodes = [Node(options, os.path.join(folder, str(i))) for i in range(2 * options.shards)]
        wait_for("all nodes run", lambda: all(node.text("CLUSTER", "MYID") for node in self.nodes))
        for i, node in enumerate(self.nodes):
            node.id = node.text("CLUSTER", "MYID")
            if i < options.shards:
                node.ask("CLUSTER", "ADDSLOTSRANGE", 16384 * i // options.shards, 16384 * (i + 1) // options.shards - 1)
            if i:
                node.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0].bus)
        wait_for("all nodes know each other", lambda: all(self.knows_all(node) for node in self.nodes))
        for i in range(options.shards):
            self.nodes[options.shards + i].ask("CLUSTER", "REPLICATE", self.nodes[i].id)
        self.wait_well()

    def knows_all(self, node):
        text = node.text("CLUSTER", "NODES")
        return text.count("\n") == len(self.nodes) and "handshake" not in text

    def wait_well(self):
        wait_for("all nodes are well", lambda: all(node.is_well() for node in self.nodes))

    def kill_one(self):
        primaries = [node for node in self.nodes if node.is_primary()]
        victim = self.rng.choice(primaries if self.rng.random() < 0.8 else self.nodes)
        was_primary = victim in primaries
        victim.kill()
        if was_primary:
            others = [node for node in self.nodes if node is not victim]
            wait_for("a replica has taken over", lambda: sum(node.is_primary() for node in others) == self.shards)
        victim.start()

    def stop_one(self):
        victim = self.rng.choice([node for node in self.nodes if node.is_primary()])
        victim.process.send_signal(signal.SIGSTOP)
        time.sleep(NODE_TIMEOUT_MS * self.rng.choice((0.3, 3)) / 1000)
        victim.process.send_signal(signal.SIGCONT)

    def move_slots(self):
        """The slots of some keys go to another primary, if their present one can be asked."""
        for tag in range(3):
            primaries = [node for node in self.nodes if node.is_primary()]
            slot = self.nodes[0].ask("CLUSTER", "KEYSLOT", TAGS[tag])
            for node in primaries:
                try:
                    node.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", self.rng.choice(primaries).id)
                except (OSError, Closed, Reply):
                    pass  # it is not the owner, or the target is; the checks are of what clients see

    def end(self):
        self.ended = True
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT)
            node.kill()


def faults_of(loads):
    keys = {}
    for load in loads:
        for key, history in load.history.items():
            keys.setdefault(key, []).extend(history)
    for key, history in sorted(keys.items()):
        fault = counter_fault(history) if "counter" in key else register_fault(history)
        if fault:
            yield f"{key}: {fault}"
    for load in loads:
        yield from load.faults[:1]


def run(options, folder, rng, results):
    cluster = Cluster(options, folder, rng)
    loads = [Load(cluster, i, rng.random()) for i in range(CLIENTS)]
    try:
        for load in loads:
            load.start()
        for step in range(options.steps):
            time.sleep(rng.random())
            if options.moves:
                cluster.move_slots()
            if options.stop and step % 2:
                cluster.stop_one()
            else:
                cluster.kill_one()
            cluster.wait_well()
    finally:
        cluster.ended = True
        for load in loads:
            load.join(PATIENCE_S + 5)
        cluster.end()
    done = [sum(getattr(load, name) for load in loads) for name in ("acknowledged", "unknown", "refused")]
    print("requests that were acknowledged %d, unknown %d, refused %d" % tuple(done))
    results.note("requests are acknowledged", "" if done[0] > 100 else f"only {done[0]}")
    faults = list(faults_of(loads))
    results.note("histories and errors", "; ".join(faults[:5]))


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--quorum", type=int, default=1)
    parser.add_argument("--lease", type=int, default=0)
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--moves", action="store_true")
    parser.set_defaults(directives=[])
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        run(options, folder, random.Random(options.seed), results)
    results.finish()


if __name__ == "__main__":
    main()

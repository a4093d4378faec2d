#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends invented messages to the bus ports of a running cluster, which must survive them.

  bus_nodes.py --server PATH [--messages N] [--seed N]

The messages are mostly well formed, and say what no node says: ids of other nodes, epochs up to 2^64, all slots, addresses
that are none. What the decoder does with broken bytes is fuzz_bus_message.c's matter. The nodes may then think anything
about their cluster; they must answer, and stop cleanly."""

import os
import random
import shutil
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "durability"))
from common import Closed, Reply, Results, Server, option_parser, reserve_port  # noqa: E402

NODES = 4  # three primaries and a replica of the first
PING, PONG, MEET, FAIL, PUBLISH, UPDATE, MODULE, PUBLISHSHARD, AUTH_NACK = 0, 1, 2, 3, 4, 7, 9, 10, 11
TYPES = (PING,) * 4 + (PONG,) * 4 + (MEET, FAIL, PUBLISH, 5, 6, UPDATE, 8, MODULE, PUBLISHSHARD, AUTH_NACK, 12)
LIGHT = 0x8000
VOTERS = 0x4000  # an extension
BATCH = 250  # messages between two looks at the nodes
WAIT_S = 60  # for anything that a node must do


class Node:
    def __init__(self, program, folder, replicas_vote):
        os.mkdir(folder)
        self.bus_port, self.guard = reserve_port()
        self.server = Server(program, folder, "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-port",
                             str(self.bus_port), "--cluster-node-timeout", "1000", "--cluster-replicas-vote", replicas_vote)
        self.client = self.server.connect()
        if self.client is None:
            raise SystemExit(f"the server does not start:\n{self.server.log()}")
        self.id = self.client.ask("CLUSTER", "MYID").decode()

    def await_text(self, text, *command):
        end = time.monotonic() + WAIT_S
        while text not in self.client.ask(*command).decode(errors="replace"):
            if time.monotonic() > end:
                raise SystemExit(f"no {text} in {command}:\n{self.server.log()[-3000:]}")
            time.sleep(0.02)


def form_cluster(nodes):
    for i, node in enumerate(nodes):
        if i < NODES - 1:
            first, after = 16384 * i // (NODES - 1), 16384 * (i + 1) // (NODES - 1)
            node.client.ask("CLUSTER", "ADDSLOTSRANGE", first, after - 1)
            node.client.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        if i > 0:
            nodes[0].client.ask("CLUSTER", "MEET", "127.0.0.1", node.server.port, node.bus_port)
    for node in nodes:
        node.await_text(f"cluster_known_nodes:{NODES}", "CLUSTER", "INFO")
    nodes[-1].client.ask("CLUSTER", "REPLICATE", nodes[0].id)
    for node in nodes:
        node.await_text("cluster_state:ok", "CLUSTER", "INFO")


def message(kind, head, sender, rest, data=b"", own=(0, 0, 0)):
    """`head`: port, gossip entries, both epochs and the offset; `rest`: slots, primary, address, number of extensions, the
    other port, bus port, flags, state of the cluster, flags of the message; `own`: flags, and the age of a set of voters."""
    port, entries, current_epoch, epoch, offset = head
    slots, primary, address, extensions, *ports_flags_state, flags = rest
    own_flags, term, version = own
    return (b"RCmb" + struct.pack(">IHHHHQQQ", 2256 + len(data), 1, port, kind, entries, current_epoch, epoch, offset)
            + sender + slots + primary + address + struct.pack(">H8xQI10x", extensions, term, version)
            + struct.pack(">HHHB", *ports_flags_state) + bytes((flags, own_flags, 0)) + data)


def tell_no_port(nodes):
    """The primary of the last node, a replica, tells it that its port is 0."""
    primary, replica = nodes[0], nodes[-1]
    slots = b"\xff" * (5461 // 8) + bytes(2048 - 5461 // 8)
    told = message(PING, (0, 0, 3, 1, 0), primary.id.encode(),
                   (slots, bytes(40), b"127.0.0.1".ljust(46, b"\0"), 0, 0, primary.bus_port, 0x1c11, 0, 4))
    with socket.create_connection(("127.0.0.1", replica.bus_port), timeout=WAIT_S) as connection:
        connection.sendall(told)
        if not connection.recv(1):
            return "no PONG"
    return fault_of(replica)


class Messages:
    """Random messages; the layout is that of Valkey's bus."""

    def __init__(self, rng, nodes):
        self.rng = rng
        self.ids = [node.id for node in nodes]
        self.ports = [port for node in nodes for port in (node.server.port, node.bus_port)]

    def id(self):
        return self.rng.choice(self.ids + [f"{self.rng.getrandbits(160):040x}", "0" * 40]).encode()

    def port(self):
        return self.rng.choice(self.ports + [0, 1, 65535, self.rng.randrange(65536)])

    def address(self):
        text = self.rng.choice(("", "", "127.0.0.1", "127.0.0.1", "::1", "localhost", "a b", "\n", "x" * 45))
        return text.encode().ljust(46, b"\0")

    def epoch(self):
        return self.rng.choice((0, 1, 2, 3, 4, 5, 6, self.rng.randrange(100), 2**62, 2**63, 2**64 - 1))

    def flags(self):
        return self.rng.choice((0x1c11, 0x1c11, 0x1d11, 0x1c12, 1, 2, self.rng.randrange(65536)))

    def slots(self):
        bits = bytearray(2048)
        for _ in range(self.rng.randrange(20)):
            bits[self.rng.randrange(2048)] = self.rng.randrange(256)
        return self.rng.choice((bytes(2048), b"\xff" * 2048, bytes(bits)))

    def some(self, most):
        return self.rng.randbytes(self.rng.randrange(most))

    def gossip(self):
        return (self.id() + struct.pack(">II", self.rng.getrandbits(32), self.rng.getrandbits(32)) + self.address()
                + struct.pack(">HHHHH", self.port(), self.port(), self.flags(), self.port(), 0))

    def version(self):
        return self.rng.choice((0, 1, 2, 2**31, 2**32 - 1))

    def voters(self):
        ids = sorted(bytes.fromhex(id.decode()) for id in {self.id() for _ in range(self.rng.randrange(5))})
        count = len(ids) if self.rng.random() < 0.9 else self.rng.getrandbits(32)
        return struct.pack(">QIII", self.epoch(), self.version(), self.rng.randrange(4), count) + b"".join(ids)

    def extension(self):
        voters = self.rng.random() < 0.3
        others = (self.some(100), self.id(), b"host.example\0", b"127.0.0.1\0", b"a\nb\0",
                  self.id() + struct.pack(">Q", self.rng.choice((0, 60, 2**63))))
        data = self.voters() if voters else self.rng.choice(others)
        data += bytes(-len(data) % 8)
        size = 8 + len(data) if self.rng.random() < 0.9 else self.rng.randrange(200)
        return struct.pack(">IHH", size, VOTERS if voters else self.rng.randrange(10), 0) + data

    def data(self, kind):
        """What follows the header, with the numbers of its gossip entries and extensions."""
        if kind in (PING, PONG, MEET):
            entries = [self.gossip() for _ in range(self.rng.randrange(4))]
            extensions = [self.extension() for _ in range(self.rng.randrange(4))]
            return b"".join(entries + extensions), len(entries), len(extensions)
        if kind == FAIL:
            return self.id(), 0, 0
        if kind in (PUBLISH, PUBLISHSHARD):
            channel, text = self.some(20), self.some(50)
            return struct.pack(">II", len(channel), len(text)) + channel + text, 0, 0
        if kind == UPDATE:
            return struct.pack(">Q", self.epoch()) + self.id() + self.slots(), 0, 0
        if kind == AUTH_NACK:
            return struct.pack(">QB7x", self.epoch(), self.rng.randrange(10)), 0, 0
        if kind == MODULE:
            text = self.some(30)
            return struct.pack(">QIB", self.rng.getrandbits(64), len(text), 0) + text, 0, 0
        return b"", 0, 0

    def next(self):
        kind = self.rng.choice(TYPES)
        data, entries, extensions = self.data(kind)
        if kind in (PUBLISH, PUBLISHSHARD, MODULE) and self.rng.random() < 0.5:
            return b"RCmb" + struct.pack(">IHHHH", 16 + len(data), 1, 0, kind | LIGHT, 0) + data
        head = self.port(), entries, self.epoch(), self.epoch(), self.rng.getrandbits(self.rng.randrange(1, 64))
        rest = (self.slots(), self.rng.choice((bytes(40), self.id())), self.address(), extensions, self.port(), self.port(),
                self.flags(), self.rng.randrange(2), self.rng.choice((0, 1, 2, 4, 7)))
        own = self.rng.choice((0, 0, 8, 16, 24, 32, 56, self.rng.randrange(64))), self.epoch(), self.version()
        made = bytearray(message(kind, head, self.id(), rest, data, own))
        if self.rng.random() < 0.1:
            made[self.rng.randrange(len(made))] = self.rng.randrange(256)
        if self.rng.random() < 0.03:
            del made[self.rng.randrange(len(made)):]
        return bytes(made)


class Sender:
    """A connection to the bus port of a node at random, now and then another one."""

    def __init__(self, rng, nodes):
        self.rng, self.nodes = rng, nodes
        self.socket = None

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def send(self, data):
        if not self.socket or self.rng.random() < 0.1:
            self.close()
            self.socket = socket.create_connection(("127.0.0.1", self.rng.choice(self.nodes).bus_port), timeout=WAIT_S)
            self.socket.setblocking(False)
        try:
            self.socket.send(data)
            self.socket.recv(1 << 20)
        except BlockingIOError:
            pass
        except OSError:
            self.close()


def fault_of(node):
    """A text if the node has ended or does not answer."""
    try:
        node.client.ask("PING")
        node.client.ask("CLUSTER", "NODES")
        node.client.ask("CLUSTER", "SLOTS")
        return ""
    except (OSError, Closed, Reply) as error:
        log = node.server.log()
        at = log.find("BUG REPORT START")
        return f"{type(error).__name__} {error}: " + (log[max(at - 1500, 0):][:5000] if at >= 0 else log[-5000:])


def send_all(nodes, rng, count, results):
    messages, sender = Messages(rng, nodes), Sender(rng, nodes)
    for number in range(0, count, BATCH):
        try:
            for _ in range(BATCH):
                sender.send(messages.next())
        except OSError as error:  # the port is closed
            print(f"no connection: {error}")
        faults = [fault for fault in map(fault_of, nodes) if fault]
        results.note(f"all nodes answer after {number + BATCH} messages", faults[0] if faults else "")
        if faults:
            break
    sender.close()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results = Results()
    folder = tempfile.mkdtemp(prefix="bus_nodes", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    nodes = []
    try:
        for i in range(NODES):
            nodes.append(Node(options.server, os.path.join(folder, str(i)), "yes" if options.seed % 2 else "no"))
        form_cluster(nodes)
        results.note("a primary without a port is not followed", tell_no_port(nodes))
        send_all(nodes, random.Random(options.seed), options.messages, results)
        for i, node in enumerate(nodes):
            if not results.failed:
                code = node.server.stop()
                results.note(f"node {i} stops cleanly", "" if code == 0 else f"{code}: {node.server.log()[-3000:]}")
    finally:
        for node in nodes:
            node.server.kill()
    if not results.failed:
        shutil.rmtree(folder)
    results.finish()


if __name__ == "__main__":
    main()

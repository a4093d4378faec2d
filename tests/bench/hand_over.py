#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long hand-overs take, and what a client that writes sees of them, ours beside a peer and mixed with it.

    tests/bench/hand_over.py OURS [PEER] [--rounds N] [--only failover,shutdown,...] [--kinds ours/ours,...]

failover   FAILOVER: until the replica is the primary
shutdown   SHUTDOWN NOSAVE of a primary with a replica: until the process has ended
sigterm    the same with SIGTERM
sentinel   SENTINEL FAILOVER COORDINATED, with a Sentinel of ours: until it names the new primary
cluster    CLUSTER FAILOVER at the replica of one of three primaries: until it is the primary
leave      SHUTDOWN NOSAVE FAILOVER of the same primary: until the replica is the primary
slots      CLUSTER MIGRATESLOTS of a third of the slots, with 20,000 keys in all, to another primary: until the job has succeeded
wait       SET and WAIT 1: until the reply

Each pair of kinds (primary/replica) is started for each round, without files, on free ports. Three rows: `idle`; `after a
write`, right after one; `writer`: with a client that increments a counter, one request at a time, and after an error or a
closed connection tries the other server, or the one that Sentinel names: the longest time between two of its replies, the errors it was replied, and
increments that were acknowledged and lost. Milliseconds: median of the rounds, and the longest."""
import argparse
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import reserve_node_port, reserve_port  # noqa: E402

SECONDS = 60


def encode(words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Refused(Exception):
    """An error reply."""


class Client:
    def __init__(self, port, seconds=SECONDS):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def reply(self):
        line = self.reader.readline()
        if not line:
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b"$":
            return self.reader.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest.decode()

    def ask(self, *words):
        self.socket.sendall(encode(words))
        return self.reply()

    def close(self):
        self.reader.close()
        self.socket.close()


def wait(is_done, what, step=0.02):
    end = time.monotonic() + SECONDS
    while True:
        try:
            if is_done():
                return
        except (OSError, Refused):
            pass
        if time.monotonic() > end:
            raise RuntimeError("not in time: " + what)
        time.sleep(step)


class Server:
    def __init__(self, binary, *arguments, cluster=False, sentinel=None):
        self.folder = tempfile.TemporaryDirectory()
        if cluster:
            self.port, self.guards = reserve_node_port()
            arguments += ("--cluster-enabled", "yes", "--cluster-node-timeout", "15000")
        else:
            self.port, guard = reserve_port()
            self.guards = [guard]
        command = [binary]
        if sentinel:
            path = os.path.join(self.folder.name, "sentinel.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"port {self.port}\nbind 127.0.0.1\n{sentinel}")
            command += [path, "--sentinel"]
        else:
            command += ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0",
                        "--enable-debug-command", "yes"]
        with open(os.path.join(self.folder.name, "log"), "wb") as log:
            self.process = subprocess.Popen([*command, *arguments], cwd=self.folder.name, stdout=log, stderr=log)
        wait(self.connect, "a server")

    def connect(self):
        self.client = Client(self.port)
        return self.client.ask("PING") == "PONG"

    def ask(self, *words):
        return self.client.ask(*words)

    def info(self, section="replication"):
        return self.ask("INFO", section)

    def role(self):
        """Asked over a connection of its own: others may be closed in a hand-over."""
        try:
            client = Client(self.port, 5)
            role = client.ask("ROLE")[0]
            client.close()
            return role
        except (OSError, Refused):
            return None

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
        for guard in self.guards:
            guard.close()


class Pair:
    """A primary with a replica, with what belongs to the kind of hand-over."""

    def __init__(self, programs, kinds, how, ours):
        first, second = (programs[kind] for kind in kinds)
        in_cluster = how in ("cluster", "leave", "slots")
        self.servers = [Server(first, cluster=in_cluster), Server(second, cluster=in_cluster)]
        self.primary, self.replica = self.servers
        try:
            if how == "slots":
                self.share_slots()
                return
            if in_cluster:
                self.join(first)
            else:
                self.replica.ask("REPLICAOF", "127.0.0.1", self.primary.port)
            wait(lambda: "master_link_status:up" in self.replica.info() and "state=online" in self.primary.info(), "the link")
            if how == "sentinel":
                self.watch(ours)
        except BaseException:
            self.stop()
            raise

    def join(self, binary):
        others = [Server(binary, cluster=True) for _ in range(2)]
        self.servers += others
        owners = [self.primary, *others]
        for i, server in enumerate(owners):
            server.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            server.ask("CLUSTER", "ADDSLOTSRANGE", i * 16384 // 3, (i + 1) * 16384 // 3 - 1)
        for server in self.servers[1:]:
            self.primary.ask("CLUSTER", "MEET", "127.0.0.1", server.port)
        wait(lambda: all("cluster_known_nodes:4" in s.ask("CLUSTER", "INFO") for s in self.servers), "the nodes")
        own_id = self.primary.ask("CLUSTER", "MYID")
        wait(lambda: self.replica.ask("CLUSTER", "REPLICATE", own_id) == "OK", "the replica")
        wait(lambda: all("cluster_state:ok" in s.ask("CLUSTER", "INFO") for s in self.servers), "the cluster")
        # Voters know that it is a replica of this primary.
        wait(lambda: all(own_id in s.ask("CLUSTER", "NODES").split("slave ")[-1] for s in self.servers), "the replica")

    def share_slots(self):
        """Two primaries; the first one has all slots but one."""
        source, target = self.servers
        source.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16382)
        target.ask("CLUSTER", "ADDSLOTS", 16383)
        target.ask("CLUSTER", "SET-CONFIG-EPOCH", 2)
        source.ask("CLUSTER", "MEET", "127.0.0.1", target.port)
        for server in self.servers:
            wait(lambda server=server: "cluster_state:ok" in server.ask("CLUSTER", "INFO") and
                 "cluster_known_nodes:2" in server.ask("CLUSTER", "INFO"), "the cluster")
        source.ask("DEBUG", "POPULATE", 20000, "key", 100)

    def watch(self, ours):
        text = (f"sentinel monitor m 127.0.0.1 {self.primary.port} 1\nsentinel down-after-milliseconds m 3000\n"
                "sentinel failover-timeout m 20000\n")
        self.sentinel = Server(ours, sentinel=text)
        self.servers.append(self.sentinel)
        wait(lambda: "master_link_status:up" in str(self.sentinel.ask("SENTINEL", "REPLICAS", "m")) or
             "ok" in str(self.sentinel.ask("SENTINEL", "REPLICAS", "m")), "Sentinel knows the replica")

    def stop(self):
        for server in self.servers:
            server.stop()


class Writer(threading.Thread):
    KEY = "key_991803"  # of the first of three nodes

    def __init__(self, pair):
        super().__init__(daemon=True)
        self.pair = pair
        self.ports = [pair.primary.port, pair.replica.port]
        self.longest, self.errors, self.lost, self.acked = 0.0, set(), 0, 0
        self.is_over = False
        self.start()
        wait(lambda: self.acked > 100, "the writer")
        self.longest = 0.0

    def run(self):
        client, last = None, time.monotonic()
        while not self.is_over:
            try:
                client = client or Client(self.ports[0])
                value = client.ask("INCR", self.KEY)
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
                # A request that was executed, and whose reply got lost, may count twice.
                self.lost += max(0, self.acked + 1 - value)
                self.acked = value
                continue
            except Refused as error:
                self.errors.add(str(error).split(" ", maxsplit=1)[0])
            except OSError:
                pass
            if client:
                client.close()
            client = None
            self.ports = self.next_ports()
            time.sleep(0.001)

    def next_ports(self):
        """The other server; with Sentinel the one that it names."""
        if not hasattr(self.pair, "sentinel"):
            return self.ports[::-1]
        sentinel = Client(self.pair.sentinel.port)
        port = int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")[1])
        sentinel.close()
        return [port]

    def end(self):
        time.sleep(0.3)
        self.is_over = True
        self.join(SECONDS)


def exited(server):
    end = time.monotonic() + SECONDS
    while server.process.poll() is None:
        if time.monotonic() > end:
            raise RuntimeError("the server does not end")
        time.sleep(0.001)


def promoted(pair):
    wait(lambda: pair.replica.role() == "master", "the promotion", 0.001)


def move_slots(source, target):
    source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, 16384 // 3, "NODE", target.ask("CLUSTER", "MYID"))

    def state():
        job = source.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]
        return job[job.index("state") + 1]

    wait(lambda: state() in ("success", "failed", "cancelled"), "the move", 0.001)
    if state() != "success":
        raise RuntimeError("the move has ended: " + state())


def hand_over(pair, how):
    if how == "failover":
        pair.primary.ask("FAILOVER")
        promoted(pair)
    elif how == "cluster":
        pair.replica.ask("CLUSTER", "FAILOVER")
        promoted(pair)
    elif how == "sentinel":
        address = lambda: int(pair.sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")[1])  # noqa: E731
        pair.sentinel.ask("SENTINEL", "FAILOVER", "m", "COORDINATED")
        wait(lambda: address() == pair.replica.port, "the failover", 0.001)
    elif how == "slots":
        move_slots(pair.primary, pair.replica)
    elif how == "sigterm":
        pair.primary.process.send_signal(signal.SIGTERM)
        exited(pair.primary)
    else:
        words = ["SHUTDOWN", "NOSAVE"] + (["FAILOVER"] if how == "leave" else [])
        pair.primary.client.socket.sendall(encode(words))
        if how == "leave":
            promoted(pair)
        else:
            exited(pair.primary)


def one_round(programs, kinds, how, row, ours):
    pair = Pair(programs, kinds, how, ours)
    try:
        writer = Writer(pair) if row == "writer" else None
        # The acknowledgements of each second are at any time before.
        time.sleep(1 + random.random())
        if row == "after a write":
            pair.primary.ask("SET", Writer.KEY, 1)
        began = time.monotonic()
        if how == "wait":
            pair.primary.ask("SET", Writer.KEY, 1)
            pair.primary.ask("WAIT", 1, 0)
        else:
            hand_over(pair, how)
        seconds = time.monotonic() - began
        if not writer:
            return seconds, set(), 0
        writer.end()
        return writer.longest, writer.errors, writer.lost
    finally:
        pair.stop()


def rows_of(how):
    if how == "wait":
        return ["after a write"]
    return ["idle", "after a write"] + (["writer"] if how not in ("shutdown", "sigterm") else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="failover,shutdown,sigterm,sentinel,cluster,leave,slots,wait")
    parser.add_argument("--kinds", default="")
    arguments = parser.parse_args()
    programs = {"ours": os.path.abspath(arguments.ours)}
    if arguments.peer:
        programs["peer"] = os.path.abspath(arguments.peer)
    pairs = arguments.kinds.split(",") if arguments.kinds else [f"{a}/{b}" for a in programs for b in programs]
    for how in arguments.only.split(","):
        for kinds in pairs:
            for row in rows_of(how):
                times, errors, lost = [], set(), 0
                for _ in range(arguments.rounds):
                    seconds, seen, count = one_round(programs, kinds.split("/"), how, row, programs["ours"])
                    times.append(seconds * 1000)
                    errors |= seen
                    lost += count
                text = f"{how:9} {kinds:10} {row:14} {statistics.median(times):7.0f} {max(times):7.0f}"
                if row == "writer":
                    text += f"  errors: {' '.join(sorted(errors)) or 'none'}, lost {lost}"
                print(text, flush=True)


if __name__ == "__main__":
    main()

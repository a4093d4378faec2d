#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how slots move from one node to another one (CLUSTER MIGRATESLOTS), ours beside a peer.

    tests/bench/slot_migration.py idle OURS PEER [--rounds N] [--specs KEYS:BYTES,...]
    tests/bench/slot_migration.py writes OURS PEER --benchmark PROGRAM [--rounds N] [--rate N] [--specs KEYS:BYTES,...]
                                  [--reshard VALKEY_CLI]

idle  half of all slots, and back, with no other requests: milliseconds, MB of values per second, CPU ms of source and
      target. Medians of the rounds and directions, least and greatest in brackets; servers take turns.
        A spec mixed:KEYS is values of all types, the larger ones of some hundred elements.
writes  the same while valkey-benchmark SETs random keys of all slots, --rate per second (0: as fast as it can, P 16), and
      two processes write and read keys of the moving slots and of the others, check each reply and follow redirects:
      seconds idle and under writes; requests of the two processes, those that were redirected, the wrong ones;
      milliseconds of a request before and during the move (p50, p99, p99.9, longest); MB that the resident set of the
      source had more than the keys need. A move that fails is reported.

Each pair of nodes is started for its turn, without files, on free ports."""
import argparse
import binascii
import multiprocessing
import os
import socket
import statistics
import subprocess
import threading
import time

from keyspace import Server, cpu_us, request, reserve_port

LAST = 16383


class Pair:
    """Two primaries; the first one has all slots but one."""

    def __init__(self, binary, extra=()):
        options = ["--cluster-enabled", "yes", "--cluster-allow-replica-migration", "no",
                   "--cluster-announce-ip", "127.0.0.1", *extra]
        self.nodes = []
        for _ in range(2):
            bus, guard = reserve_port()
            with guard:
                self.nodes.append(Server(os.path.abspath(binary), extra=[*options, "--cluster-port", str(bus)]))
            self.nodes[-1].bus = bus
        a, b = self.nodes
        a.ask("CLUSTER", "ADDSLOTSRANGE", 0, LAST - 1)
        b.ask("CLUSTER", "ADDSLOTS", LAST)
        b.ask("CLUSTER", "SET-CONFIG-EPOCH", 2)
        a.ask("CLUSTER", "MEET", "127.0.0.1", b.port, b.bus)
        self.ids = [node.ask("CLUSTER", "MYID").decode() for node in self.nodes]
        for node in self.nodes:
            wait(lambda node=node: b"cluster_state:ok" in node.ask("CLUSTER", "INFO") and
                 b"cluster_known_nodes:2" in node.ask("CLUSTER", "INFO"), "the cluster")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.__exit__()

    def fill(self, keys, size):
        """`keys` keys of `size` bytes, or `size` mixed ones; returns the number of keys."""
        if keys != "mixed":
            self.nodes[0].ask("DEBUG", "POPULATE", keys, "key", size)
            return keys
        for at in range(0, size, 500):
            batch = b"".join(request(*mixed_value(i)) for i in range(at, min(at + 500, size)))
            self.nodes[0].pass_over(batch)  # keys of the last slot are refused: they are few
        return size

    def reshard(self, cli):
        node, began = self.nodes[0], time.monotonic()
        done = subprocess.run([cli, "--cluster", "reshard", f"127.0.0.1:{node.port}", "--cluster-from", self.ids[0],
                               "--cluster-to", self.ids[1], "--cluster-slots", str(LAST // 2 + 1), "--cluster-yes"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise RuntimeError(f"the reshard ended: {done.stdout[-200:]}")
        return time.monotonic() - began

    def move(self, source, first=0, last=LAST // 2):
        """Moves slots away from a node; returns the seconds that it took."""
        node, began = self.nodes[source], time.monotonic()
        node.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", self.ids[1 - source])
        wait(lambda: job(node).get("state") in ("success", "failed", "cancelled"), "the move", 120)
        if job(node)["state"] != "success":
            raise RuntimeError(f"the move ended: {job(node)}")
        return time.monotonic() - began

    def settle(self, keys):
        """Waits until the source has deleted what it has given away."""
        wait(lambda: sum(int(n.ask("DBSIZE")) for n in self.nodes) <= keys, "the deletion of moved keys")


def wait(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.002)


def job(node):
    """The newest job of a node."""
    words = [w.decode() if isinstance(w, bytes) else w for w in node.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]]
    return dict(zip(words[::2], words[1::2]))


def read_spec(text):
    keys, size = text.split(":")
    return keys if keys == "mixed" else int(keys), int(size)


def idle(options):
    specs = [read_spec(spec) for spec in options.specs.split(",") if not spec.startswith("mixed")]
    rows = {}
    for _ in range(options.rounds):
        for keys, size in specs:
            for name, binary in (("ours", options.ours), ("peer", options.peer)):
                with Pair(binary) as pair:
                    pair.fill(keys, size)
                    for source in (0, 1):
                        before = [cpu_us(node) for node in pair.nodes]
                        seconds = pair.move(source)
                        spent = [(cpu_us(n) - b) / 1e3 for n, b in zip(pair.nodes, before)]
                        moved = keys * size / 2e6
                        rows.setdefault((keys, size, name), []).append(
                            (seconds * 1e3, moved / seconds, spent[source], spent[1 - source]))
                        pair.settle(keys)
    for (keys, size, name), values in rows.items():
        figures = [f"{statistics.median(c):.0f} ({min(c):.0f}-{max(c):.0f})" for c in zip(*values)]
        print(f"{keys} x {size} {name}: {figures[0]} ms, {figures[1]} MB/s, CPU ms of source {figures[2]}, "
              f"of target {figures[3]}", flush=True)


def slot_of(key):
    return binascii.crc_hqx(key.encode(), 0) % (LAST + 1)


def mixed_value(i):
    """A command that makes one of six kinds of values; one of ten collections has 200 elements."""
    key, count = f"key:{i}", 200 if i % 60 >= 54 else 12
    items = [f"element:{n * 7919 + i}" for n in range(count)]
    pairs = [word for n, item in enumerate(items) for word in (n, item)]
    return (("SET", key, "x" * (i % 400)), ("RPUSH", key, *items), ("SADD", key, *items), ("ZADD", key, *pairs),
            ("HSET", key, *pairs), ("XADD", key, "*", *pairs))[i % 6]


class Checker(multiprocessing.Process):
    """Writes and reads keys of slots [first, last], one request at a time."""

    def __init__(self, ports, first, last):
        super().__init__(daemon=True)
        self.ports = ports
        names = (f"check:{i}" for i in range(1 << 30))
        self.names = [n for n, _ in zip((n for n in names if first <= slot_of(n) <= last), range(500))]
        self.pipe, self.far = multiprocessing.Pipe()
        self.start()

    def connect(self, port):
        s = socket.create_connection(("127.0.0.1", port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def ask(self, words):
        bytes_ = request(*words)
        self.links[self.at].sendall(bytes_)
        reply = self.links[self.at].recv(4096)
        while reply.startswith(b"-MOVED "):
            self.redirected += 1
            self.at = int(reply.split(b":")[-1])
            self.links[self.at].sendall(bytes_)
            reply = self.links[self.at].recv(4096)
        if reply.startswith(b"-ASK "):
            self.redirected += 1
            link = self.links[int(reply.split(b":")[-1])]
            link.sendall(request("ASKING"))
            link.recv(4096)
            link.sendall(bytes_)
            reply = link.recv(4096)
        return reply

    def run(self):
        self.links = {port: self.connect(port) for port in self.ports}
        self.at, self.redirected = self.ports[0], 0
        waits, wrong, count = [], [], 0
        while True:
            name, value = self.names[count % len(self.names)], str(count)
            for words, good in ((("SET", name, value), b"+OK\r\n"),
                                (("GET", name), b"$%d\r\n%s\r\n" % (len(value), value.encode()))):
                begin = time.perf_counter()
                reply = self.ask(words)
                waits.append((time.perf_counter() - begin) * 1e3)
                if reply != good:
                    wrong.append(reply[:80])
            count += 1
            time.sleep(0.0005)
            if self.far.poll():
                if self.far.recv() == "end":
                    return
                self.far.send((waits, self.redirected, wrong))
                waits, wrong, self.redirected = [], [], 0

    def take(self):
        """What has happened since the last call."""
        self.pipe.send("take")
        return self.pipe.recv()

    def end(self):
        self.pipe.send("end")
        self.join()


def spread(waits):
    waits = sorted(waits)
    at = [waits[min(len(waits) - 1, int(len(waits) * part))] for part in (0.5, 0.99, 0.999)]
    return "/".join(f"{w:.2f}" for w in (*at, waits[-1]))


def move_under_writes(binary, keys, size, options):
    with Pair(binary) as pair:
        names = pair.fill(keys, size)
        idle_s = pair.move(0)
        pair.settle(names)
        pair.move(1)
        pair.settle(names)
        rate = ["--rps", str(options.rate), "-P", "1"] if options.rate else ["-P", "16"]
        load = subprocess.Popen(
            [options.benchmark, "-p", str(pair.nodes[0].port), "--cluster", "-t", "set", "-r", str(names),
             "-d", "16" if keys == "mixed" else str(size),
             "-n", "1000000000", "-c", "20", "-q", *rate], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        checkers = [Checker([n.port for n in pair.nodes], *slots) for slots in ((0, LAST // 2), (LAST // 2 + 1, LAST - 1))]
        try:
            time.sleep(2)
            for c in checkers:
                c.take()
            done = commands(pair)
            time.sleep(3)
            rate_now = (commands(pair) - done) / 3
            before = [c.take() for c in checkers]
            rss = pair.nodes[0].rss()
            most = Peak(pair.nodes[0])
            try:
                end = f"{pair.reshard(options.reshard) if options.reshard else pair.move(0):.2f} s"
            except RuntimeError as error:
                end = str(error)
            during = [c.take() for c in checkers]
            print(f"  {rate_now:.0f} requests/s; idle {idle_s:.2f} s, under writes {end}; memory +{most.end() - rss / 1e6:.0f} MB")
            for what, b, d in zip(("moving", "others"), before, during):
                print(f"  {what}: before {len(b[0])}, {spread(b[0])} ms; during {len(d[0])}, {spread(d[0])} ms; "
                      f"redirected {d[1]}, wrong {len(b[2]) + len(d[2])} {(b[2] + d[2])[:2]}", flush=True)
        finally:
            load.kill()
            load.wait()
            for c in checkers:
                c.end()


def commands(pair):
    lines = b"".join(n.ask("INFO", "stats") for n in pair.nodes).split(b"\r\n")
    return sum(int(line.split(b":")[1]) for line in lines if line.startswith(b"total_commands_processed:"))


class Peak(threading.Thread):
    """The greatest resident set of a node, in MB."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.most, self.over = node, 0, False
        self.start()

    def run(self):
        while not self.over:
            self.most = max(self.most, self.node.rss() / 1e6)
            time.sleep(0.02)

    def end(self):
        self.over = True
        self.join()
        return self.most


def writes(options):
    for keys, size in map(read_spec, options.specs.split(",")):
        for round_ in range(options.rounds):
            for name, binary in (("ours", options.ours), ("peer", options.peer)):
                print(f"{keys} x {size} {name}, round {round_ + 1}")
                move_under_writes(binary, keys, size, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("idle", "writes"))
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--specs", default="1000000:100,300000:1000,20000:16384")
    parser.add_argument("--benchmark", help="a valkey-benchmark")
    parser.add_argument("--reshard", metavar="VALKEY_CLI")
    parser.add_argument("--rate", type=int, default=20000)
    options = parser.parse_args()
    {"idle": idle, "writes": writes}[options.mode](options)


if __name__ == "__main__":
    main()

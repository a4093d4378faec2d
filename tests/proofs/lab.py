# SPDX-License-Identifier: BSD-3-Clause
"""Servers of a cluster as real processes, each at an address of its own: in a network namespace, so
that it can be separated from others in either direction, or at a port of this machine."""
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from ports import reserve_node_port  # noqa: E402

NOWHERE = "02:00:00:00:00:ff"  # frames to it reach nobody


class Failed(Exception):
    """A proof does not hold."""


class ReplyError(Exception):
    """An error that a server has replied."""


class Client:
    """A connection; any failure of it is an OSError, errors of the server are ReplyErrors."""

    def __init__(self, address, timeout=1.0):
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        out = []
        for words in commands:
            words = [str(w).encode() for w in words]
            out.append(b"*%d\r\n" % len(words))
            out.extend(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        self.socket.sendall(b"".join(out))
        replies = [self._read() for _ in commands]
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise reply
        return replies

    def _read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection has ended")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"+":
            return rest
        if kind == b"-":
            return ReplyError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == "-1":
                return None
            text = self.file.read(int(rest) + 2)
            if len(text) != int(rest) + 2:
                raise OSError("the connection has ended")
            return text[:-2].decode(errors="surrogateescape")
        return [self._read() for _ in range(int(rest))]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise Failed(f"{' '.join(command)}: {result.stdout}{result.stderr}")
    return result.stdout


class Node:
    def __init__(self, lab, number, binary, environment):
        self.lab, self.number, self.binary, self.environment = lab, number, binary, environment
        self.folder = os.path.join(lab.folder, str(number))
        os.mkdir(self.folder)
        self.process = None
        self.guards = []  # of its ports
        self.space = f"{lab.name}n{number}"
        self.address = None
        if lab.namespaces:
            self._add_space()
        self.move()

    def _add_space(self):
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.space, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "link", "set", self.space, "master", self.lab.name, "up")
        run("ip", "-n", self.space, "link", "set", "eth0", "up")
        run("ip", "-n", self.space, "link", "set", "lo", "up")

    def move(self):
        """Gives it an address that no node has had."""
        if not self.lab.namespaces:
            port, self.guards = reserve_node_port()
            self.address = ("127.0.0.1", port)
            return
        if self.address:
            run("ip", "-n", self.space, "addr", "del", f"{self.address[0]}/24", "dev", "eth0")
        self.address = (self.lab.next_ip(), 7000)
        run("ip", "-n", self.space, "addr", "add", f"{self.address[0]}/24", "dev", "eth0")

    def start(self):
        enter = ["ip", "netns", "exec", self.space] if self.lab.namespaces else []
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            enter + [self.binary, "--port", str(self.address[1]), "--bind", "0.0.0.0",
                     "--protected-mode", "no", "--cluster-enabled", "yes", "--save", "",
                     "--cluster-node-timeout", str(self.lab.timeout_ms), "--dir", self.folder,
                     "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
                     "--cluster-replica-validity-factor", "0", *self.lab.options],
            stdout=log, stderr=log, cwd=self.folder, env=dict(os.environ, **self.environment))
        log.close()
        self.lab.wait(lambda: self.call("PING") == "PONG", 20, f"start of node {self.number}")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def call(self, *words, timeout=1.0):
        client = Client(self.address, timeout)
        try:
            return client.call(*words)
        finally:
            client.close()

    def fields(self, *words, timeout=1.0):
        """A reply of lines `name:value` as a dictionary."""
        text = self.call(*words, timeout=timeout)
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def info(self):
        return self.fields("CLUSTER", "INFO")

    def id(self):
        return self.call("CLUSTER", "MYID")

    def nodes(self):
        """What it knows: a list of (id, flags, primary, epoch, slots)."""
        rows = [line.split() for line in self.call("CLUSTER", "NODES").splitlines()]
        return [(r[0], set(r[2].split(",")), r[3], int(r[6]), " ".join(r[8:])) for r in rows]

    def myself(self):
        return next(n for n in self.nodes() if "myself" in n[1])

    def cpu_s(self):
        """What the threads of its process have taken so far, to the nanosecond."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int(t.joinpath("schedstat").read_text().split()[0]) for t in tasks) / 1e9

    def is_primary(self):
        return "master" in self.myself()[1]


class Lab:
    numbers = itertools.count(1)

    def __init__(self, name, timeout_ms, namespaces, options=()):
        self.name, self.timeout_ms, self.namespaces = name, timeout_ms, namespaces
        self.options = options
        self.folder = tempfile.mkdtemp(prefix=f"proof-{name}-")
        self.nodes = []
        self.binaries = []  # of which scenarios add nodes
        self.last_ip = 9
        self.net = f"10.{100 + os.getpid() % 100}.{next(Lab.numbers) % 250}"
        if namespaces:
            run("ip", "link", "add", name, "type", "bridge")
            run("ip", "addr", "add", f"{self.net}.1/24", "dev", name)
            run("ip", "link", "set", name, "up")

    def next_ip(self):
        self.last_ip += 1
        return f"{self.net}.{self.last_ip}"

    def add(self, binary, environment=None):
        node = Node(self, len(self.nodes), binary, environment or {})
        self.nodes.append(node)
        node.start()
        return node

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except (OSError, ReplyError, StopIteration):
                pass
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {seconds} s; {self.folder}")
            time.sleep(0.05)

    def separate(self, sender, receiver, separated=True):
        """What one node sends to the other one gets lost, or not any more."""
        command = ["ip", "-n", sender.space, "neigh"]
        where = [receiver.address[0], "dev", "eth0"]
        if separated:
            run(*command, "replace", *where, "lladdr", NOWHERE, "nud", "permanent")
        else:
            subprocess.run(command + ["del", *where], capture_output=True)

    def heal(self):
        for a in self.nodes if self.namespaces else []:
            for b in self.nodes:
                if a is not b:
                    self.separate(a, b, False)

    def close(self, keep=False):
        for node in self.nodes:
            if node.process:
                node.signal(signal.SIGCONT)
                node.kill()
            if self.namespaces:
                subprocess.run(["ip", "netns", "del", node.space], capture_output=True)
        if self.namespaces:
            subprocess.run(["ip", "link", "del", self.name], capture_output=True)
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

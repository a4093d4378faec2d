# SPDX-License-Identifier: BSD-3-Clause
"""What the durability tests share: a server process, a client, and a workload whose state after n operations is known.

An operation of a writer is one command or one transaction, and always increments the writer's counter: the counter
tells which of its operations a dataset contains, and all other keys must be what exactly those produce."""

import argparse
import os
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from ports import reserve_port  # noqa: E402


class Closed(Exception):
    """The server has closed the connection."""


class Reply(Exception):
    """The server has replied with an error."""


class Unexpected(Exception):
    """Something that must not happen; the text says what."""


def encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Client:
    def __init__(self, port, seconds=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed from error

    def read(self):
        """Errors inside of arrays are returned."""
        try:
            line = self.file.readline()
        except OSError as error:
            raise Closed from error
        if not line.endswith(b"\r\n"):
            raise Closed
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Reply(rest.decode())
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise Closed
            return data[:-2]
        if kind == b"*":
            items = []
            for _ in range(int(rest)):
                try:
                    items.append(self.read())
                except Reply as error:
                    items.append(error)
            return items
        return int(rest) if kind == b":" else rest

    def ask(self, *words):
        self.send(encode(*words))
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


def field(client, name):
    """A field of INFO."""
    for line in client.ask("INFO").decode().splitlines():
        if line.startswith(name + ":"):
            return line[len(name) + 1:]
    raise Unexpected(f"INFO has no field {name}")


class Server:
    """A server with an append only file in `folder`. Its output is appended to folder/log."""

    def __init__(self, program, folder, *arguments, environment=None):
        self.folder = folder
        self.port, self.guard = reserve_port()  # for as long as this object lives
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                 "--enable-debug-command", "yes", *arguments],
                cwd=folder, env=dict(os.environ, **(environment or {})), stdout=log, stderr=log)

    def connect(self, seconds=30):
        """Waits until the server accepts commands; None if it has exited."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                client = Client(self.port)
                client.ask("PING")
                return client
            except (OSError, Closed):
                if self.process.poll() is not None:
                    return None
            except Reply as error:
                if not str(error).startswith("LOADING"):
                    return client
            time.sleep(0.005)
        raise SystemExit(f"the server does not start:\n{self.log()}")

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def kill(self):
        """Its children may go on for a moment, and write to its folder."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=30):
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Workload:
    """Operations of one writer: 0 increments, 1 is a transaction over several types, 2 sets a key with a TTL."""

    def __init__(self, name):
        self.name = name

    def operation(self, n):
        """Bytes of the n-th operation (from 1), and the number of its replies."""
        name = self.name
        if n % 3 == 0:
            return encode("INCR", f"c:{name}"), 1
        if n % 3 == 1:
            return (encode("MULTI") + encode("RPUSH", f"l:{name}", n) + encode("HSET", f"h:{name}", n % 50, n)
                    + encode("INCR", f"c:{name}") + encode("EXEC")), 5
        return (encode("MULTI") + encode("INCR", f"c:{name}")
                + encode("SET", f"s:{name}:{n % 7}", "v%d" % n, "EX", "100000") + encode("EXEC")), 4

    def check(self, client):
        """The number of operations in the dataset; a text instead if the dataset is not what they produce."""
        name = self.name
        count = int(client.ask("GET", f"c:{name}") or 0)
        numbers = [n for n in range(1, count + 1) if n % 3 == 1]
        fields = {str(n % 50): str(n) for n in numbers}
        strings = {}
        for n in range(1, count + 1):
            if n % 3 == 2:
                strings[n % 7] = "v%d" % n
        found = [int(x) for x in client.ask("LRANGE", f"l:{name}", 0, -1)]
        if found != numbers:
            return f"writer {name}: the list of {count} operations has {len(found)} elements and not {len(numbers)}"
        flat = [x.decode() for x in client.ask("HGETALL", f"h:{name}")]
        if dict(zip(flat[::2], flat[1::2])) != fields:
            return f"writer {name}: the hash of {count} operations differs"
        for i in range(7):
            value = client.ask("GET", f"s:{name}:{i}")
            if (value.decode() if value else None) != strings.get(i):
                return f"writer {name}: key {i} of {count} operations is {value}"
        return count


def option_parser(doc):
    """A parser with the options that all programs have; `doc` begins with what the program does."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    build = os.path.join(ROOT, "build", "release")
    parser.add_argument("--server", type=os.path.abspath, default=os.path.join(build, "valkey-server"))
    parser.add_argument("--programs", type=os.path.abspath, default=os.path.join(build, "tests", "durability"))
    return parser


class Results:
    """Counts and prints; ends the process with its exit code."""

    def __init__(self):
        self.passed = self.failed = 0

    def note(self, name, fault=""):
        if fault:
            self.failed += 1
            print(f"FAILED  {name}: {fault}", flush=True)
        else:
            self.passed += 1

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)

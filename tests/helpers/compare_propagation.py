#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares, byte for byte, what our server propagates with what a real one appends to its AOF.

  compare_propagation.py [--server PATH] [--oracle PATH] [--only WORD] [--verbose]

Ours must be a build with checks (BUILD=debug, asan, hostile): those write what they propagate to the file
which VALKEY_RECORD_STREAM names. Both run the cases of tests/assets/propagation.txt, whose head says how they
are written. A case that needs a command which ours lacks is skipped. Times of 13 digits may differ a little.
Exit code 0 when all is equal, or when there is no oracle (said so); 1 otherwise."""

import argparse
import glob
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from ports import reserve_port  # noqa: E402
CASES = os.path.join(ROOT, "tests", "assets", "propagation.txt")
MARK = "this-case-ends"
CLOCK_SLACK_MS = 5000


class Client:
    """Replies are read, and only looked at for errors."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.waits = False
        self.number = self.ask("CLIENT", "ID").decode()[1:]

    def send(self, *words):
        words = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def settle(self):
        """Reads the reply to a command that had to wait."""
        if self.waits:
            self.waits = False
            self.read()

    def ask(self, *words):
        self.settle()
        self.send(*words)
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$" and rest != b"-1":
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*" and rest != b"-1":
            return [self.read() for _ in range(int(rest))]
        return line[:-2]


class Server:
    def __init__(self, program, arguments, environment):
        self.port, self.guard = reserve_port()  # for as long as this object lives
        self.folder = tempfile.TemporaryDirectory(prefix="propagation.")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--dir", self.folder.name, "--save", "", "--bind", "127.0.0.1",
             "--enable-debug-command", "yes"] + arguments,
            env=dict(os.environ, **environment), stdout=self.log, stderr=self.log)
        self.clients = {}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def connect(self):
        for _ in range(200):
            try:
                return Client(self.port)
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.log.seek(0)
        sys.exit(f"{self.process.args[0]} does not start:\n{self.log.read()}")

    def client(self, name):
        if name not in self.clients:
            self.clients[name] = self.connect()
        return self.clients[name]

    def begin(self):
        """Each case has connections of its own and an empty dataset, which nothing expires unasked."""
        self.clients = {}
        self.client("1").ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        self.client("1").ask("FLUSHALL")

    def wait(self, who, words):
        """Sends a command that waits; returns when it does."""
        self.client(who).settle()
        self.client(who).send(*words)
        self.client(who).waits = True
        number = self.client(who).number
        for _ in range(2000):
            if b" flags=b " in self.client("mark").ask("CLIENT", "LIST", "ID", number):
                return
            time.sleep(0.005)
        sys.exit(f"this does not wait: {words}")

    def end(self):
        for client in self.clients.values():
            client.settle()
        self.client("mark").ask("SET", MARK, "")

    def stop(self):
        self.client("mark").socket.sendall(b"SHUTDOWN NOSAVE\r\n")
        if self.process.wait(30) != 0:
            self.log.seek(0)
            sys.exit(f"{self.process.args[0]} ended with {self.process.returncode}:\n{self.log.read()}")


def read_cases(path):
    cases = []
    for line in open(path):
        line = line.strip()
        if line.startswith("=="):
            cases.append((line[2:].strip(), []))
        elif line and not line.startswith("#"):
            cases[-1][1].append(line)
    return cases


def run_case(server, lines):
    """False when a command is unknown to the server."""
    server.begin()
    known = True
    for line in lines:
        who, sign, request = re.fullmatch(r"(?:(\d)([>&])\s*)?(.*)", line).groups(default="1")
        words = shlex.split(request)
        if sign == "&":
            server.wait(who, words)
            continue
        if words[0] == "wait":
            until = time.time() + int(words[1]) / 1000  # for a time that must pass, on both servers
            while time.time() < until:
                time.sleep(0.002)
            continue
        reply = server.client(who).ask(*words)
        known = known and not (isinstance(reply, bytes) and reply.startswith(b"-ERR unknown"))
    server.end()
    return known


def split_stream(data):
    """The commands of a stream as (argv, raw bytes), cut into cases by the mark and their FLUSHALL."""
    cases, here, at = [], [], 0
    while at < len(data):
        begin, argv = at, []
        end = data.index(b"\r\n", at)
        count = int(data[at + 1:end])
        at = end + 2
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1:end])
            argv.append(data[end + 2:end + 2 + size])
            at = end + 4 + size
        here.append((argv, data[begin:at]))
        if argv[:2] == [b"SET", MARK.encode()]:
            cases.append(here)
            here = []
    return cases


def without_frame(case):
    """Leaves out the FLUSHALL before a case, the mark behind it and SELECTs that only these need."""
    first = next(i for i, (argv, _) in enumerate(case) if argv[0] == b"FLUSHALL")
    commands = case[first + 1:-1]
    if commands and commands[-1][0][0] == b"SELECT":
        commands.pop()
    return commands


def equal(ours, theirs):
    if ours[1] == theirs[1]:
        return True
    if len(ours[0]) != len(theirs[0]):
        return False
    for mine, other in zip(*[[re.split(rb"(\d{13})", word) for word in argv] for argv in (ours[0], theirs[0])]):
        if mine[::2] != other[::2] or len(mine) != len(other):
            return False
        if any(abs(int(a) - int(b)) > CLOCK_SLACK_MS for a, b in zip(mine[1::2], other[1::2])):
            return False
    return True


def show(title, commands):
    print(f"    {title}:")
    for argv, _ in commands:
        print("       ", b" ".join(argv).decode("latin1"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=os.path.join(ROOT, "build", "debug", "valkey-server"))
    parser.add_argument("--oracle", default=os.environ.get("ORACLE", "/tmp/peers/bin/valkey-server"))
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--verbose", action="store_true", help="print what equal cases propagated")
    options = parser.parse_args()
    if not os.access(options.oracle, os.X_OK):
        print("skipped: no real server to compare with (--oracle PATH)\n0 passed, 0 failed")
        return 0
    cases = [case for case in read_cases(CASES) if options.only in case[0]]
    ours = Server(options.server, [], {"VALKEY_RECORD_STREAM": "stream"})
    theirs = Server(options.oracle, ["--appendonly", "yes"], {})
    known = [run_case(ours, lines) for _, lines in cases]
    for name, lines in cases:
        if not run_case(theirs, lines):
            sys.exit(f"the real server does not know a command of: {name}")
    for server in (ours, theirs):
        server.stop()
    streams = [without_frame(case) for case in split_stream(open(ours.path("stream"), "rb").read())]
    aof = glob.glob(theirs.path("appendonlydir/*.incr.aof"))[0]
    real = [without_frame(case) for case in split_stream(open(aof, "rb").read())]
    passed = failed = 0
    for (name, _), can, mine, other in zip(cases, known, streams, real, strict=True):
        if not can:
            continue
        if len(mine) == len(other) and all(map(equal, mine, other)):
            passed += 1
            if options.verbose:
                print("ok     ", name)
                show("both", mine)
            continue
        failed += 1
        print("FAILED ", name)
        show("ours", mine)
        show("real", other)
    print(f"{known.count(False)} cases skipped: ours lacks a command")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

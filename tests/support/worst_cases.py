# SPDX-License-Identifier: BSD-3-Clause
"""The worst request of each command, from the field "worst_case" of the specs (src/cmd/spec/README.md), with any number
of elements; and a client that sends it. For tests/helpers/worst_cases.py and tests/bench/long_commands.py."""

import glob
import os
import random
import socket
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "utils"))
from command_spec import load_specs  # noqa: E402

PART = 2000  # elements in one command of a preparation
BYTES_EACH = 100  # of a string, for each element of a collection
BYTES_LEAST = 256 * 1024  # of a string: shorter ones never run in slices
HLLS_MAX = 1000


class ReplyError(Exception):
    pass


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


class Client:
    """A connection to a port, or to a socket if `where` is a path. Replies are bytes, None, lists, and for errors
    ReplyError is raised; pushes are not expected."""

    def __init__(self, where, protocol=2):
        if str(where).isdigit():
            self.socket = socket.create_connection(("127.0.0.1", int(where)), timeout=600)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(600)
            self.socket.connect(where)
        self.file = self.socket.makefile("rb", buffering=1 << 20)
        self.ask("HELLO", protocol)

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind in b"-!":
            raise ReplyError((rest if kind == b"-" else self.file.read(int(rest) + 2)[:-2]).decode())
        if kind in b"$=":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind in b"*~%":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest) * (2 if kind == b"%" else 1))]
        return None if kind == b"_" else rest

    def send(self, *words):
        self.socket.sendall(encode(*words))

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def info(self, field, section="stats"):
        for line in self.ask("INFO", section).split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.decode() == field:
                return int(value)
        raise KeyError(field)


# ---- values: functions of the number of elements that yield commands

def member(i):
    return f"m-{i}"


def parts(n):
    for at in range(0, n, PART):
        yield range(at, min(at + PART, n))


def collection(*head, each):
    """A maker of a key whose elements are added by a command with many arguments."""
    def make(n):
        for part in parts(n):
            yield [*head, *(word for i in part for word in each(i, n))]
    return make


def place(i):
    return [i * 7919 % 36000 / 100 - 180, i * 104729 % 17000 / 100 - 85, member(i)]


def make_stream(n):
    for i in range(n):
        yield ["XADD", "stream", f"{i + 1}-1", "f", "v"]
    yield ["XGROUP", "CREATE", "stream", "h", "0"]
    yield ["XGROUP", "CREATE", "stream", "g", "0"]
    for part in parts(n):
        yield ["XREADGROUP", "GROUP", "g", "c", "COUNT", len(part), "STREAMS", "stream", ">"]


def make_paths(n):
    for part in parts(n):
        yield ["PHSET", "paths", "p-0", "FIELDS", len(part), *(word for i in part for word in (member(i), "v"))]
    for part in parts(n):
        yield ["PHMSET", "paths", *(word for i in part for word in (f"p-{i + 1}", "FIELDS", 1, "f", "v"))]


def text_of(n, seed):
    rng = random.Random(seed)
    return "".join(rng.choice("abcd") for _ in range(int(10 * n ** 0.5)))


def hll_names(n):
    return [f"hll-{i}" for i in range(min(n, HLLS_MAX))]


VALUES = {
    "set": collection("SADD", "set", each=lambda i, n: [member(i)]),
    "set2": collection("SADD", "set2", each=lambda i, n: [member(i + n // 2)]),
    "hash": collection("HSET", "hash", each=lambda i, n: [member(i), f"v-{i}"]),
    "list": collection("RPUSH", "list", each=lambda i, n: [i * 7919 % n]),
    "zset": collection("ZADD", "zset", each=lambda i, n: [i, member(i)]),
    "zset2": collection("ZADD", "zset2", each=lambda i, n: [i, member(i + n // 2)]),
    "geo": collection("GEOADD", "geo", each=lambda i, n: place(i)),
    "stream": make_stream,
    "paths": make_paths,
    "string": lambda n: [["SETRANGE", "string", max(n * BYTES_EACH, BYTES_LEAST) - 1, b"\0"]],
    "text": lambda n: [["SET", "text", text_of(n, 1)]],
    "text2": lambda n: [["SET", "text2", text_of(n, 2)]],
    "key": lambda n: [["SET", "key", "v"]],
    "new": lambda n: [],
    "hlls": lambda n: [["PFADD", name, name] for name in hll_names(n)],
    "keyspace": collection("MSET", each=lambda i, n: [f"k-{i}", "v"]),
}
# What a request needs that is no key.
NEEDS = {"keys": "keyspace", "keyvalues": "keyspace", "payload": "set"}
# Arguments: functions of the number of elements.
ARGUMENTS = {
    "count": lambda n: [n],
    "bits": lambda n: [n * BYTES_EACH * 8 - 1],
    "bytes": lambda n: [n * BYTES_EACH - 1],
    "blob": lambda n: ["x" * (n * BYTES_EACH)],
    "members": lambda n: [member(i) for i in range(n)],
    "pairs": lambda n: [word for i in range(n) for word in (member(i), "v")],
    "scored": lambda n: [word for i in range(n) for word in (i, member(i))],
    "places": lambda n: [word for i in range(n) for word in place(i)],
    "ids": lambda n: [f"{i + 1}-1" for i in range(n)],
    "keys": lambda n: [f"k-{i}" for i in range(n)],
    "keyvalues": lambda n: [word for i in range(n) for word in (f"k-{i}", "v2")],
    "newvalues": lambda n: [word for i in range(n) for word in (f"n-{i}", "v")],
    "hlls": hll_names,
    "keyspace": lambda n: [],
}


class Case:
    """A command and its worst request."""

    def __init__(self, command):
        self.name, self.command = command.name.replace("|", " ").upper(), command
        self.what, self.words = command.worst_case["what"], command.worst_case["request"]
        self.writes = "write" in command.flags
        marks = [word.strip("{}") for word in self.words if word.startswith("{")]
        for mark in marks:
            if mark not in VALUES and mark not in ARGUMENTS and mark != "payload":
                command.fail(f"worst_case: no such value or argument: {{{mark}}}")
        self.values = sorted({NEEDS.get(mark, mark) for mark in marks} & set(VALUES))

    def prepare(self, client, n):
        """Makes the keys in an empty database, in a pipeline."""
        for value in self.values:
            waiting = 0
            for words in VALUES[value](n):
                client.send(*words)
                waiting += 1
                if waiting == 100:
                    waiting = self._receive(client, waiting)
            self._receive(client, waiting)

    @staticmethod
    def _receive(client, waiting):
        for _ in range(waiting):
            client.read()
        return 0

    def request(self, client, n):
        """The words of the request; `client` is asked for the payload."""
        words = self.name.split(" ")
        for word in self.words:
            mark = word.strip("{}") if word.startswith("{") else None
            if mark == "payload":
                words.append(client.ask("DUMP", "set"))
            elif mark in ARGUMENTS:
                words += ARGUMENTS[mark](n)
            else:
                words.append(mark or word)
        return words


def commands():
    """All commands of the server, without containers and those of Sentinels only."""
    for command in load_specs(sorted(glob.glob(os.path.join(ROOT, "src/*/spec/*.json")))):
        for each in [command] + command.subs:
            if not each.subs and "only_sentinel" not in each.flags:
                yield each


def cases():
    """Those whose worst request can be made."""
    for command in commands():
        if command.worst_case["request"] is not None:
            yield Case(command)

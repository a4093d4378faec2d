# SPDX-License-Identifier: BSD-3-Clause
"""Servers and clients of the scripts of this folder that start two servers and compare them. Replies are bytes, integers, None and lists; an error is a
text that begins with "error"."""
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import reserve_port  # noqa: E402


def encode(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Client:
    def __init__(self, port, seconds=60):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.file = self.sock.makefile("rb")

    def __call__(self, *words):
        self.sock.sendall(encode(*words))
        return self.read()

    def many(self, requests):
        """The replies to a pipeline."""
        self.sock.sendall(b"".join(encode(*words) for words in requests))
        return [self.read() for _ in requests]

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return "error " + rest.decode()
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if int(rest) < 0:
            return None
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        return [self.read() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.sock.close()


class Server:
    """A running server, without snapshots, in a folder of its own; `log` is the path of its log."""

    def __init__(self, program, *arguments):
        self.port, self.guard = reserve_port()
        self.dir = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.dir.name, "log")
        self.words = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.dir.name, "--logfile", self.log, *arguments]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL)
        for _ in range(600):
            try:
                self.client = Client(self.port)
                return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"{self.words[0]} does not start: {self.last_lines()}")

    def cut(self):
        """Kills it and starts it again, with its files."""
        self.process.kill()
        self.process.wait()
        self.client.close()
        self.wait_for_port()
        self.start()

    def wait_for_port(self):
        """A forked child that saves has the listening socket, too, and ends later."""
        for _ in range(600):
            try:
                Client(self.port).close()
            except OSError:
                return
            time.sleep(0.05)

    def last_lines(self, count=20):
        try:
            with open(self.log, errors="replace", encoding="utf-8") as file:
                return "".join(file.readlines()[-count:])
        except OSError:
            return ""

    def info(self, section):
        text = self.client("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.dir.cleanup()
        self.guard.close()

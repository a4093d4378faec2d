#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ends an append only file at every byte, and loads it.

  cuts.py [--server PATH] [--programs FOLDER] [--bytes N] [--seed N]

A server writes N bytes (256 KB) in an RDB preamble, and two incremental files with transactions. For every length of
the last file the loader must keep exactly the transactions that are complete, and cut the file after them; for every
length of the first incremental file it must notice an incomplete end, and for every length of the preamble that it is
incomplete. A part of these lengths is also tried with whole servers, which then write, are killed and start again."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from common import Closed, Reply, Results, Server, Workload, option_parser

BASE_OPERATIONS = 3000
SERVERS = 24


def write_files(options, folder):
    """Returns the paths of base, first and second incremental file."""
    server = Server(options.server, folder, "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
                    "--rdbcompression", "no")
    client = server.connect()
    workload, n = Workload("x"), 0

    def operate(until):
        nonlocal n
        while not until():
            n += 1
            data, replies = workload.operation(n)
            client.send(data)
            for _ in range(replies):
                client.read()

    def info(field):
        return int(client.ask("INFO", "persistence").decode().split(field + ":")[1].split()[0])

    operate(lambda: n == BASE_OPERATIONS)
    client.ask("BGREWRITEAOF")
    while info("aof_rewrite_in_progress"):
        time.sleep(0.005)
    operate(lambda: info("aof_current_size") > options.bytes // 2)
    client.ask("CONFIG", "SET", "rdb-key-save-delay", "1000000")
    client.ask("BGREWRITEAOF")
    child = subprocess.run(["pgrep", "-P", str(server.process.pid)], stdout=subprocess.PIPE, check=True).stdout
    os.kill(int(child), signal.SIGKILL)  # leaves a second incremental file
    while info("aof_rewrite_in_progress"):
        time.sleep(0.005)
    operate(lambda: info("aof_current_size") > options.bytes)
    server.stop()
    names = {}
    with open(os.path.join(folder, "appendonlydir", "appendonly.aof.manifest"), encoding="ascii") as manifest:
        for line in manifest:
            words = line.split()
            names.setdefault(words[5], []).append(os.path.join(folder, "appendonlydir", words[1]))
    return names["b"] + names["i"]


def boundaries(path):
    """Offsets after records outside of transactions, and the number of increments of the counter up to there."""
    with open(path, "rb") as file:
        data = file.read()
    found, at, count, multi = [(0, 0)], 0, 0, False
    while at < len(data):
        end = data.index(b"\r\n", at)
        words, at = [], end + 2
        for _ in range(int(data[data.rindex(b"*", 0, end) + 1:end])):
            end = data.index(b"\r\n", at)
            length = int(data[at + 1:end])
            words.append(data[end + 2:end + 2 + length])
            at = end + 4 + length
        multi = words[0] == b"MULTI" or (multi and words[0] != b"EXEC")
        count += words[0] == b"INCR"
        if not multi:
            found.append((at, count))
    return found


class Loader:
    def __init__(self, options):
        self.process = subprocess.Popen([os.path.join(options.programs, "loader")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def line(self):
        return self.process.stdout.readline().decode().split()


def check_records(loader, path, results):
    """Every length of a file of records."""
    expected = boundaries(path)
    size = os.path.getsize(path)
    loader.ask(f"cuts {path} 0 c:x")
    changes = []
    while (words := loader.line()) != ["end"]:
        if len(words) != 3:
            results.note(path, f"the loader ends with {words} after {changes[-1:]}")
            return
        changes.append(tuple(int(word) for word in words))
    at, index = 0, -1
    for n in range(size + 1):
        while at + 1 < len(expected) and expected[at + 1][0] <= n:
            at += 1
        if index + 1 < len(changes) and changes[index + 1][0] == n:
            index += 1
        fault = ""
        if changes[index][1:] != expected[at]:
            fault = f"{n} bytes: cut at {changes[index][1]} with {changes[index][2]} operations, not {expected[at]}"
        results.note(f"{os.path.basename(path)}, length {n}", fault)
        if fault:
            return


def check_server(options, rng, source, paths, results):
    """A whole server on a cut copy: it writes, is killed, and the next one has everything."""
    base_operations = BASE_OPERATIONS + boundaries(paths[1])[-1][1]
    last = boundaries(paths[2])
    with tempfile.TemporaryDirectory(prefix="cuts.") as folder:
        shutil.copytree(os.path.join(source, "appendonlydir"), os.path.join(folder, "appendonlydir"))
        n = rng.randrange(os.path.getsize(paths[2]))
        os.truncate(os.path.join(folder, "appendonlydir", os.path.basename(paths[2])), n)
        expected = base_operations + max(count for at, count in last if at <= n)
        fault = ""
        for _ in range(2):
            server = Server(options.server, folder, "--appendfsync", "always")
            client = server.connect()
            found = Workload("x").check(client) if client else server.log()[-500:]
            if found != expected:
                fault = f"length {n}: {found}, not {expected} operations"
                break
            data, replies = Workload("x").operation(found + 1)
            client.send(data)
            for _ in range(replies):
                client.read()
            expected += 1
            server.kill()
        results.note(f"a server with {n} bytes", fault)


def check_refusal(options, rng, source, path, refused_at, results):
    """A server on a file that is not the last one, and incomplete: it exits with 1 and changes nothing."""
    with tempfile.TemporaryDirectory(prefix="cuts.") as folder:
        shutil.copytree(os.path.join(source, "appendonlydir"), os.path.join(folder, "appendonlydir"))
        n = rng.choice(refused_at)
        cut = os.path.join(folder, "appendonlydir", os.path.basename(path))
        os.truncate(cut, n)
        server = Server(options.server, folder)
        fault = "" if server.connect() is None and server.process.wait() == 1 else "the server starts"
        if os.path.getsize(cut) != n:
            fault = f"the refused file has {os.path.getsize(cut)} bytes, not {n}"
        server.kill()
        results.note(f"{os.path.basename(path)} with {n} bytes is refused", fault)


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--bytes", type=int, default=256 * 1024)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng, results = random.Random(options.seed), Results()
    loader = Loader(options)
    with tempfile.TemporaryDirectory(prefix="cuts.") as folder:
        try:
            paths = write_files(options, folder)
        except (Closed, Reply) as error:
            raise SystemExit(f"the files cannot be written: {error}") from error
        sizes = [os.path.getsize(path) for path in paths]
        print(f"preamble {sizes[0]} bytes, incremental files {sizes[1]} and {sizes[2]} bytes", flush=True)
        loader.ask(f"preamble {paths[0]}")
        reply = loader.line()
        results.note("preamble", "" if reply == ["whole", str(sizes[0])] else f"{reply} of {sizes[0]} bytes")
        for path in paths[1:]:
            check_records(loader, path, results)
        whole = {at for at, _ in boundaries(paths[1])}
        incomplete = [n for n in range(sizes[1]) if n not in whole]
        for _ in range(SERVERS):
            check_server(options, rng, folder, paths, results)
            check_refusal(options, rng, folder, paths[1], incomplete, results)
            check_refusal(options, rng, folder, paths[0], range(1, sizes[0]), results)
    results.finish()


main()

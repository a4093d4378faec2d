#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a server at random times while several connections write, restarts it and compares.

  kill.py [--server PATH] [--cycles N] [--seed N]

Acknowledgements are recorded here, outside of the server. After a restart the dataset must contain a prefix of each
connection's operations, whole transactions only: every acknowledged one, with each value of appendfsync, because the
kernel has it before the reply is sent; never one that was not sent. Each cycle continues on the files of the last one,
and about half of them are killed during a rewrite; the next start must remove what that has left."""

import os
import random
import re
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, Workload, option_parser

WRITERS = 4
CYCLES_PER_FOLDER = 10


class Writer(threading.Thread):
    def __init__(self, name, port, first, window):
        super().__init__(daemon=True)
        self.workload = Workload(name)
        self.port, self.next, self.window = port, first, window
        self.sent = self.acknowledged = first - 1
        self.fault = ""

    def run(self):
        try:
            client = Client(self.port)
            waiting = []
            while True:
                while len(waiting) < self.window:
                    data, replies = self.workload.operation(self.next)
                    self.sent = self.next
                    client.send(data)
                    waiting.append((self.next, replies))
                    self.next += 1
                number, replies = waiting.pop(0)
                for _ in range(replies):
                    client.read()
                self.acknowledged = number
        except (Closed, OSError):
            pass
        except Reply as error:
            self.fault = f"writer {self.workload.name}: {error}"


def leftovers(folder):
    """Temporary files of processes that are gone; the child of a killed server may still write its file."""
    names = [name for name in os.listdir(folder) if re.match(r"temp-.*\D(\d+)\.(aof|rdb)$", name)]
    return {name for name in names if not os.path.exists("/proc/" + re.findall(r"\d+", name)[-1])}


def orphans(folder, before):
    """Files of the append only file that a started server has left, but does not list; `before` were leftovers."""
    aof = os.path.join(folder, "appendonlydir")
    with open(os.path.join(aof, "appendonly.aof.manifest"), encoding="utf8") as file:
        listed = set(re.findall(r"^file (\S+)", file.read(), re.M))
    found = set(os.listdir(aof)) - listed - {"appendonly.aof.manifest"}
    return sorted(found | (before & set(os.listdir(folder))))


def cycle(program, folder, policy, counts, rng):
    """Runs one cycle; returns a fault, or updates the counts of operations."""
    before = leftovers(folder)
    server = Server(program, folder, "--appendfsync", policy, "--auto-aof-rewrite-min-size", "64kb",
                    "--aof-use-rdb-preamble", rng.choice(["yes", "no"]),
                    "--snapshot-mode", rng.choice(["fork", "inline"]), "--rdb-key-save-delay", rng.choice(["0", "200"]),
                    "--aof-timestamp-enabled", rng.choice(["yes", "no"]))
    try:
        return write_until_killed(server, folder, policy, counts, before, rng)
    finally:
        server.kill()


def write_until_killed(server, folder, policy, counts, before, rng):
    """The cycle of a started server."""
    client = server.connect()
    if client is None:
        return f"the server does not start: {server.log()[-2000:]}"
    for _ in range(100):
        left = orphans(folder, before)
        if not left:
            break
        time.sleep(0.02)  # a rewrite may have begun, and its file be listed next
    else:
        return f"the server leaves files that its manifest does not list: {left}"
    for name in range(WRITERS):
        found = Workload(name).check(client)
        if isinstance(found, str):
            return found
        low, high = counts[name]
        if not low <= found <= high:
            return f"writer {name}: {found} operations instead of {low} to {high}"
        counts[name] = (found, found)
    writers = [Writer(name, server.port, counts[name][0] + 1, rng.choice([1, 8, 32])) for name in range(WRITERS)]
    for writer in writers:
        writer.start()
    # With everysec some end while the first background fsync runs.
    in_sync = policy == "everysec" and rng.random() < 0.3
    end = time.monotonic() + (rng.uniform(0.95, 1.2) if in_sync else rng.uniform(0.02, 0.4))
    rewrite_at = end - rng.uniform(0, 0.05) if rng.random() < 0.5 else None
    while time.monotonic() < end:
        if rewrite_at and time.monotonic() >= rewrite_at:
            rewrite_at = None
            try:
                client.ask("BGREWRITEAOF")
            except Reply:
                pass  # one is running
        time.sleep(0.0005)
    server.kill()
    for writer in writers:
        writer.join(30)
        if writer.fault:
            return writer.fault
        counts[writer.workload.name] = (writer.acknowledged, writer.sent)
    return ""


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    results = Results()
    print(f"seed {options.seed}", flush=True)
    operations = 0
    for round_number in range(options.cycles // CYCLES_PER_FOLDER):
        policy = ("always", "everysec", "no")[round_number % 3]
        with tempfile.TemporaryDirectory(prefix="kill.", ignore_cleanup_errors=True) as folder:
            counts = {name: (0, 0) for name in range(WRITERS)}
            for i in range(CYCLES_PER_FOLDER):
                fault = cycle(options.server, folder, policy, counts, rng)
                results.note(f"round {round_number}, cycle {i}, {policy}", fault)
                if fault:
                    break
            operations += sum(high for _, high in counts.values())
    print(f"{operations} operations")
    results.finish()


main()

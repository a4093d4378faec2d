#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a primary at random times while several connections write and WAIT for its two replicas, promotes one of them.

  promote.py [--server PATH] [--cycles N] [--seed N]

What WAIT has confirmed for both replicas must be in the promoted one, and its dataset must be what a prefix of each
connection's operations produces. Then the other replica and the restarted primary follow it, and all three datasets
must become equal; the next cycle continues with them. Full synchronisations go by disk, without a disk, or over two
connections, and a part of the primaries is killed during one."""

import os
import random
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, Workload, option_parser

WRITERS = 3
REPLICAS = 2


class Writer(threading.Thread):
    """Writes operations, each followed by WAIT."""

    def __init__(self, name, port, first):
        super().__init__(daemon=True)
        self.workload = Workload(name)
        self.port, self.next = port, first
        self.sent = self.confirmed = first - 1
        self.fault = ""

    def run(self):
        try:
            client = Client(self.port)
            while True:
                data, replies = self.workload.operation(self.next)
                self.sent = self.next
                client.send(data)
                for _ in range(replies):
                    client.read()
                if client.ask("WAIT", REPLICAS, 1000) >= REPLICAS:
                    self.confirmed = self.next
                self.next += 1
        except (Closed, OSError):
            pass
        except Reply as error:
            self.fault = f"writer {self.workload.name}: {error}"


class Group:
    """A primary and its replicas."""

    def __init__(self, program, folder, rng):
        self.program, self.folder, self.rng = program, folder, rng
        self.started = 0
        self.primary = self.start()
        self.replicas = [self.start(self.primary) for _ in range(REPLICAS)]
        self.counts = {name: 0 for name in range(WRITERS)}

    def start(self, primary=None):
        self.started += 1
        folder = os.path.join(self.folder, str(self.started))
        os.mkdir(folder)
        server = Server(self.program, folder, "--appendonly", "no", "--repl-diskless-sync-delay", "0",
                        "--repl-diskless-sync", self.rng.choice(["yes", "no"]),
                        "--repl-diskless-load", self.rng.choice(["disabled", "swapdb", "flush-before-load"]),
                        "--dual-channel-replication-enabled", self.rng.choice(["yes", "no"]))
        server.client = server.connect()
        if primary:
            server.client.ask("REPLICAOF", "127.0.0.1", primary.port)
        return server

    def stop(self):
        for server in [self.primary, *self.replicas]:
            server.kill()

    def await_links(self):
        """Returns a fault."""
        end = time.monotonic() + 60
        for server in self.replicas:
            while server.client.ask("ROLE")[3] != b"connected":
                if time.monotonic() > end:
                    return f"a replica does not connect:\n{server.log()[-3000:]}"
                time.sleep(0.005)
        return ""

    def await_equal(self):
        """Returns a fault."""
        end = time.monotonic() + 60
        while True:
            offset = self.primary.client.ask("ROLE")[1]
            if all(server.client.ask("ROLE")[4:] == [offset] for server in self.replicas):
                break
            if time.monotonic() > end:
                return f"the replicas do not catch up:\n{self.replicas[0].log()[-3000:]}"
            time.sleep(0.005)
        digests = {server.client.ask("DEBUG", "DIGEST") for server in [self.primary, *self.replicas]}
        return "" if len(digests) == 1 else "the datasets differ"

    def cycle(self):
        """Returns a fault."""
        writers = [Writer(name, self.primary.port, self.counts[name] + 1) for name in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(self.rng.uniform(0.02, 0.4))
        if self.rng.random() < 0.3:  # a third replica synchronises when the primary is killed
            self.replicas.append(self.start(self.primary))
            time.sleep(self.rng.uniform(0, 0.05))
        self.primary.kill()
        for writer in writers:
            writer.join(30)
            if writer.fault:
                return writer.fault
        chosen = self.rng.randrange(REPLICAS)
        promoted = self.replicas.pop(chosen)
        promoted.client.ask("REPLICAOF", "NO", "ONE")
        for writer in writers:
            found = writer.workload.check(promoted.client)
            if isinstance(found, str):
                return found
            if not writer.confirmed <= found <= writer.sent:
                return (f"writer {writer.workload.name}: {found} operations after the promotion, "
                        f"{writer.confirmed} confirmed, {writer.sent} sent")
            self.counts[writer.workload.name] = found
        for server in self.replicas[REPLICAS - 1:]:
            server.kill()
        self.replicas = self.replicas[:REPLICAS - 1]
        for server in self.replicas:
            server.client.ask("REPLICAOF", "127.0.0.1", promoted.port)
        self.primary = promoted
        self.replicas.append(self.start(promoted))
        return self.await_links() or self.await_equal()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--cycles", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    results = Results()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="promote.", ignore_cleanup_errors=True) as folder:
        group = Group(options.server, folder, rng)
        fault = group.await_links()
        for number in range(options.cycles):
            fault = fault or group.cycle()
            results.note(f"cycle {number}", fault)
            if fault:
                break
        operations = sum(group.counts.values())
        group.stop()
    print(f"{operations} operations")
    results.finish()


if __name__ == "__main__":
    main()

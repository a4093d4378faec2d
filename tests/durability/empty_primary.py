#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a primary while connections write and WAIT, takes its files away, and starts it again, empty, at its port.

  empty_primary.py [--server PATH] [--cycles N] [--seed N]

Its two replicas must keep what WAIT has confirmed for both (replica-refuse-empty-primary), whatever is written to the
empty primary, though it may be started again, with what it has saved meanwhile, and though a replica may be killed and
started again with its own files. Then one of them is promoted, the other one and the old primary follow it, and all
three datasets must become equal; the next cycle continues with them. Some primaries are ended by SIGTERM: without
files to save both replicas must then follow the empty primary; those that have saved are refused as well. The primary has a snapshot, an append only file
or none; full synchronisations go by disk, without a disk, or over two connections."""

import os
import random
import shutil
import subprocess
import tempfile
import time

from common import Closed, Reply, Results, Server, field, option_parser
from promote import WRITERS, Writer

SECONDS = 60


class Member(Server):
    """A server that can be started again with the same arguments, as another process."""

    def __init__(self, program, folder, *arguments):
        self.program, self.arguments, self.primary_port = program, arguments, None
        super().__init__(program, folder, *arguments)
        self.client = self.connect()

    def begin(self):
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                   "--enable-debug-command", "yes", *self.arguments]
        if self.primary_port:
            command += ["--replicaof", "127.0.0.1", str(self.primary_port)]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self.client = self.connect()

    def follow(self, other):
        self.primary_port = other.port
        self.client.ask("REPLICAOF", "127.0.0.1", other.port)

    def promote(self):
        self.primary_port = None
        self.client.ask("REPLICAOF", "NO", "ONE")

    def lose_files(self):
        for name in os.listdir(self.folder):
            if name != "log":
                path = os.path.join(self.folder, name)
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)


class Group:
    """A primary and its replicas."""

    def __init__(self, program, folder, rng):
        self.program, self.folder, self.rng = program, folder, rng
        self.counts = {name: 0 for name in range(WRITERS)}
        self.refusals = self.obeyed = 0
        self.primary, *self.replicas = [self.start(number) for number in range(3)]
        for server in self.replicas:
            server.follow(self.primary)

    def start(self, number):
        folder = os.path.join(self.folder, str(number))
        os.mkdir(folder)
        files = self.rng.choice([["--appendonly", "no"], ["--appendonly", "no", "--save", "1 1"], ["--appendonly", "yes"]])
        return Member(self.program, folder, *files, "--repl-diskless-sync-delay", "0",
                      "--repl-diskless-sync", self.rng.choice(["yes", "no"]),
                      "--repl-diskless-load", self.rng.choice(["disabled", "swapdb", "flush-before-load"]),
                      "--dual-channel-replication-enabled", self.rng.choice(["yes", "no"]))

    def members(self):
        return [self.primary, *self.replicas]

    def stop(self):
        for server in self.members():
            server.kill()

    def wait(self, what, done):
        """Returns a fault."""
        end = time.monotonic() + SECONDS
        while not done():
            if time.monotonic() > end:
                return what + "\n" + "\n".join(server.log()[-3000:] for server in self.members())
            time.sleep(0.01)
        return ""

    def await_equal(self):
        """Returns a fault."""
        def is_equal():
            offset = self.primary.client.ask("ROLE")[1]
            return all(server.client.ask("ROLE")[3:] == [b"connected", offset] for server in self.replicas)
        fault = self.wait("the replicas do not catch up", is_equal)
        digests = {server.client.ask("DEBUG", "DIGEST") for server in self.members()}
        return fault or ("" if len(digests) == 1 else "the datasets differ")

    def check(self, server, writers):
        """Returns a fault."""
        for writer in writers:
            found = writer.workload.check(server.client)
            if isinstance(found, str):
                return found
            if not writer.confirmed <= found <= writer.sent:
                return (f"writer {writer.workload.name}: a replica has {found} operations, {writer.confirmed} were "
                        f"confirmed, {writer.sent} sent\n{server.log()[-3000:]}")
        return ""

    def discards(self):
        """True if SIGTERM is an order to give up the data of the primary: it saves nothing."""
        return "no" in self.primary.arguments[:2] and "1 1" not in self.primary.arguments

    def write_and_end(self, orderly):
        writers = [Writer(name, self.primary.port, self.counts[name] + 1) for name in range(WRITERS)]
        for writer in writers:
            writer.start()
        # Something has to be confirmed: a replica without keys keeps nothing.
        fault = self.wait("nothing is confirmed", lambda: all(w.confirmed or w.fault for w in writers))
        time.sleep(self.rng.uniform(0.02, 0.3))
        if orderly:
            self.primary.stop()
        else:
            self.primary.kill()
        for writer in writers:
            writer.join(30)
        return writers, fault or "".join(writer.fault for writer in writers)

    def restart_empty(self, obeyed):
        """The primary, and perhaps a replica, which does not know the order any more then."""
        restarted = None if obeyed else self.rng.choice([None, None, *self.replicas])
        if restarted and "no" in restarted.arguments and "1 1" not in restarted.arguments:
            restarted = None  # it has no files
        if restarted:
            if "1 1" in restarted.arguments:
                restarted.client.ask("SAVE")
            restarted.kill()
        self.primary.lose_files()
        self.primary.begin()
        for number in range(self.rng.randrange(20)):
            self.primary.client.ask("SET", f"after:{number}", number)
        if restarted:
            restarted.begin()

    def is_refused(self):
        return all(field(server.client, "master_link_status") == "down" and "master_link_refused:1" in
                   server.client.ask("INFO", "replication").decode() for server in self.replicas)

    def cycle(self):
        """Returns a fault."""
        orderly = self.rng.random() < 0.4
        obeyed = orderly and self.discards()
        writers, fault = self.write_and_end(orderly)
        if fault:
            return fault
        self.restart_empty(obeyed)
        if obeyed:
            self.obeyed += 1
            self.counts = {name: 0 for name in range(WRITERS)}
            return self.await_equal()
        fault = self.wait("the empty primary is not refused", self.is_refused)
        if not fault and self.rng.random() < 0.3:  # with what it has saved
            if "yes" not in self.primary.arguments[:2]:
                self.primary.client.ask("SAVE")
            self.primary.kill()
            self.primary.begin()
            fault = self.wait("the empty primary is not refused after its second start",
                              lambda: "replicas_keep_lost_data:1" in self.primary.client.ask("INFO").decode())
        for server in self.replicas:
            fault = fault or self.check(server, writers)
        if fault:
            return fault
        self.refusals += 1
        old = self.primary
        self.rng.shuffle(self.replicas)
        self.primary = self.replicas.pop()
        self.primary.promote()
        self.replicas.append(old)
        for server in self.replicas:
            server.follow(self.primary)
        for writer in writers:
            self.counts[writer.workload.name] = writer.workload.check(self.primary.client)
        return self.await_equal()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    results = Results()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="empty.", ignore_cleanup_errors=True) as folder:
        group = Group(options.server, folder, rng)
        try:
            fault = group.await_equal()
            for number in range(options.cycles):
                try:
                    fault = fault or group.cycle()
                except (Closed, OSError, Reply) as error:
                    fault = f"{type(error).__name__} {error}"
                results.note(f"cycle {number}", fault)
                if fault:
                    break
        finally:
            group.stop()
    print(f"{sum(group.counts.values())} operations, {group.refusals} empty primaries refused by both replicas, "
          f"{group.obeyed} followed after an order")
    results.finish()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the disks of a primary and of its replica fail during a full synchronisation by files.

  sync_faults.py [--server PATH] [--programs FOLDER] [--snapshot-mode inline] [--step N]

Each open, write, fsync, rename, unlink and truncation of either server fails once, by shim.so: with ENOSPC, EIO, EINTR,
or as a short write. Then the disks are full (a limit of the size of files) for some seconds. No server may end. The
replica serves either its old dataset or the new one, never a part; in the end it has the new one, and no temporary file
is left. After a crash its files hold one of both datasets. --step N: only every N-th call, for quick runs."""

import concurrent.futures
import errno
import glob
import os
import resource
import tempfile
import time

from common import Closed, Reply, Results, Server, Unexpected, encode, option_parser

ERRORS = {"open": [errno.ENOSPC, errno.EINTR], "write": [errno.ENOSPC, "short", errno.EINTR],
          "fsync": [errno.EIO, errno.EINTR], "rename": [errno.EIO], "unlink": [errno.EIO], "ftruncate": [errno.EIO]}
WORKERS = 4
KEYS = 3000
BOUND_S = 60
FULL_BYTES = 32 * 1024


class Pair:
    def __init__(self, options, folder, aof, side, environment):
        self.servers = {}
        for name in ("primary", "replica"):
            path = os.path.join(folder, name)
            os.mkdir(path)
            self.servers[name] = Server(
                options.server, path, "--appendonly", aof if name == "replica" else "no", "--appendfsync", "everysec",
                "--repl-diskless-sync", "no", "--repl-diskless-load", "disabled", "--stop-writes-on-bgsave-error", "no",
                "--snapshot-mode", options.snapshot_mode,
                environment=environment if name == side else None)
            self.servers[name].client = self.servers[name].connect()
            if self.servers[name].client is None and self.servers[name].process.wait() != 1:
                raise Unexpected(f"{name} does not start: {self.servers[name].process.returncode}")

    def has_started(self):
        """A server whose append only file cannot be created refuses to start."""
        return all(server.client for server in self.servers.values())

    def ask(self, name, *words):
        try:
            return self.servers[name].client.ask(*words)
        except Closed as error:
            raise Unexpected(f"{name} has ended: {self.servers[name].process.poll()}") from error

    def prepare(self):
        """The replica has an old dataset, also in its files."""
        primary = self.servers["primary"].client
        primary.send(b"".join(encode("SET", f"key:{i}", "x" * 100) for i in range(KEYS)))
        for _ in range(KEYS):
            primary.read()
        for _ in range(50):
            try:
                self.ask("replica", "SET", "old", "data")
                self.ask("replica", "SAVE")
                return
            except Reply:  # the fault is in the preparation
                time.sleep(0.05)
        raise Unexpected("the replica does not save")

    def has_new(self):
        """True if the replica has the new dataset, False if it has the old one."""
        try:
            found = self.ask("replica", "MGET", "old", "key:0", f"key:{KEYS - 1}")
        except Reply as error:
            if str(error).startswith("LOADING"):
                return False
            raise Unexpected(str(error)) from error
        if found == [b"data", None, None]:
            return False
        if found == [None, b"x" * 100, b"x" * 100]:
            return True
        raise Unexpected(f"the replica has {found}")

    def synchronise(self):
        end = time.monotonic() + BOUND_S
        self.ask("replica", "REPLICAOF", "127.0.0.1", self.servers["primary"].port)
        while time.monotonic() < end:
            if self.has_new() and b"master_link_status:up" in self.ask("replica", "INFO", "replication"):
                break
            time.sleep(0.01)
        else:
            raise Unexpected("the replica does not synchronise")
        digests = [self.ask(name, "DEBUG", "DIGEST") for name in self.servers]
        if digests[0] != digests[1]:
            raise Unexpected("the datasets differ")

    def check_files(self):
        """A rewrite of the append only file may be running."""
        end = time.monotonic() + BOUND_S
        for server in self.servers.values():
            while left := glob.glob(os.path.join(server.folder, "temp-*")):
                if time.monotonic() > end:
                    raise Unexpected(f"left behind: {left}")
                time.sleep(0.02)

    def limit(self, side, size):
        resource.prlimit(self.servers[side].process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def kill(self):
        for server in self.servers.values():
            server.kill()

    def logs(self):
        return "".join(f"\n{name}:\n{server.log()[-2500:]}" for name, server in self.servers.items())


def check_restart(options, pair, aof):
    """What a replica has on its disk after a crash."""
    folder = pair.servers["replica"].folder
    server = Server(options.server, folder, "--appendonly", aof)
    pair.servers["replica"] = server
    server.client = server.connect()
    if server.client is None:
        raise Unexpected("the replica does not start again")
    pair.has_new()


def single_fault(options, aof, side, fault, count_path=None):
    environment = {"LD_PRELOAD": os.path.join(options.programs, "shim.so")}
    if fault:
        environment["SHIM_FAULT"] = fault
    if count_path:
        environment["SHIM_COUNT"] = count_path
    with tempfile.TemporaryDirectory(prefix="sync_faults.", ignore_cleanup_errors=True) as folder:
        pair = None
        try:
            pair = Pair(options, folder, aof, side, environment)
            if not pair.has_started():
                return ""
            pair.prepare()
            pair.synchronise()
            if not fault or not fault.startswith("unlink"):
                pair.check_files()
            if count_path:
                pair.servers[side].stop()
            pair.servers["replica"].kill()
            check_restart(options, pair, aof)
            return ""
        except Unexpected as error:
            return f"{error}{pair.logs() if pair else ''}"
        finally:
            if pair:
                pair.kill()


def full_disk(options, side):
    """No file can grow beyond a size for some attempts; then it can."""
    with tempfile.TemporaryDirectory(prefix="sync_faults.", ignore_cleanup_errors=True) as folder:
        pair = Pair(options, folder, "no", "", {})
        try:
            pair.prepare()
            pair.limit(side, FULL_BYTES)
            pair.ask("replica", "REPLICAOF", "127.0.0.1", pair.servers["primary"].port)
            end = time.monotonic() + BOUND_S
            asked = pair.servers["primary"].log
            while asked().count("asks for synchronization") < 3 and time.monotonic() < end:
                if pair.has_new():
                    raise Unexpected("the replica has the dataset although the disk is full")
                time.sleep(0.01)
            pair.limit(side, resource.RLIM_INFINITY)
            pair.synchronise()
            pair.check_files()
            return ""
        except Unexpected as error:
            return f"{error}{pair.logs()}"
        finally:
            pair.kill()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--snapshot-mode", default="fork")
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    results = Results()
    cases = []
    for aof, side in (("no", "primary"), ("no", "replica"), ("yes", "replica")):
        with tempfile.NamedTemporaryFile(mode="r", prefix="counts.") as counts:
            results.note(f"{side}, append only file {aof}, no fault", single_fault(options, aof, side, "", counts.name))
            lines = counts.read().split()
        for kind, count in zip(lines[::2], lines[1::2]):
            cases += [(aof, side, f"{kind}:{k}:{error}") for k in range(1, int(count) + 1, options.step)
                      for error in ERRORS[kind]]
    print(f"{len(cases)} faults", flush=True)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for case, fault in zip(cases, pool.map(lambda case: single_fault(options, *case), cases)):
            results.note(f"{case[1]}, append only file {case[0]}, {case[2]}", fault)
    for side in ("primary", "replica"):
        results.note(f"full disk of the {side}", full_disk(options, side))
    results.finish()


main()

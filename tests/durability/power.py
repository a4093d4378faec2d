#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts the power after every change of a file during a session, and loads what a disk may then have.

  power.py [--server PATH] [--programs FOLDER] [--commands N] [--seed N]

shim.so records every open, write, fsync, rename, unlink and truncation of a server that runs N commands with rewrites
in between. For each record six disks are built: everything up to it arrived; only what was flushed; folders without the
data that was not flushed; data without the changes of folders that were not flushed; the last change of a folder
without those before it; and everything, with the last write torn. Each must load (loader.c), and be the state after some number of commands: at least those that were
acknowledged before the cut (with appendfsync always) or confirmed by WAITAOF (with everysec), at most those that were
sent."""

import bisect
import os
import random
import shutil
import subprocess
import tempfile
import time

from common import Reply, Results, Server, Workload, option_parser

AGAIN_EVERY = 40  # every so many disks are loaded a second time, after what the first load changed


class File:
    def __init__(self):
        self.data = bytearray()
        self.flushed = b""


class Disk:
    """Files and folders after some records. A folder is a dict; `flushed` has the last flushed version of each."""

    def __init__(self):
        self.folders = {".": {}}
        self.flushed = {".": {}}
        self.open = {}
        self.pending = {}
        self.last_write = None
        self.last_change = None  # (folder, names and their files; None: removed)

    @staticmethod
    def split(path):
        folder, _, name = path.rpartition("/")
        return folder or ".", name

    def apply(self, words, data):
        kind = words[0]
        self.last_write = None
        if kind == "open":
            folder, name = self.split(words[2])
            self.open[words[1]] = self.folders[folder].setdefault(name, File())
            self.last_change = folder, {name: self.open[words[1]]}
        elif kind == "opendir":
            self.open[words[1]] = words[2]
        elif kind == "write":
            self.open[words[1]].data += data
            self.last_write = self.open[words[1]], len(data)
        elif kind == "cut":
            file, size = self.open[words[1]], int(words[2])
            del file.data[size:]
        elif kind == "sync":
            what = self.open[words[1]]
            self.pending[words[1]] = dict(self.folders[what]) if isinstance(what, str) else bytes(what.data)
        elif kind == "synced":
            what, state = self.open[words[1]], self.pending.pop(words[1])
            if isinstance(what, str):
                self.flushed[what] = state
            else:
                what.flushed = state
        elif kind == "rename":
            (folder, name), (to_folder, to_name) = self.split(words[1]), self.split(words[2])
            self.folders[to_folder][to_name] = file = self.folders[folder].pop(name)
            self.last_change = to_folder, {to_name: file, **({name: None} if folder == to_folder else {})}
        elif kind == "unlink":
            folder, name = self.split(words[1])
            del self.folders[folder][name]
            self.last_change = folder, {name: None}
        elif kind == "mkdir":
            folder, name = self.split(words[1])
            self.folders[folder][name] = None
            self.folders.setdefault(words[1], {})
            self.flushed.setdefault(words[1], {})

    def image(self, folders_flushed, data_flushed, torn=0, reordered=False):
        """The files of one possible disk: a dict of paths and bytes."""
        folders = dict(self.flushed if folders_flushed else self.folders)
        if reordered and self.last_change:
            folder, changes = self.last_change
            changed = {name: file for name, file in {**folders[folder], **changes}.items()
                       if name not in changes or changes[name]}
            folders[folder] = changed
        files = {}
        for folder, entries in folders.items():
            if folder != "." and folder not in folders["."]:
                continue
            for name, file in entries.items():
                if file is None:
                    continue
                content = file.flushed if data_flushed else bytes(file.data)
                if torn and self.last_write and file is self.last_write[0]:
                    content = content[:len(content) - torn]
                files[name if folder == "." else f"{folder}/{name}"] = content
        return files


def records(path):
    """Yields the words and bytes of each record, and the offset after it."""
    with open(path, "rb") as trace:
        while True:
            line = trace.readline()
            if not line:
                return
            words = line.decode().split()
            data = trace.read(int(words[2])) if words[0] == "write" else b""
            yield words, data, trace.tell()


class Session:
    """Runs the commands; remembers digests, and the length of the trace at each event."""

    def __init__(self, options, folder, policy, commands):
        self.trace = os.path.join(folder, "trace")
        self.policy = policy
        self.sent = []     # length of the trace before operation n was sent
        self.durable = []  # (length of the trace, n): operations up to n must survive from there on
        os.mkdir(os.path.join(folder, "data"))
        self.server = Server(options.server, os.path.join(folder, "data"), "--appendfsync", policy,
                             "--snapshot-mode", options.snapshot_mode,
                             environment={"LD_PRELOAD": os.path.join(options.programs, "shim.so"),
                                          "SHIM_TRACE": self.trace})
        self.client = self.server.connect()
        self.digests = [self.client.ask("DEBUG", "DIGEST")]
        self.workload = Workload("p")
        self.on = True
        for n in range(1, commands + 1):
            self.event(n, commands)
            self.operation(n)
        self.wait("aof_rewrite_in_progress:0")
        self.server.stop()

    def info(self):
        return self.client.ask("INFO", "persistence").decode()

    def wait(self, text):
        for _ in range(4000):
            if text in self.info():
                return
            time.sleep(0.005)
        raise SystemExit(f"INFO does not get {text}")

    def event(self, n, commands):
        """Things that change files, spread over the session."""
        ask, step = self.client.ask, max(commands // 20, 1)
        if n % step:
            return
        which = n // step
        if which % 5 == 1:
            self.wait("aof_rewrite_in_progress:0")
            ask("BGREWRITEAOF")
            self.wait("aof_rewrite_in_progress:0")
        elif which % 5 == 2:
            self.wait("aof_rewrite_in_progress:0")
            ask("CONFIG", "SET", "aof-use-rdb-preamble", "no" if which % 2 else "yes", "rdb-key-save-delay", "20000")
            ask("BGREWRITEAOF")
        elif which % 5 == 3:
            ask("CONFIG", "SET", "rdb-key-save-delay", "0", "aof-timestamp-enabled", "yes" if which % 2 else "no")
        elif which == 14:
            self.wait("aof_rewrite_in_progress:0")
            ask("CONFIG", "SET", "appendonly", "no")
            self.on = False
        elif which == 15:
            ask("CONFIG", "SET", "appendonly", "yes")
        elif which == 16:
            self.wait("aof_rewrite_scheduled:0")
            self.wait("aof_rewrite_in_progress:0")
            assert ask("WAITAOF", 1, 0, 10000) == [1, 0]
            self.on = True

    def operation(self, n):
        data, replies = self.workload.operation(n)
        self.sent.append(os.path.getsize(self.trace))
        self.client.send(data)
        for _ in range(replies):
            self.client.read()
        if self.on and (self.policy == "always" or (n % 50 == 0 and self.client.ask("WAITAOF", 1, 0, 10000)[0] == 1)):
            self.durable.append((os.path.getsize(self.trace), n))
        self.digests.append(self.client.ask("DEBUG", "DIGEST"))


class Loader:
    def __init__(self, programs):
        self.process = subprocess.Popen([os.path.join(programs, "loader")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def load(self, folder):
        self.process.stdin.write(f"load {folder}\n".encode())
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


def write_image(files, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "appendonlydir"))
    for path, content in files.items():
        with open(os.path.join(folder, path), "wb") as file:
            file.write(content)


def check_disks(session, loader, rng, results, folder):
    numbers = {digest: n for n, digest in enumerate(session.digests)}
    durable_at = [at for at, _ in session.durable]
    disk, seen, loads, cuts = Disk(), {}, 0, 0
    for words, data, offset in records(session.trace):
        disk.apply(words, data)
        cuts += 1
        at = bisect.bisect_right(durable_at, offset)
        low = session.durable[at - 1][1] if at else 0
        high = bisect.bisect_left(session.sent, offset)
        torn = rng.randrange(disk.last_write[1]) if disk.last_write else 0
        fault = ""
        for name, image in (("everything", disk.image(False, False)), ("flushed", disk.image(True, True)),
                            ("folders", disk.image(False, True)), ("data", disk.image(True, False)),
                            ("reordered", disk.image(True, True, 0, True)), ("torn", disk.image(False, False, torn))):
            key = hash(tuple(sorted(image.items())))
            if key not in seen:
                write_image(image, folder)
                seen[key] = loader.load(folder)
                loads += 1
                if loads % AGAIN_EVERY == 0 and loader.load(folder) != seen[key]:
                    fault = f"disk '{name}' after record {cuts} ({words}) loads differently the second time"
            reply = seen[key]
            found = numbers.get(reply[1]) if reply[0] == b"ok" else None
            if found is None:
                fault = f"disk '{name}' after record {cuts} ({words}) is {reply[0].decode()}: {sorted(image)}"
            elif not low <= found <= high:
                fault = f"disk '{name}' after record {cuts} ({words}) has {found} operations, not {low} to {high}"
            if fault:
                break
        results.note(f"{session.policy}, cut {cuts}", fault)
        if fault:
            shutil.copytree(folder, os.path.join(tempfile.mkdtemp(prefix="power-failed."), "disk"))
            break
    print(f"{session.policy}: {len(session.sent)} commands, {cuts} cuts, {loads} different disks", flush=True)


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--commands", type=int, default=2000)
    parser.add_argument("--snapshot-mode", default="fork")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    results = Results()
    loader = Loader(options.programs)
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for policy, commands in (("always", options.commands), ("everysec", options.commands // 4)):
        with tempfile.TemporaryDirectory(prefix="power.") as folder, \
                tempfile.TemporaryDirectory(prefix="power.", dir=shared) as disk:
            try:
                session = Session(options, folder, policy, commands)
            except Reply as error:
                results.note(policy, f"the session fails: {error}")
                continue
            check_disks(session, loader, rng, results, os.path.join(disk, "disk"))
    results.finish()


main()

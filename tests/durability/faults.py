#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes each call of a session fail once, and checks that nothing acknowledged is lost.

  faults.py [--server PATH] [--programs FOLDER] [--step N] [--snapshot-mode inline]

A session writes, rewrites, switches the append only file off and on, and writes again. shim.so counts its calls of
open, write, fsync, rename, unlink and ftruncate; then each of them fails in a session of its own with ENOSPC, EIO,
EINTR, or as a short write. The server may refuse commands, or exit with code 1, never with 0 or a signal. A second
server without faults must then have every acknowledged operation, and append to the same files. EINTR must not be
noticed at all. --step N: only every N-th call, for quick runs."""

import concurrent.futures
import errno
import os
import tempfile
import time

from common import Closed, Reply, Results, Server, Unexpected, Workload, option_parser

ERRORS = {"open": [errno.ENOSPC, errno.EINTR], "write": [errno.ENOSPC, "short", errno.EINTR],
          "fsync": [errno.EIO, errno.EINTR], "rename": [errno.EIO], "unlink": [errno.EIO], "ftruncate": [errno.EIO]}
WORKERS = 4


class Session:
    def __init__(self, options, folder, policy, fault, count_path=None):
        self.policy, self.fault, self.counts = policy, fault, count_path
        self.workload = Workload("f")
        self.acknowledged = self.sent = 0
        environment = {"LD_PRELOAD": os.path.join(options.programs, "shim.so")}
        if fault:
            environment["SHIM_FAULT"] = fault
        if count_path:
            environment["SHIM_COUNT"] = count_path
        self.server = Server(options.server, folder, "--appendfsync", policy, "--snapshot-mode", options.snapshot_mode,
                             environment=environment)
        self.client = self.server.connect()
        self.ended = self.client is None

    def ask(self, *words):
        return self.client.ask(*words)

    def operation(self):
        """Runs the next operation; one that is refused is tried again."""
        data, replies = self.workload.operation(self.acknowledged + 1)
        for _ in range(200):
            self.sent = self.acknowledged + 1
            self.client.send(data)
            errors = []
            for _ in range(replies):
                try:
                    self.client.read()
                except Reply as error:
                    errors.append(str(error))
            if not errors:
                self.acknowledged += 1
                return
            self.sent = self.acknowledged
            if not errors[0].startswith("MISCONF Errors writing to the AOF file: "):
                raise Unexpected(f"operation {self.sent} is refused: {errors}")
            time.sleep(0.05)
        raise Unexpected("writes stay refused")

    def wait_rewrite(self):
        for _ in range(400):
            info = self.ask("INFO", "persistence").decode()
            if "aof_rewrite_in_progress:0" in info and "aof_rewrite_scheduled:0" in info:
                return
            time.sleep(0.01)
        raise Unexpected("the rewrite does not end")

    def run(self):
        for _ in range(6):
            self.operation()
        for _ in range(2):
            try:
                self.ask("BGREWRITEAOF")
            except Reply as error:
                if "Can't execute an AOF background rewriting" not in str(error):
                    raise Unexpected(str(error)) from error
            self.wait_rewrite()
            self.operation()
        self.ask("CONFIG", "SET", "appendonly", "no")
        for attempt in range(3):
            try:
                self.ask("CONFIG", "SET", "appendonly", "yes")
                break
            except Reply as error:
                if attempt == 2 or "Unable to turn on AOF. Check server logs." not in str(error):
                    raise Unexpected(str(error)) from error
        self.wait_rewrite()
        for _ in range(6):
            self.operation()

    def finish(self):
        """Ends the server; returns a fault."""
        if self.ended:
            code = self.server.process.wait()
        elif self.policy == "always" and not self.counts:
            self.server.kill()
            return ""
        else:
            code = self.server.stop(3)
            if code is None:
                return "the server does not stop"
        if code == 1 and self.ended and not self.fault.endswith(f":{errno.EINTR}"):
            return ""
        return "" if code == 0 and not self.ended else f"exit code {code}"


def stop_twice(session):
    """A shutdown that could not write is refused; the next one can."""
    session.server.process.terminate()
    try:
        session.server.process.wait(0.7)
    except Exception:  # pylint: disable=broad-except # it is tried again
        pass


def check(options, folder, session):
    """Starts a server without faults on the same files; returns a fault."""
    low, high = session.acknowledged, session.sent
    for _ in range(2):
        server = Server(options.server, folder, "--appendfsync", "always")
        client = server.connect()
        if client is None:
            return f"the next server does not start: {server.log()[-1500:]}"
        found = session.workload.check(client)
        if isinstance(found, str) or not low <= found <= high:
            server.kill()
            return f"the next server has {found}, not {low} to {high} operations"
        data, replies = session.workload.operation(found + 1)
        client.send(data)
        for _ in range(replies):
            client.read()
        low = high = found + 1
        server.kill()
    return ""


def run(options, policy, fault, count_path=None):
    with tempfile.TemporaryDirectory(prefix="faults.") as folder:
        session = Session(options, folder, policy, fault, count_path)
        text = ""
        try:
            if not session.ended:
                session.run()
        except Closed:
            session.ended = True
        except Unexpected as error:
            text = str(error)
        if not session.ended and policy == "everysec":
            stop_twice(session)
        text = text or session.finish()
        session.server.kill()  # no effect on one that has ended
        text = text or check(options, folder, session)
        return text and f"{text}\n{session.server.log()[-3000:]}"


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--snapshot-mode", default="fork")
    parser.add_argument("--only", help="one fault, such as write:12:28")
    options = parser.parse_args()
    results = Results()
    cases = []
    for policy in ("always", "everysec"):
        with tempfile.NamedTemporaryFile(mode="r", prefix="counts.") as counts:
            fault = run(options, policy, None, counts.name)
            results.note(f"{policy} without a fault", fault)
            lines = counts.read().split()
        for kind, count in zip(lines[::2], lines[1::2]):
            for k in range(1, int(count) + 1, options.step):
                cases += [(policy, f"{kind}:{k}:{error}") for error in ERRORS[kind]]
    if options.only:
        cases = [(policy, options.only) for policy in ("always", "everysec")]
    print(f"{len(cases)} faults", flush=True)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for case, fault in zip(cases, pool.map(lambda case: run(options, *case), cases)):
            results.note(f"{case[0]}, {case[1]}", fault)
    results.finish()


main()

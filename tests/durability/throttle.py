#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes three times as much as a replica takes, with repl-throttling-enabled: it must not be dropped.

  throttle.py [--server PATH] [--seconds N] [--off]

The replica is behind a proxy that passes on a limited number of bytes per second. Its output limit is small, so that
it is reached within seconds with --off, which shows what happens without. Then the replica is stopped (SIGSTOP):
writers must keep a share, and the replica is dropped when it has made no progress for repl-timeout."""

import os
import select
import signal
import socket
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, field, option_parser

WRITERS = 4
VALUE = b"x" * 1000
REPL_TIMEOUT = 10


class Proxy(threading.Thread):
    """Passes connections on to a port, and `rate` bytes per second back (0: all)."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target, self.rate, self.connections = self.listener.getsockname()[1], port, 0, 0

    def run(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            self.connections += 1
            threading.Thread(target=self.serve, args=(near, far), daemon=True).start()

    def serve(self, near, far):
        slice_s = 0.02
        try:
            while True:
                begun = time.monotonic()
                credit = int(self.rate * slice_s) if self.rate else 1 << 20
                while credit > 0:
                    left = begun + slice_s - time.monotonic()
                    if left <= 0:
                        break
                    for ready in select.select([near, far], [], [], left)[0]:
                        data = ready.recv(min(credit, 65536) if ready is far else 65536)
                        if not data:
                            return
                        (near if ready is far else far).sendall(data)
                        credit -= len(data) if ready is far else 0
                time.sleep(max(0.0, begun + slice_s - time.monotonic()))
        except OSError:
            pass
        finally:
            near.close()
            far.close()


class Writer(threading.Thread):
    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.client, self.number, self.written, self.longest_s, self.ends = Client(port), number, 0, 0.0, False

    def run(self):
        try:
            while not self.ends:
                begun = time.monotonic()
                self.client.ask("SET", f"key:{self.number}:{self.written % 1000}", VALUE)
                self.longest_s = max(self.longest_s, time.monotonic() - begun)
                self.written += 1
        except (Closed, OSError, Reply):
            pass


def measure(writers, seconds):
    """Writes per second."""
    before = sum(w.written for w in writers)
    time.sleep(seconds)
    return (sum(w.written for w in writers) - before) / seconds


def value_of(client, name):
    for line in client.ask("INFO", "everything").decode().splitlines():
        if line.startswith(name + ":"):
            return line[len(name) + 1:]
    return None


def run(options, folder, results):
    for name in ("primary", "replica"):
        os.mkdir(os.path.join(folder, name))
    settings = ["--appendonly", "no", "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "1mb", "--repl-timeout",
                str(REPL_TIMEOUT), "--client-output-buffer-limit", "replica 64mb 32mb 2"]
    primary = Server(options.server, os.path.join(folder, "primary"), *settings,
                     *([] if options.off else ["--repl-throttling-enabled", "yes"]))
    client = primary.connect()
    proxy = Proxy(primary.port)
    proxy.start()
    replica = Server(options.server, os.path.join(folder, "replica"), "--appendonly", "no",
                     "--replicaof", f"127.0.0.1 {proxy.port}")
    follower = replica.connect()
    while field(follower, "master_link_status") != "up":
        time.sleep(0.05)
    writers = [Writer(primary.port, number) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    free = measure(writers, 2)
    connections = proxy.connections
    proxy.rate = free * len(VALUE) / 3
    slowed = measure(writers, options.seconds)
    syncs, dropped = int(value_of(client, "sync_full")), proxy.connections - connections
    print(f"{free:.0f} writes per second, then {slowed:.0f}; {dropped} disconnections, {syncs} full synchronizations, "
          f"longest write {max(w.longest_s for w in writers):.2f} s")
    if not options.off:
        print("  ".join(line for line in client.ask("INFO", "throttling").decode().splitlines()[1:] if line))
        results.note("no disconnection", "" if not dropped and syncs == 1 else f"{dropped} of them, {syncs} syncs")
        results.note("writers are slowed", "" if slowed < free * 0.8 else f"{slowed:.0f} of {free:.0f}")
        active = int(value_of(client, "repl_throttle_activation_events")) > 0 and int(
            value_of(client, "repl_throttle_total_commands")) > 0
        results.note("INFO says why", "" if active else "it has no activation")
        os.kill(replica.process.pid, signal.SIGSTOP)
        share = measure(writers, 5)
        print(f"with a stopped replica {share:.0f}")
        results.note("writers keep a share", "" if share > free / 60 else f"{share:.0f} of {free:.0f}")
        end = time.monotonic() + 3 * REPL_TIMEOUT
        while value_of(client, "connected_slaves") != "0" and time.monotonic() < end:
            time.sleep(0.1)
        results.note("a replica without progress is dropped", "" if time.monotonic() < end else "it is not")
        # Not by their rate, which depends on what else the machine does.
        while float(value_of(client, "repl_throttle_rate")) >= 0 and time.monotonic() < end:
            time.sleep(0.1)
        delayed = int(value_of(client, "repl_throttle_total_commands"))
        again = measure(writers, 2)
        delayed = int(value_of(client, "repl_throttle_total_commands")) - delayed
        results.note("then writers are free", "" if again and not delayed else f"{delayed} of {2 * again:.0f} were delayed")
        os.kill(replica.process.pid, signal.SIGCONT)
    for writer in writers:
        writer.ends = True
    for server in (primary, replica):
        server.kill()


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--off", action="store_true", help="without throttling")
    options = parser.parse_args()
    results = Results()
    with tempfile.TemporaryDirectory(prefix="throttle.", ignore_cleanup_errors=True) as folder:
        run(options, folder, results)
    results.finish()


main()

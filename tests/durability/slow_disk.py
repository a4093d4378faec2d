#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A disk that hangs: who waits for it, and what a kill then loses.

  slow_disk.py [--server PATH] [--programs FOLDER] [--seconds N]

With shim.so no fsync ends while a file exists, and writes to files wait for a fsync that runs, or do not. So a test
decides when the disk goes on, and what is answered before that has not waited for it. --seconds: how long the long
hang lasts (10)."""

import os
import tempfile
import threading
import time

from common import Client, Closed, Reply, Results, Server, Unexpected, field, option_parser

BOUND_S = 30      # for what must happen
NOTHING_S = 0.3   # for what must not
STOP_S = 3        # persist/aof.c: STOP_MS
SLACK_S = 1.5     # ticks, and a busy machine


class Disk:
    """A server on a disk that can hang."""

    def __init__(self, options, folder, policy, *arguments, writes_wait=True):
        self.flag = os.path.join(folder, "hang")
        self.data = os.path.join(folder, "data")
        self.options, self.policy = options, policy
        os.makedirs(self.data)
        self.server = Server(options.server, self.data, "--appendfsync", policy, "--latency-monitor-threshold", "1",
                             *arguments, environment={"LD_PRELOAD": os.path.join(options.programs, "shim.so"),
                                                      "SHIM_HANG": self.flag,
                                                      "SHIM_HANG_WRITES": "yes" if writes_wait else "no"})
        self.client = self.server.connect()

    def hang(self):
        with open(self.flag, "wb"):
            pass

    def go_on(self):
        if os.path.exists(self.flag):
            os.unlink(self.flag)

    def until(self, what, condition):
        end = time.monotonic() + BOUND_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.01)
        raise Unexpected(f"not within {BOUND_S} s: {what}")

    def begin_hang(self):
        """Hangs, and writes until a fsync is under way. Returns the number of writes."""
        self.hang()
        count = 0

        def flushes():
            nonlocal count
            count += 1
            self.client.ask("SET", "before", count)
            return field(self.client, "aof_pending_bio_fsync") != "0"
        self.until("a background fsync", flushes)
        return count

    def restart(self):
        """On a disk that works, without faults; returns a client."""
        self.server.kill()
        self.go_on()
        self.server = Server(self.options.server, self.data, "--appendfsync", self.policy)
        client = self.server.connect()
        if client is None:
            raise Unexpected(f"the next server does not start: {self.server.log()[-1500:]}")
        return client


class Writer(threading.Thread):
    """Sets `key` to 1, 2, ...; `acknowledged` has the times of the replies."""

    def __init__(self, port, key, pause_s=0.001):
        super().__init__(daemon=True)
        self.client, self.key, self.pause_s = Client(port, 120), key, pause_s
        self.acknowledged, self.sent, self.fault, self.stopped = [], 0, "", False
        self.start()

    def run(self):
        try:
            while not self.stopped:
                self.sent += 1
                self.client.ask("SET", self.key, self.sent)
                self.acknowledged.append(time.monotonic())
                time.sleep(self.pause_s)
        except (Closed, OSError):
            pass
        except Reply as error:
            self.fault = str(error)

    def end(self):
        self.stopped = True
        self.join(BOUND_S)
        if self.fault or self.is_alive():
            raise Unexpected(self.fault or "a writer does not end")


def is_answered(client, seconds):
    """True if a reply arrives; it is read later."""
    client.socket.settimeout(seconds)
    try:
        return bool(client.file.peek(1))
    except OSError:
        # A timeout makes the file object unusable.
        client.file = client.socket.makefile("rb")
        return False
    finally:
        client.socket.settimeout(120)


def writers_wait(disk):
    return field(disk.client, "paused_reason") == "append_only_file_stalled"


def long_hang(disk, seconds):
    """everysec: replies do not wait, then writers do, readers never."""
    began = time.monotonic()
    disk.begin_hang()
    writer = Writer(disk.server.port, "w")
    disk.until("that a write does not wait for the disk", lambda: len(writer.acknowledged) >= 100)
    if disk.client.ask("WAITAOF", 1, 0, 100) != [0, 0]:
        raise Unexpected("WAITAOF counts what is not on disk")
    disk.until("that writers wait", lambda: writers_wait(disk))
    disk.client.ask("GET", "w")
    while time.monotonic() - began < seconds:
        disk.client.ask("GET", "w")
        time.sleep(0.01)
    disk.until("that writers wait", lambda: writers_wait(disk))
    count = len(writer.acknowledged)
    time.sleep(NOTHING_S)
    if len(writer.acknowledged) != count:
        raise Unexpected("a write was acknowledged with three seconds of changes unwritten")
    disk.client.ask("GET", "w")
    disk.go_on()
    disk.until("that writers go on", lambda: len(writer.acknowledged) > count + 100)
    writer.end()
    disk.until("that all is on disk", lambda: disk.client.ask("WAITAOF", 1, 0, 1000) == [1, 0])
    if int(field(disk.client, "aof_delayed_fsync")) < 1:
        raise Unexpected("aof_delayed_fsync does not count it")
    events = [event[0] for event in disk.client.ask("LATENCY", "LATEST")]
    if not {b"aof-stall", b"aof-writers-wait"} <= set(events):
        raise Unexpected(f"LATENCY has {events}")
    log = disk.server.log()
    for text in ("The disk holds up writes to the AOF file", "Writes wait until the disk accepts data again"):
        if log.count(text) != 1:
            raise Unexpected(f"the log has {log.count(text)} lines with: {text}")
    found = int(disk.restart().ask("GET", "w"))
    if found != writer.sent:
        raise Unexpected(f"{found} instead of {writer.sent}")


def kill_in_stall(disk, _):
    """everysec, kill -9 while writes hang: what is lost was acknowledged within the last seconds."""
    writer = Writer(disk.server.port, "w")
    disk.until("writes", lambda: len(writer.acknowledged) >= 200)
    disk.begin_hang()
    disk.until("that writers wait", lambda: writers_wait(disk))
    time.sleep(1)
    disk.server.kill()
    writer.join(BOUND_S)
    found = int(disk.restart().ask("GET", "w") or 0)
    lost = writer.acknowledged[found:]
    if lost and lost[-1] - lost[0] > STOP_S + SLACK_S:
        raise Unexpected(f"the {len(lost)} writes that were lost were acknowledged within {lost[-1] - lost[0]:.1f} s")


def kill_in_flush(disk, _):
    """everysec, kill -9 during a fsync that lets writes pass: nothing is lost."""
    writers = [Writer(disk.server.port, f"w{i}", 0) for i in range(4)]
    disk.begin_hang()
    disk.until("writes", lambda: min(len(writer.acknowledged) for writer in writers) >= 500)
    disk.server.kill()
    for writer in writers:
        writer.join(BOUND_S)
    client = disk.restart()
    for writer in writers:
        found = int(client.ask("GET", writer.key) or 0)
        if not len(writer.acknowledged) <= found <= writer.sent:
            raise Unexpected(f"{found} instead of {len(writer.acknowledged)} to {writer.sent}")


def always(disk, seconds):
    """always: only what tells of a change waits for the fsync of it."""
    writer, same = Client(disk.server.port, 120), Client(disk.server.port, 120)
    disk.client.ask("MSET", "k", "old", "other", "1")
    disk.hang()
    writer.send(b"SET k new\r\n")
    disk.until("a fsync", lambda: field(disk.client, "aof_pending_bio_fsync") != "0")
    same.send(b"GET k\r\n")
    end = time.monotonic() + min(seconds, 3)
    while time.monotonic() < end:
        if disk.client.ask("GET", "other") != b"1":
            raise Unexpected("a read of another key")
        time.sleep(0.01)
    if is_answered(writer, NOTHING_S) or is_answered(same, NOTHING_S):
        raise Unexpected("a change is told of that is not on disk")
    disk.go_on()
    if writer.read() != b"OK" or same.read() != b"new":
        raise Unexpected("the replies that have waited")
    disk.hang()
    writer.send(b"SET k later\r\n")
    disk.until("a fsync", lambda: field(disk.client, "aof_pending_bio_fsync") != "0")
    client = disk.restart()
    if client.ask("GET", "k") not in (b"new", b"later"):
        raise Unexpected(f"k is {client.ask('GET', 'k')}")


def rewrite(disk, _):
    """BGREWRITEAOF on a disk that hangs stops nobody else."""
    asks = Client(disk.server.port, 120)
    disk.client.ask("MSET", "k", "1", "other", "1")
    disk.hang()
    asks.send(b"BGREWRITEAOF\r\n")
    disk.until("a rewrite", lambda: field(disk.client, "aof_rewrite_in_progress") == "1")
    for i in range(20):
        disk.client.ask("GET", "other")
        if disk.policy == "everysec":
            disk.client.ask("SET", "k", i)
        time.sleep(0.01)
    if is_answered(asks, NOTHING_S):
        raise Unexpected("the rewrite began without its file in the manifest")
    disk.go_on()
    if asks.read() != b"Background append only file rewriting started":
        raise Unexpected("the reply to BGREWRITEAOF")
    disk.hang()  # the child, and then the manifest at the end
    writer = Writer(disk.server.port, "w")
    for _ in range(100):
        disk.client.ask("GET", "other")
        time.sleep(0.01)
    disk.go_on()
    disk.until("its end", lambda: field(disk.client, "aof_rewrite_in_progress") == "0")
    if field(disk.client, "aof_last_bgrewrite_status") != "ok":
        raise Unexpected("the rewrite fails")
    writer.end()
    found = int(disk.restart().ask("GET", "w") or 0)
    if found != writer.sent:
        raise Unexpected(f"{found} instead of {writer.sent}")


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", help="the name of one case")
    options = parser.parse_args()
    results = Results()
    cases = [(long_hang, "everysec", {}), (kill_in_stall, "everysec", {}),
             (kill_in_flush, "everysec", {"writes_wait": False}), (always, "always", {}),
             (always, "always", {"writes_wait": False}), (rewrite, "everysec", {}), (rewrite, "always", {})]
    for case, policy, how in cases:
        if options.only not in (None, case.__name__):
            continue
        with tempfile.TemporaryDirectory(prefix="slow.", ignore_cleanup_errors=True) as folder:
            disk = Disk(options, folder, policy, **how)
            fault = ""
            try:
                case(disk, options.seconds)
            except (Closed, Reply, Unexpected) as error:
                fault = f"{error!r}\n{disk.server.log()[-2000:]}"
            finally:
                disk.go_on()
                disk.server.kill()
            results.note(f"{case.__name__}, {policy} {how}", fault)
    results.finish()


main()

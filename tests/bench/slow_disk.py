#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long writes and reads take while the disk is quiet, busy or slow.

  slow_disk.py OURS PEER [--seconds N] [--clients N] [--sync-ms MS] [--policies everysec,...] [--disks quiet,...]

Each server runs with each value of appendfsync. Clients set random keys, one request at a time each, and one client reads
another key every millisecond. busy: another process writes to the same disk and flushes 8 MB at a time. slow: a flush
takes --sync-ms (300), and writes wait for one that runs (tests/durability/shim.c). Prints milliseconds:
p50 / p99 / p99.9 / longest of SET, the longest GET, and SETs per second."""

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "durability"))
from common import Client, Server  # noqa: E402

POLICIES = ("everysec", "always", "no")
DISKS = ("quiet", "busy", "slow")


def keep_busy(folder):
    """Until it is terminated."""
    block = os.urandom(1 << 20)
    fd = os.open(os.path.join(folder, "noise"), os.O_WRONLY | os.O_CREAT, 0o600)
    while True:
        for _ in range(8):
            os.write(fd, block)
        os.fsync(fd)
        os.lseek(fd, 0, os.SEEK_SET)


def ask_often(port, words, pause_s, end, times):
    client = Client(port, 120)
    while time.monotonic() < end:
        begun = time.monotonic()
        client.ask(*words())
        times.append((time.monotonic() - begun) * 1000)
        if pause_s:
            time.sleep(pause_s)
    client.close()


def ask_in_process(port, end, queue):
    times = []
    ask_often(port, lambda: ("SET", random.randrange(1 << 20), "x" * 16), 0, end, times)
    queue.put(times)


def measure(options, program, policy, disk):
    with tempfile.TemporaryDirectory(prefix="slow.", ignore_cleanup_errors=True) as folder:
        environment = {}
        if disk == "slow":
            environment = {"LD_PRELOAD": os.path.join(options.programs, "shim.so"), "SHIM_SYNC_MS": str(options.sync_ms)}
        data = os.path.join(folder, "data")
        os.mkdir(data)
        server = Server(program, data, "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0",
                        environment=environment)
        server.connect().ask("SET", "other", 1)
        noise = multiprocessing.Process(target=keep_busy, args=(folder,), daemon=True)
        if disk == "busy":
            noise.start()
        end = time.monotonic() + options.seconds
        queue, reads = multiprocessing.Queue(), []
        writers = [multiprocessing.Process(target=ask_in_process, args=(server.port, end, queue))
                   for _ in range(options.clients)]
        for writer in writers:
            writer.start()
        reader = threading.Thread(target=ask_often, args=(server.port, lambda: ("GET", "other"), 0.001, end, reads))
        reader.start()
        sets = sorted(sum((queue.get() for _ in writers), []))
        reader.join()
        if disk == "busy":
            noise.terminate()
            noise.join()
        server.kill()
        at = [sets[min(len(sets) - 1, int(len(sets) * share))] for share in (0.5, 0.99, 0.999, 1)]
        return " / ".join(f"{ms:.2f}" for ms in at), f"{max(reads):.1f}", f"{len(sets) / options.seconds:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("servers", nargs=2, type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--policies", type=lambda words: words.split(","), default=POLICIES)
    parser.add_argument("--disks", type=lambda words: words.split(","), default=DISKS)
    parser.add_argument("--sync-ms", type=int, default=300)
    parser.add_argument("--programs", type=os.path.abspath,
                        default=os.path.join(ROOT, "build", "release", "tests", "durability"))
    options = parser.parse_args()
    print("| appendfsync | disk | server | SET p50 / p99 / p99.9 / longest, ms | GET longest, ms | SET per second |")
    print("|---|---|---|---|---|---|")
    for policy in options.policies:
        for disk in options.disks:
            for program in options.servers:
                version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
                name = "this" if "release=" in version else "peer"
                print(f"| {policy} | {disk} | {name} | " + " | ".join(measure(options, program, policy, disk)) + " |",
                      flush=True)


main()

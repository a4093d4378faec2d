#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures what requests cost a server with and without I/O threads (make gate builds the load generator).

    tests/bench/io_threads.py SERVER... [--threads 1,2] [--pipelines 1,16,100] [--rounds N] [--pin together|apart|none]
                                        [--connect]

For each server and number of threads, medians of alternating rounds with 50 clients: CPU microseconds of the main thread a
request; what of it is not the kernel's wait (INFO used_active_time_main_thread); CPU of all threads; requests in a turn of
the main loop; how often a thread of the server fell asleep, per 1,000 requests; requests a second, which depend on the
generator, too. With --pin together all threads of a server have one processor and the generator another one; apart: the
main thread has one, the I/O threads share the other with the generator. --connect: connections that send one PING and are
closed, per second, and CPU of main thread and all threads for each; --pipelines has no effect then."""
import argparse
import os
import socket
import statistics
import subprocess
import time

from beside import GET, KEYS, LOAD, SET
from keyspace import Server, fill

SHARES = {1: 1, 16: 6, 100: 12}  # of --requests, by pipeline


def tasks(server):
    folder = f"/proc/{server.process.pid}/task"
    return [f"{folder}/{thread}" for thread in sorted(os.listdir(folder), key=int)]


def is_io(task):
    return open(f"{task}/comm").read().startswith("io_thd")


def schedstat(task):
    return int(open(f"{task}/schedstat").read().split()[0]) / 1000


def sleeps(server):
    count = 0
    for task in tasks(server):
        for line in open(f"{task}/status"):
            if line.startswith("voluntary_ctxt_switches"):
                count += int(line.split()[1])
    return count


def sample(server):
    info = dict(line.split(":", 1) for line in server.ask("INFO", "everything").decode().split("\r\n") if ":" in line)
    threads = tasks(server)
    return (time.monotonic(), schedstat(threads[0]), float(info["used_active_time_main_thread"]) * 1e6,
            sum(map(schedstat, threads)), int(info["eventloop_cycles"]), sleeps(server))


def pin(server, how):
    """Returns the generator's command prefix."""
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    if how == "none" or first == last:
        return []
    for task in tasks(server):
        cpu = last if how == "apart" and is_io(task) else first
        os.sched_setaffinity(int(os.path.basename(task)), {cpu})
    return ["taskset", "-c", str(last)]


def measure(server, request, pipeline, count, start):
    before = sample(server)
    subprocess.run([*start, LOAD, "-r", str(KEYS), "-P", str(pipeline), "-n", str(count), str(server.port), request],
                   check=True, stdout=subprocess.DEVNULL)
    passed, main, busy, total, turns, asleep = (b - a for a, b in zip(before, sample(server)))
    return main / count, busy / count, total / count, count / max(turns, 1), asleep * 1000 / count, count / passed / 1000


def connect_loop(port, end, counts):
    made = 0
    while time.monotonic() < end:
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(b"PING\r\n")
        s.recv(16)
        s.close()
        made += 1
    counts.append(made)


def connects(server, seconds):
    """Processes, because one does not keep a server busy."""
    before, counts = sample(server), []
    children = []
    for _ in range(4):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            connect_loop(server.port, time.monotonic() + seconds, counts)
            os.write(writer, b"%d" % counts[0])
            os._exit(0)
        children.append((pid, reader))
        os.close(writer)
    for pid, reader in children:
        os.waitpid(pid, 0)
        counts.append(int(os.read(reader, 32)))
        os.close(reader)
    passed, main, busy, total, turns, asleep = (b - a for a, b in zip(before, sample(server)))
    count = sum(counts)
    return main / count, busy / count, total / count, count / max(turns, 1), asleep * 1000 / count, count / passed / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", type=os.path.abspath)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--pipelines", default="1,16,100")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=200000)
    parser.add_argument("--pin", choices=("together", "apart", "none"), default="none")
    parser.add_argument("--connect", action="store_true")
    parser.add_argument("--get", action="store_true", help="without SET")
    parser.add_argument("--quarter", action="store_true", help="first quartiles instead of medians, on a busy machine")
    parser.add_argument("--config", default="", help="further words of the servers' command line")
    options = parser.parse_args()
    # The quarter with the least is what other programs have disturbed least.
    middle = (lambda figures: sorted(figures)[len(figures) // 4]) if options.quarter else statistics.median
    rows = []
    for binary in options.servers:
        for threads in map(int, options.threads.split(",")):
            s = Server(binary, extra=("--io-threads", str(threads), "--io-threads-always-active", "yes",
                                      *options.config.split()))
            fill(s, range(KEYS))
            rows.append((f"{os.path.relpath(binary)[-30:]} {threads}", s, pin(s, options.pin)))
    kinds = [("connect", 0)] if options.connect else [
        (request, pipeline) for pipeline in map(int, options.pipelines.split(",")) for request in (GET, SET) if not options.get or request == GET]
    print(f"{'server, threads':34}{'':10}{'main':>8}{'busy':>8}{'all':>8}{'a turn':>8}{'sleeps':>8}{'k/s':>8}")
    try:
        for request, pipeline in kinds:
            figures = [[] for _ in rows]
            for turn in range(options.rounds):
                for at in range(len(rows)) if turn % 2 else reversed(range(len(rows))):
                    _, server, start = rows[at]
                    if options.connect:
                        figures[at].append(connects(server, 2))
                    else:
                        count = options.requests * SHARES.get(pipeline, 1)
                        figures[at].append(measure(server, request, pipeline, count, start))
            name = "connect" if options.connect else f"{request[:3]} P{pipeline}"
            for (label, _, _), results in zip(rows, figures):
                main_us, busy, total, turn, asleep, rate = map(middle, zip(*results))
                print(f"{label:34}{name:10}{main_us:8.3f}{busy:8.3f}{total:8.3f}{turn:8.1f}{asleep:8.1f}{rate:8.1f}", flush=True)
    finally:
        for _, server, _ in rows:
            server.__exit__()


if __name__ == "__main__":
    main()

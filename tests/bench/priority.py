#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long a PING waits while other clients saturate a server, on the usual port and on admin-port.

    tests/bench/priority.py SERVER BENCHMARK [--seconds N] [--slow] [--io-threads N]

200 clients of valkey-benchmark send GETs at pipeline 1000; with --slow one more client sends commands that each take
200 ms; with --io-threads the server has so many, all the time. Prints p50, p99 and the longest wait of a PING every 2 ms,
in milliseconds, of each port. SERVER may be another kind of server: then only of its usual port. The processor shall not
be what the PING waits for: the load has a lower priority than the server, and this program a real-time one, if it may."""
import argparse
import contextlib
import os
import socket
import subprocess
import threading
import time

from keyspace import Server, request, reserve_port


def pings(port, seconds):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        link.sendall(b"*1\r\n$4\r\nPING\r\n")
        if link.recv(64) != b"+PONG\r\n":
            raise RuntimeError("no PONG")
        waits.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.002)
    waits.sort()
    return "/".join(f"{waits[min(len(waits) - 1, int(len(waits) * part))]:.2f}" for part in (0.5, 0.99, 1))


def slow_commands(port, over):
    link = socket.create_connection(("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):  # the server may end first
        while not over.is_set():
            link.sendall(request("DEBUG", "SLEEP", "0.2") * 5)
            left = 5 * len(b"+OK\r\n")
            while left:
                left -= len(link.recv(left))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("benchmark")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--io-threads", type=int, default=1)
    options = parser.parse_args()
    extra = ["--enable-debug-command", "yes"]
    if options.io_threads > 1:
        extra += ["--io-threads", str(options.io_threads), "--io-threads-always-active", "yes"]
    with Server(os.path.abspath(options.server), extra=extra) as server:
        ports = {"port": server.port}
        admin, guard = reserve_port()
        with guard:
            try:
                server.ask("CONFIG", "SET", "admin-port", admin)
                ports["admin-port"] = admin
            except RuntimeError:
                pass
        load = subprocess.Popen(["nice", "-n", "10", options.benchmark, "-p", str(server.port), "-c", "200", "-P", "1000",
                                 "-n", "2000000000", "-q", "GET", "key"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        over = threading.Event()
        slow = threading.Thread(target=slow_commands, args=(server.port, over), daemon=True)
        try:
            if options.slow:
                slow.start()
            time.sleep(1)
            for name, port in ports.items():
                print(f"{name}: {pings(port, options.seconds)} ms", flush=True)
        finally:
            over.set()
            load.kill()
            load.wait()


if __name__ == "__main__":
    main()

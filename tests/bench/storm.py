#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long clients that stay connected wait while others reconnect, with TLS and AUTH.

    tests/bench/storm.py SERVER... [--count 20000] [--at-once 500] [--plain] [--set DIRECTIVE=VALUE]... [--quiet 3]

For each server: clients that stay send a GET each millisecond in turn; its time counts from when it should have been sent.
Meanwhile `count` connections are made, `at-once` at a time: handshake, AUTH, PING, close. Prints p50, p99, p99.9 and the
longest wait (ms) before the storm (for --quiet seconds) and in it, how long the storm took, and the processor's time of the
server. The server and the measuring thread get real-time priorities, if this may set them, so that a busy machine is
measured less. Needs openssl."""
import argparse
import multiprocessing
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from keyspace import Server, request, reserve_port

STAYING = 20
PROCESSES = 4


def percentiles(waits):
    waits = sorted(waits)
    return "/".join(f"{waits[min(len(waits) - 1, int(len(waits) * part))] * 1e3:.2f}" for part in (0.5, 0.99, 0.999, 1))


def tls_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def connect(port, context):
    link = socket.create_connection(("127.0.0.1", port), timeout=60)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(link) if context else link


def receive(link, size):
    data = b""
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


LOGIN = request("AUTH", "secret") + request("PING")
LOGGED_IN = b"+OK\r\n+PONG\r\n"


def one_process(port, tls, count, threads, failed):
    os.nice(10)
    context = tls_context() if tls else None
    left = [count]
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if left[0] == 0:
                    return
                left[0] -= 1
            for _ in range(5):
                try:
                    with connect(port, context) as link:
                        link.sendall(LOGIN)
                        if receive(link, len(LOGGED_IN)) == LOGGED_IN:
                            break
                except OSError:
                    pass
                with failed.get_lock():
                    failed.value += 1

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


class Pinger(threading.Thread):
    """Clients that stay: one GET each millisecond."""

    def __init__(self, port, tls):
        super().__init__(daemon=True)
        context = tls_context() if tls else None
        self.links = [connect(port, context) for _ in range(STAYING)]
        for link in self.links:
            link.sendall(LOGIN)
            receive(link, len(LOGGED_IN))
        self.waits = []
        self.over = False

    def run(self):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
        except PermissionError:
            pass
        get, due, turn = request("GET", "key"), time.perf_counter(), 0
        while not self.over:
            due += 0.001
            rest = due - time.perf_counter()
            if rest > 0:
                time.sleep(rest)
            link = self.links[turn % STAYING]
            turn += 1
            link.sendall(get)
            receive(link, len(b"$-1\r\n"))
            self.waits.append(time.perf_counter() - due)

    def take(self):
        waits, self.waits = self.waits, []
        return waits


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(binary, options, folder):
    tls_port, guard = reserve_port()
    extra = ["--requirepass", "secret", "--maxclients", "10000"]
    for pair in options.set:
        name, value = pair.split("=", 1)
        extra += ["--" + name, value]
    if not options.plain:
        extra += ["--tls-port", str(tls_port), "--tls-cert-file", folder + "/cert.pem", "--tls-key-file", folder + "/key.pem",
                  "--tls-ca-cert-file", folder + "/cert.pem", "--tls-auth-clients", "no"]
    with guard, Server(os.path.abspath(binary), extra=extra) as server:
        try:
            os.sched_setscheduler(server.process.pid, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            pass
        port = server.port if options.plain else tls_port
        pinger = Pinger(port, not options.plain)
        pinger.start()
        time.sleep(options.quiet)
        print(f"{binary}: quiet {percentiles(pinger.take())} ms", flush=True)
        failed = multiprocessing.Value("i", 0)
        began, used = time.monotonic(), cpu_seconds(server.process.pid)
        storm = [multiprocessing.Process(target=one_process, args=(port, not options.plain, options.count // PROCESSES,
                                                                   options.at_once // PROCESSES, failed))
                 for _ in range(PROCESSES)]
        for process in storm:
            process.start()
        for process in storm:
            process.join()
        waits = pinger.take()
        print(f"{binary}: storm {percentiles(waits)} ms; {options.count} connections in {time.monotonic() - began:.1f} s, "
              f"{failed.value} failed attempts, {cpu_seconds(server.process.pid) - used:.1f} s of the server", flush=True)
        pinger.over = True
        pinger.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--at-once", type=int, default=500)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--quiet", type=float, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=storm", "-keyout",
                        folder + "/key.pem", "-out", folder + "/cert.pem"], check=True, stderr=subprocess.DEVNULL)
        for binary in options.servers:
            measure(binary, options, folder)


if __name__ == "__main__":
    main()

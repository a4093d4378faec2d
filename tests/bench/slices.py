#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a neighbour of a large read notices: its longest GET while the command runs, in milliseconds.

    tests/bench/slices.py SERVER [SERVER ...] [--only REGEX] [--elements N] [--keys N] [--rounds N] [--at-once N]

A SERVER is a binary, with directives after commas: src/valkey-server,command-slice-us=0. Sets, hashes, lists and sorted
sets have a million elements, the keyspace two million keys. For each command: the longest GET, the CPU time of the server
and the time from the request to the last byte of the reply. Of each the least of all rounds, as other programs only add.
--at-once N: N clients send the command at the same time. Needs Python 3.9, nothing else."""
import argparse
import multiprocessing
import os
import re
import socket
import time

from keyspace import Server, cpu_us, request

PART = 2000  # elements in one command
ROWS = ("KEYS *", "KEYS nothing*", "SMEMBERS s1", "HGETALL h", "HKEYS h", "LRANGE l 0 -1", "ZRANGE z1 0 -1 WITHSCORES",
        "ZRANGEBYSCORE z1 -inf +inf", "SORT l", "SORT s1 ALPHA LIMIT 0 10", "SINTER s1 s2", "SINTERCARD 2 s1 s2",
        "SUNION s1 s2", "SDIFF s1 s2", "ZINTER 2 z1 z2", "ZUNION 2 z1 z2", "ZDIFF 2 z1 z2", "SCAN 0 COUNT 1000000",
        "HSCAN h 0 COUNT 1000000", "SSCAN s1 0 COUNT 1000000", "ZSCAN z1 0 COUNT 1000000", "LPOS l missing", "DUMP s1",
        "SUNIONSTORE d s1 s2", "SINTERSTORE d s1 s2", "SDIFFSTORE d s1 s2", "ZUNIONSTORE d 2 z1 z2", "ZINTERSTORE d 2 z1 z2",
        "ZDIFFSTORE d 2 z1 z2", "ZRANGESTORE d z1 0 -1", "SORT l STORE d", "COPY s1 d REPLACE", "COPY h d REPLACE",
        "COPY l d REPLACE", "COPY z1 d REPLACE", "BITOP XOR d bits1 bits2")


def fill(server, elements, keys):
    parts = []
    for at in range(0, elements, PART):
        part = range(at, at + PART)
        parts.append(["SADD", "s1", *(f"member:{i}" for i in part)])
        parts.append(["SADD", "s2", *(f"member:{i + elements // 2}" for i in part)])
        parts.append(["HSET", "h", *(w for i in part for w in (f"field:{i}", f"value:{i}"))])
        parts.append(["RPUSH", "l", *(str(i * 7919 % elements) for i in part)])
        parts.append(["ZADD", "z1", *(w for i in part for w in (str(i * 31 % elements), f"member:{i}"))])
        parts.append(["ZADD", "z2", *(w for i in part for w in (str(i), f"member:{i + elements // 2}"))])
    for at in range(0, keys, PART):
        parts.append(["MSET", *(w for i in range(at, at + PART) for w in (f"key:{i}", "value"))])
    for name in ("bits1", "bits2"):
        parts.append(["SETRANGE", name, str(100 * elements - 1), name])
    for part in parts:
        server.ask(*part)


def neighbour(port, wants, results):
    """For each event in `wants`, the longest GET until it is set again, in ns."""
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while wants.recv():
        results.send(0)
        longest = 0
        while not wants.poll():
            before = time.perf_counter_ns()
            s.sendall(b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n")
            s.recv(100)
            longest = max(longest, time.perf_counter_ns() - before)
        wants.recv()
        results.send(longest)


def drain(sockets, marks):
    """Reads replies until each socket has sent its mark, the reply of an ECHO after the command."""
    tails = {s: b"" for s in sockets}
    buffer = bytearray(1 << 20)
    while tails:
        for s in list(tails):
            n = s.recv_into(buffer)
            tails[s] = (tails[s] + bytes(buffer[max(0, n - 64):n]))[-64:]
            if tails[s].endswith(marks):
                del tails[s]


def measure(server, command, clients, side):
    wants, results = side
    mark = b"the-end-of-the-reply"
    wants.send(True)
    results.recv()
    time.sleep(0.02)
    cpu, began = cpu_us(server), time.perf_counter()
    for s in clients:
        s.sendall(request(*command.split()) + request("ECHO", mark.decode()))
    drain(clients, mark + b"\r\n")
    took = time.perf_counter() - began
    cpu = cpu_us(server) - cpu
    wants.send(True)
    return results.recv() / 1e6, cpu / 1e3, took * 1e3


def run(spec, options):
    binary, *directives = spec.split(",")
    extra = [w for d in directives for w in ("--" + d.split("=")[0], d.split("=")[1])]
    with Server(os.path.abspath(binary), extra=extra) as server:
        fill(server, options.elements, options.keys)
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(options.at_once)]
        wants, other_wants = multiprocessing.Pipe()
        results, other_results = multiprocessing.Pipe()
        side = multiprocessing.Process(target=neighbour, args=(server.port, other_wants, other_results))
        side.start()
        for command in ROWS:
            if not re.search(options.only, command):
                continue
            rounds = [measure(server, command, clients, (wants, results)) for _ in range(options.rounds)]
            yield command, [min(r[i] for r in rounds) for i in range(3)]
        wants.send(False)
        side.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="SERVER")
    parser.add_argument("--only", default="")
    parser.add_argument("--elements", type=int, default=1000000)
    parser.add_argument("--keys", type=int, default=2000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    for spec in options.servers:
        print(f"{spec}\n{'command':28} {'GET ms':>9} {'CPU ms':>9} {'took ms':>9}")
        for command, figures in run(spec, options):
            print(f"{command:28} " + " ".join(f"{f:9.2f}" for f in figures), flush=True)


if __name__ == "__main__":
    main()

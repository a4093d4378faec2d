#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the plots of docs/memory.md: used_memory of two servers with the same data.

    tests/bench/memory_report.py OURS PEER [--scale F] [--folder FOLDER]

OURS and PEER are server binaries, which run on free ports without persistence. Writes into FOLDER (default docs/memory):

  keys.svg     bytes per key of 16 bytes with a value of 16, over the number of keys
  members.svg  bytes per member of 20 bytes of sorted sets (added in order, and at random) and sets, over their size
  hashes.svg   bytes per hash, over the number of fields: names of 8 bytes that all hashes share, values of 8

and prints the figures. --scale multiplies the numbers of keys, the largest sizes and the numbers of hashes. Memory does not
depend on the load of the machine. Needs Python 3.9, nothing else."""
import argparse
import os
import random

from keyspace import Server, fill, request
from report_page import bars_plot, lines_plot

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
KEYS_MOST, MEMBERS_MOST, HASHES = 2000000, 1000000, 50000
PEER_NAME = "Valkey"
BATCH = 1000


def pass_all(server, requests):
    batch = []
    for one in requests:
        batch.append(one)
        if len(batch) == BATCH:
            server.pass_over(b"".join(batch))
            batch = []
    server.pass_over(b"".join(batch))


def grown(binary, make, count):
    """Bytes per element of what `count` requests add to a server without keys, which has its buffers already."""
    with Server(binary) as server:
        pass_all(server, (make(i) for i in range(BATCH)))
        server.used()  # INFO needs memory, too
        server.ask("FLUSHALL", "SYNC")
        before = server.used()
        pass_all(server, (make(i) for i in range(count)))
        return (server.used() - before) / count


def keys_figures(binary, counts):
    figures, filled = [], 0
    with Server(binary) as server:
        empty = server.used()
        for count in counts:
            fill(server, range(filled, count))
            filled = count
            figures.append((server.used() - empty) / count)
    return figures


def members_figure(binary, kind, count):
    order = list(range(count))
    if kind == "random":
        random.Random(1).shuffle(order)
    if kind == "set":
        return grown(binary, lambda i: request("SADD", "s", "member:%013d" % i), count)
    return grown(binary, lambda i: request("ZADD", "z", order[i], "member:%013d" % order[i]), count)


def hashes_figure(binary, fields, count):
    names = ["f%07d" % field for field in range(fields)]

    def make(i):
        rng = random.Random(i)
        return request("HSET", "record:%09d" % i, *[word for name in names for word in (name, "%08x" % rng.getrandbits(32))])
    return grown(binary, make, count)


def pairs_of(options, rows, measure):
    """The rows with figures of both servers: (label, ours, peer)."""
    out = []
    for label, *what in rows:
        out.append((label, *(measure(binary, *what) for binary in (options.ours, options.peer))))
        print(f"  {label}: {out[-1][1]:.1f}, {PEER_NAME} {out[-1][2]:.1f}", flush=True)
    return out


def scale_of(rows):
    """Bars of one scale; the longest leaves space for its figure."""
    most = max(max(row[1:]) for row in rows)
    return lambda figure, _: figure / most * 0.78


def short(count):
    return f"{count // 1000000} M" if count >= 1000000 else f"{count // 1000} k" if count >= 1000 else str(count)


def members_rows(most):
    sizes = [size for size in (1000, 10000, 100000) if size < most] + [most]
    names = (("in order", "in order"), ("random", "at random"), ("set", "set"))
    return [(f"{name}, {short(size)}", kind, size) for kind, name in names for size in sizes]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--folder", default=os.path.join(ROOT, "docs/memory"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)

    def write(name, picture):
        with open(os.path.join(options.folder, name), "w", encoding="utf-8") as file:
            file.write(picture)

    print("bytes per key")
    counts = [int(KEYS_MOST * options.scale * part / 16) for part in range(2, 17)]
    ours, peer = (keys_figures(binary, counts) for binary in (options.ours, options.peer))
    for row in zip(counts, ours, peer):
        print("  {:,}: {:.1f}, {} {:.1f}".format(*row[:2], PEER_NAME, row[2]))
    write("keys.svg", lines_plot("Bytes per key: keys of 16 bytes, values of 16", PEER_NAME, counts, ours, peer))
    print("bytes per member")
    rows = pairs_of(options, members_rows(int(MEMBERS_MOST * options.scale)), members_figure)
    write("members.svg", bars_plot("Bytes per member of 20 bytes: sorted sets and sets", PEER_NAME, rows, scale_of(rows), "B"))
    print("bytes per hash")
    rows = pairs_of(options, [(f"{fields} fields", fields, int(HASHES * options.scale)) for fields in (2, 4, 6, 10, 20, 50)],
                    hashes_figure)
    write("hashes.svg", bars_plot("Bytes per hash: names that all hashes share", PEER_NAME, rows, scale_of(rows), "B"))


if __name__ == "__main__":
    main()

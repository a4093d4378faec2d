#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What compression of values costs those who read, write, save and load, beside the same server without it.

    tests/bench/values_cost.py SERVER [--keys N] [--rate N] [--only PART,...]

SERVER runs on free ports without persistence, with `value-compression no` and with `idle`; both hold the same sessions of values.py. Parts:

  training  seconds until the values are compressed, time of the trainer's thread, of sampling and of compressing, and the peak of the
            resident set above what it was before
  mix       open loop at --rate on both servers alternately (load.c): GETs of the hottest tenth of the keys; beside them a tenth of that rate
            each of GETs of any key and of SETs; p50, p99, p99.9 of both kinds of GETs; then throughput of the hot GETs at pipeline 16
  reads     all values are read once, in order, when all are compressed: the peak of used_memory above what it was before, without and with a
            maxmemory of 1 % more, and microseconds of CPU per GET
  save      BGSAVE by a fork and without, and DEBUG RELOAD: seconds, and MB of the file
  fork      a tenth of the keys is written while a child of snapshot-mode fork lives: values compressed meanwhile (none), MB that were copied
  lfu       allkeys-lfu: after 240 s in which a tenth of the keys is read all the time, compressed values among those and among the others

The servers share processor 0, the load has processor 1. Needs Python 3.9 and build/release/tests/bench/load."""
import argparse
import os
import statistics
import subprocess
import time

from keyspace import Server, cpu_us, request
from values import values
from values_memory import PIPELINE, info

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(HERE, "../../build/release/tests/bench/load")
DIFFERENT = 100000
KEY = "sess:%012d"
WAIT_S = 600


def start(binary, mode, *extra):
    server = Server(binary, extra=("--value-compression", mode, "--value-compression-cpu", "50", "--value-compression-idle-seconds", "1", *extra))
    os.sched_setaffinity(server.process.pid, {0})
    return server


def fill(server, keys):
    stored = [value.encode() for value in values("sessions", min(keys, DIFFERENT))]
    for at in range(0, keys, PIPELINE):
        server.pass_over(b"".join(request("SET", KEY % n, stored[n % len(stored)]) for n in range(at, min(at + PIPELINE, keys))))


def number(server, name):
    return float(info(server)[name])


def resident_mb(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


def settle(server, keys):
    """Waits until the values are compressed; returns seconds and the peak of the resident set in MB."""
    begin, peak = time.monotonic(), 0.0
    while number(server, "compressed_values") < keys * 0.999:
        peak = max(peak, resident_mb(server))
        if time.monotonic() > begin + WAIT_S:
            raise RuntimeError(f"{number(server, 'compressed_values'):.0f} values are compressed")
        time.sleep(0.1)
    return time.monotonic() - begin, peak


def training(options):
    with start(options.server, "no") as server:
        fill(server, options.keys)
        before = resident_mb(server)
        server.ask("CONFIG", "SET", "value-compression", "idle")
        seconds, peak = settle(server, options.keys)
        fields = info(server)
        print(f"training: {seconds:.1f} s until {options.keys} values are compressed; thread {fields['value_dictionary_training_milliseconds']} ms, "
              f"sampling {fields['value_dictionary_sampling_milliseconds']} ms, compressing {fields['values_compress_cpu_milliseconds']} ms; "
              f"resident {before:.0f} MB, peak {peak - before:+.0f} MB, then {resident_mb(server) - before:+.0f} MB", flush=True)


def load(ports, text, keys, *arguments):
    return subprocess.Popen([LOAD, "-r", str(keys), *map(str, arguments), ",".join(map(str, ports)), text], stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {1}))


def mix(options):
    keys, hot = options.keys, options.keys // 10
    with start(options.server, "no") as plain, start(options.server, "idle", "--value-compression-idle-seconds", "10") as packed:
        for server in (plain, packed):
            fill(server, keys)
        settle(packed, keys)
        packed.ask("CONFIG", "SET", "value-compression-cpu", "5")
        ports, seconds = (plain.port, packed.port), 120
        # As long as the hot load: the numbers of requests say so.
        beside = options.rate // 10
        cold = load(ports, "GET sess:%r", keys, "-R", beside, "-S", 40, "-K", "-W", "-n", beside * seconds // 2)
        sets = load(ports, "SET sess:%r %b", keys, "-R", beside, "-S", 40, "-K", "-W", "-n", beside * seconds // 2)
        warm = load(ports, "GET sess:%r", hot, "-R", options.rate, "-S", 40, "-K", "-W", "-n", options.rate * seconds // 2)
        for name, process in (("hot GET", warm), ("any GET", cold)):
            lines = process.communicate()[0].strip().split("\n")
            for mode, line in zip(("no", "idle"), lines):
                row = line.split("|")
                print(f"mix: {name} {mode:5} p50 {row[1]} us, p99 {row[3]}, p99.9 {row[4]}, most {row[5]}")
        sets.communicate()
        fields = info(packed)
        print(f"mix: {fields['compressed_values']} values compressed afterwards, {fields['values_stored_plain_again']} were stored plain again")
        count = 1000000
        rates, costs = ([], []), ([], [])
        for _ in range(7):
            for i, server in enumerate((plain, packed)):
                before = cpu_us(server)
                rates[i].append(float(load([server.port], "GET sess:%r", hot, "-P", 16, "-n", count).communicate()[0].split("|")[0]))
                costs[i].append((cpu_us(server) - before) / count)
        for mode, rate, cost in zip(("no", "idle"), rates, costs):
            print(f"mix: hot GET, pipeline 16, {mode:5} {statistics.median(rate):.0f}/s ({min(rate):.0f} to {max(rate):.0f}), "
                  f"{statistics.median(cost):.3f} us of CPU ({min(cost):.3f} to {max(cost):.3f})", flush=True)


def read_all(server, keys):
    """Returns the peak of used_memory above what it was, and CPU microseconds per GET."""
    before, peak, cpu = number(server, "used_memory"), 0.0, cpu_us(server)
    for at in range(0, keys, PIPELINE):
        server.pass_over(b"".join(request("GET", KEY % n) for n in range(at, min(at + PIPELINE, keys))))
        if at % (PIPELINE * 50) == 0:
            peak = max(peak, number(server, "used_memory"))
    return (max(peak, number(server, "used_memory")) - before) / 2**20, (cpu_us(server) - cpu) / keys


def reads(options):
    for mode in ("no", "idle"):
        with start(options.server, mode) as server:
            fill(server, options.keys)
            if mode == "idle":
                settle(server, options.keys)
                time.sleep(2)
            used = number(server, "used_memory") / 2**20
            for share in (0, 1.01):
                limit = str(int(number(server, "used_memory") * share))
                server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", limit)
                peak, us = read_all(server, options.keys)
                print(f"reads: {mode:5} maxmemory {limit:>10}: {used:.0f} MB used, peak {peak:+.2f} MB, {us:.2f} us per GET, "
                      f"{info(server)['evicted_keys']} keys evicted, {info(server)['compressed_values']} values compressed", flush=True)


def save(options):
    for mode in ("no", "idle"):
        with start(options.server, mode) as server:
            fill(server, options.keys)
            if mode == "idle":
                settle(server, options.keys)
            for way in ("fork", "inline"):
                server.ask("CONFIG", "SET", "snapshot-mode", way)
                begin = time.monotonic()
                server.ask("BGSAVE")
                while info(server)["rdb_bgsave_in_progress"] != "0":
                    time.sleep(0.01)
                seconds = time.monotonic() - begin
                assert info(server)["rdb_last_bgsave_status"] == "ok"
                size = os.path.getsize(os.path.join(server.dir, "dump.rdb")) / 2**20
                print(f"save: {mode:5} {way:7} {seconds:.2f} s, {size:.0f} MB", flush=True)
            begin = time.monotonic()
            server.ask("DEBUG", "RELOAD", "NOSAVE")
            print(f"save: {mode:5} load    {time.monotonic() - begin:.2f} s", flush=True)


def fork(options):
    for mode in ("no", "idle"):
        with start(options.server, mode, "--snapshot-mode", "fork", "--rdb-key-save-delay", "10") as server:
            fill(server, options.keys)
            if mode == "idle":
                settle(server, options.keys)
                fill(server, options.keys // 10)
            before = number(server, "values_compressed")
            server.ask("BGSAVE")
            time.sleep(2)
            fill(server, options.keys // 10)
            time.sleep(2)
            assert info(server)["rdb_bgsave_in_progress"] == "1"
            made = number(server, "values_compressed") - before
            server.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
            while info(server)["rdb_bgsave_in_progress"] != "0":
                time.sleep(0.05)
            print(f"fork: {mode:5} {made:.0f} values compressed while the child lived, {number(server, 'rdb_last_cow_size') / 2**20:.1f} MB copied", flush=True)


def lfu(options):
    hot = options.keys // 10
    with start(options.server, "idle", "--maxmemory-policy", "allkeys-lfu") as server:
        fill(server, options.keys)
        end = time.monotonic() + 240
        while time.monotonic() < end:
            for at in range(0, hot, PIPELINE):
                server.pass_over(b"".join(request("GET", KEY % n) for n in range(at, min(at + PIPELINE, hot))))
            time.sleep(1)
        found = [int(server.ask("DEBUG", "COMPRESSED", KEY % n)) > 0 for n in range(0, options.keys, 97)]
        at = hot // 97 + 1
        print(f"lfu: compressed {sum(found[:at])} of {at} keys that are read, {sum(found[at:])} of {len(found) - at} others", flush=True)


PARTS = {"training": training, "mix": mix, "reads": reads, "save": save, "fork": fork, "lfu": lfu}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    options.server = os.path.abspath(options.server)
    for name in options.only.split(","):
        PARTS[name](options)


if __name__ == "__main__":
    main()

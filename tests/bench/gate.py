#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the costs of requests and keys with budgets.txt and with an older state of the source.

    tests/bench/gate.py budgets [GATE]      instructions a request and bytes a key of the program GATE
                                            (build/release/tests/bench/gate) against budgets.txt
    tests/bench/gate.py lower [GATE]        lowers in budgets.txt what is cheaper now
    tests/bench/gate.py compare [REF]       the present source against REF, built beside each other: instructions,
                                            bytes, and CPU of the servers in alternating rounds

`make bench-gate` runs budgets and compare, `make test` the first, which gives the same every time: instructions are counted by
valgrind over fixed work (gate.c), whose clocks stand still. A figure fails above its limit by 2 % (instructions) or
0.5 B (bytes) and 0.5 % of that, and is reported as OVER within the last 0.5 %. A row without a budget fails, and so does a budget without a row. The budgets are for the compiler that
budgets.txt names: with another one the instructions are not judged, which is a failure where CI is set.

REF is by default where this branch left origin/main or, on it, the commit before. With the CPU of a server what counts
is the median of the rounds; it fails when it is over REF's by 15 %, and by more than REF's own rounds differ."""
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from ports import reserve_port  # noqa: E402

BUDGETS = "tests/bench/budgets.txt"
ROOM = {"instructions": lambda limit: limit * 1.02, "bytes": lambda limit: limit + 0.5}
# What exceeds that by less than this factor is reported and does not fail: other versions of compiler and libraries
# make as much difference.
NEARLY = 1.005
# The choice of libc's memory functions and the return of pages by the allocator must not depend on
# machine or time.
QUIET = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-ERMS",
         "MALLOC_CONF": "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1"}
# name, pipeline, request, requests; the common keys are key:000000000000 to 99999.
CPU_ROWS = (("PING", 16, "PING", 600000), ("GET", 1, "GET key:%r", 60000), ("GET", 16, "GET key:%r", 600000),
            ("GET", 100, "GET key:%r", 2000000), ("SET", 1, "SET key:%r %a", 60000),
            ("SET", 16, "SET key:%r %a", 600000), ("SET", 100, "SET key:%r %a", 2000000),
            ("INCR", 16, "INCR counter:%r", 600000), ("HSET", 16, "HSET hash:%r field %a", 300000),
            ("ZADD", 16, "ZADD zset %r member:%r", 300000), ("LPUSH", 16, "LPUSH list %a", 300000))
ROUNDS, CPU_KEYS, BAND_MIN, CPU_MAX = 5, 100000, 0.05, 0.15


class Report:
    """Prints lines for readers, and counts for the last line."""

    def __init__(self):
        self.passed = self.failed = 0

    def tolerate(self, text):
        self.passed += 1
        print(f"OVER    {text}", flush=True)

    def judge(self, good, text):
        if good:
            self.passed += 1
            print(f"ok      {text}", flush=True)
        else:
            self.failed += 1
            print(f"FAILED  {text}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


# ---- budgets ----

def parse_budgets(text):
    """The compiler named in the file, and {name: (limit, unit)}. Raises ValueError with the reason."""
    compiler, rows = "", {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("compiler:"):
            compiler = line.split(":", 1)[1].strip()
            continue
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3:
            raise ValueError(f"line {number}: not of the form name | limit | unit")
        name, limit, unit = parts
        if unit not in ROOM:
            raise ValueError(f"line {number}: unit {unit!r}")
        if name in rows:
            raise ValueError(f"line {number}: {name!r} is there twice")
        rows[name] = (float(limit), unit)
    if not compiler:
        raise ValueError("no compiler named")
    return compiler, rows


def judge_budgets(report, measured, rows):
    """`measured` and `rows` by name; units that were not measured at all are left out by the caller."""
    for name, (value, unit) in measured.items():
        if name not in rows:
            report.judge(False, f"{name}: {value:.1f} {unit}, and no budget for it in {BUDGETS}")
            continue
        limit, of_unit = rows[name]
        room = ROOM[unit](limit)
        note = f"; {BUDGETS} may be lowered" if value < limit * 0.97 - 0.5 else ""
        text = f"{name:28}{value:10.1f} of {limit:.1f} {unit}{note}"
        if unit == of_unit and room < value <= room * NEARLY:
            report.tolerate(f"{text}; {value / room - 1:.2%} above what is allowed")
        else:
            report.judge(unit == of_unit and value <= room, text)
    for name in rows:
        if name not in measured:
            report.judge(False, f"{name}: a budget, and no such row")


def git(*words, cwd=ROOT, check=True):
    done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"gate: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip() if done.returncode == 0 else None


# ---- counting ----

def totals(path):
    for line in open(path, errors="replace"):
        if line.startswith("totals:"):
            return int(line.split()[1])
    sys.exit(f"gate: no totals in {path}")


def count_instructions(program):
    """{row: instructions a request}"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=gateTurn",
             f"--callgrind-out-file={folder}/%p", program, "requests"],
            env={**os.environ, **QUIET}, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"gate: {program} requests: ended with {done.returncode}")
        rows = {}
        for line in done.stdout.splitlines():
            name, pipeline, requests, pid = line.split("|")
            rows[f"{name}, P{pipeline}"] = totals(f"{folder}/{pid}") / int(requests)
        return rows


def count_bytes(program):
    done = subprocess.run([program, "bytes"], env={**os.environ, **QUIET}, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"gate: {program} bytes: ended with {done.returncode}")
    return {name: float(value) for name, value in (line.split("|") for line in done.stdout.splitlines())}


def compiler_of(program):
    """The compiler that built the program: "gcc 12"."""
    words = open(os.path.join(os.path.dirname(program), "../../flags")).read().split()
    return f"{words[0]} {words[1].split('.')[0]}"


def lowered(text, measured):
    """The budget file with every limit above the measured value lowered to it."""
    lines = []
    for line in text.splitlines(keepends=True):
        parts = line.split("|")
        name = parts[0].strip()
        if len(parts) == 3 and not line.startswith("#") and name in measured:
            value = round(measured[name][0], 1)
            if value < float(parts[1]):
                parts[1] = f"{value:{len(parts[1]) - 1}.1f} "
        lines.append("|".join(parts))
    return "".join(lines)


def lower(program):
    path = os.path.join(ROOT, BUDGETS)
    text = open(path).read()
    if compiler_of(program) != parse_budgets(text)[0]:
        sys.exit(f"gate: the budgets are for another compiler than {compiler_of(program)}")
    measured = {name: (value, "bytes") for name, value in count_bytes(program).items()}
    measured |= {name: (value, "instructions") for name, value in count_instructions(program).items()}
    with open(path, "w") as file:
        file.write(lowered(text, measured))
    return 0


def budgets(program):
    report = Report()
    compiler, rows = parse_budgets(open(os.path.join(ROOT, BUDGETS)).read())
    measured = {name: (value, "bytes") for name, value in count_bytes(program).items()}
    if compiler_of(program) == compiler:
        measured |= {name: (value, "instructions") for name, value in count_instructions(program).items()}
    else:
        print(f"instructions are not judged: the budgets are for {compiler}, this is {compiler_of(program)}")
        rows = {name: row for name, row in rows.items() if row[1] != "instructions"}
        if os.environ.get("CI"):
            report.judge(False, "a CI must judge the instructions: new compiler, new budgets")
    judge_budgets(report, measured, rows)
    return report.end()


# ---- comparing ----

def default_base():
    head, left = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/main", check=False)
    return left if left and left != head else git("rev-parse", "HEAD~1")


def make(folder, *goals):
    done = subprocess.run(["make", "-s", *goals], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:])
    return done.returncode == 0


def build_base(ref):
    """Builds REF under build/base, with the current gate.c if that compiles there."""
    base = os.path.join(ROOT, "build/base")
    git("worktree", "prune")
    if not os.path.exists(base):
        git("worktree", "add", "--force", "--detach", base, ref)
    git("checkout", "--force", "--detach", ref, cwd=base)
    if not make(base, "all"):
        sys.exit(f"gate: {ref} cannot be built")
    has_gate = os.path.exists(os.path.join(base, "tests/bench/gate.c"))
    if has_gate:
        for name in ("gate.c", "request_text.h"):
            shutil.copy(os.path.join(HERE, name), os.path.join(base, "tests/bench", name))
        if not make(base, "gate"):
            git("checkout", "--force", ref, cwd=base)
            has_gate = make(base, "gate")
    return base, has_gate


class Server:
    def __init__(self, binary):
        self.port, self.guard = reserve_port()  # for as long as this object lives
        self.dir = tempfile.mkdtemp()
        self.process = subprocess.Popen([binary, "--port", str(self.port), "--save", "", "--loglevel", "warning"],
                                        cwd=self.dir, stdout=subprocess.DEVNULL)
        deadline = time.time() + 30
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            if time.time() > deadline:
                sys.exit(f"gate: {binary} does not answer")
            time.sleep(0.02)

    def cpu_ns(self):
        folder = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{folder}/{task}/schedstat").read().split()[0]) for task in os.listdir(folder))

    def load(self, pipeline, request, count):
        """CPU microseconds a request."""
        before = self.cpu_ns()
        subprocess.run([os.path.join(ROOT, "build/release/tests/bench/load"), "-P", str(pipeline), "-n", str(count),
                        "-r", str(CPU_KEYS), str(self.port), request], check=True, stdout=subprocess.DEVNULL)
        return (self.cpu_ns() - before) / count / 1000

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def judge_cpu(base, head):
    """Rounds of both -> (good, ratio of medians, band)."""
    middle = statistics.median(base)
    band = max(BAND_MIN, (max(base) - min(base)) / middle)
    ratio = statistics.median(head) / middle - 1
    return ratio <= max(CPU_MAX, band), ratio, band


def compare_cpu(report, base, head):
    servers = [Server(base), Server(head)]
    try:
        for s in servers:
            s.load(100, "SET key:%n %a", CPU_KEYS)
        for name, pipeline, request, count in CPU_ROWS:
            rounds = ([], [])
            for turn in range(ROUNDS):
                for who in (0, 1) if turn % 2 else (1, 0):
                    rounds[who].append(servers[who].load(pipeline, request, count))
            good, ratio, band = judge_cpu(*rounds)
            word = "within" if abs(ratio) <= band else "outside"
            if band > CPU_MAX:
                word = "too noisy to say more: inside" if good else "outside even of"
            report.judge(good, f"{name + ', P' + str(pipeline):28}{statistics.median(rounds[0]):8.3f} -> "
                               f"{statistics.median(rounds[1]):8.3f} us of CPU, {ratio:+.1%}, {word} the base's band of {band:.1%}")
    finally:
        for s in servers:
            s.stop()


def compare_counts(report, unit, base, head):
    for name, value in head.items():
        if name not in base:
            report.judge(False, f"{name}: {value:.1f} {unit}, and no such row in the base")
            continue
        good = value <= ROOM[unit](base[name])
        report.judge(good, f"{name:28}{base[name]:10.1f} -> {value:10.1f} {unit}, {value / base[name] - 1:+.1%}")


def compare(ref):
    report = Report()
    ref = ref or default_base()
    print(f"base: {git('log', '-1', '--format=%h %s', ref)}", flush=True)
    base, has_gate = build_base(ref)
    if not make(ROOT, "all", "gate"):
        sys.exit("gate: the present source cannot be built")
    program = "build/release/tests/bench/gate"
    if has_gate:
        old, new = os.path.join(base, program), os.path.join(ROOT, program)
        compare_counts(report, "bytes", count_bytes(old), count_bytes(new))
        compare_counts(report, "instructions", count_instructions(old), count_instructions(new))
    else:
        report.judge(False, "no baseline for instructions and bytes: the base has no tests/bench/gate.c")
    compare_cpu(report, os.path.join(base, "src/valkey-server"), os.path.join(ROOT, "src/valkey-server"))
    return report.end()


def main(words):
    if words[:1] in (["budgets"], ["lower"]) and len(words) <= 2:
        program = os.path.abspath(words[1] if words[1:] else os.path.join(ROOT, "build/release/tests/bench/gate"))
        return budgets(program) if words[0] == "budgets" else lower(program)
    if words[:1] == ["compare"] and len(words) <= 2:
        return compare(words[1] if words[1:] else "")
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

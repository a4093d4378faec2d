#!/usr/bin/env python3
"""What a large keyspace costs two servers, side by side, where averages hide it.

    tests/bench/keyspace.py OURS PEER [--only NAME,...] [--scale F] [--cluster]

OURS and PEER are server binaries; each workload starts both, one after the other, on free ports without
persistence, and prints CPU seconds of the server process, used_memory and RSS. Workloads:

  blog        random SETs of valkey-benchmark (beside PEER): -n 10000000 -r 10000000 -d 16
  flushall    memory before a fill of 5 M keys and after FLUSHALL
  delete      a random 90 % of 5 M keys deleted: RSS over used_memory, both without what an empty server has,
              at once and until it settles (60 s)
  correlated  5 M keys inserted in the order in which another server with the same hash seed scans them,
              beside a random order
  scandel     SCAN and DEL of 5 M keys
  scancopy    SCAN of one server's 5 M keys, each page set in a second one with the same hash seed
  child       30 % of 3 M keys overwritten, 10 % deleted, 10 % new while a child lives (ours: DEBUG CHILD;
              others: BGSAVE, which has to be alive still at the end)
  latency     10 M inserts by one client, pipeline 1: percentiles of the round trip (with --scale 0.1: 1 M)

--scale multiplies all counts. Needs Python 3.9, nothing else."""
import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SEED = "0123456789abcdef"
PAGE = 1000


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server process and one connection to it."""

    def __init__(self, binary, cluster=False, extra=()):
        self.port = free_port()
        self.dir = tempfile.mkdtemp()
        arguments = [binary, "--port", str(self.port), "--save", "", "--dir", self.dir,
                     "--enable-debug-command", "yes", "--loglevel", "warning", *extra]
        if cluster:
            arguments += ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
                          "--cluster-announce-ip", "127.0.0.1"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, cwd=self.dir)
        deadline = time.time() + 30
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                if time.time() > deadline:
                    raise
                time.sleep(0.02)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb", buffering=1 << 20)
        if cluster:
            self.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            while b"cluster_state:ok" not in self.ask("CLUSTER", "INFO"):
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def reply(self):
        line = self.reader.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self.reader.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest

    def ask(self, *words):
        self.socket.sendall(request(*words))
        return self.reply()

    def send(self, requests):
        """A pipeline, in helpings that no buffer minds; replies must be simple."""
        for at in range(0, len(requests), PAGE):
            page = requests[at:at + PAGE]
            self.socket.sendall(b"".join(page))
            for _ in page:
                if self.reader.readline()[:1] == b"-":
                    raise RuntimeError("refused")

    def scan(self):
        cursor = "0"
        while True:
            cursor, keys = self.ask("SCAN", cursor, "COUNT", str(PAGE))
            yield keys
            if cursor == b"0":
                return
            cursor = cursor.decode()

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def used(self):
        for line in self.ask("INFO", "memory").split(b"\r\n"):
            if line.startswith(b"used_memory:"):
                return int(line[12:])
        raise RuntimeError("no used_memory")

    def rss(self):
        for line in open(f"/proc/{self.process.pid}/smaps_rollup"):
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no RSS")


def request(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else word.encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


def set_request(number, value=b"v" * 16):
    return b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (number, len(value), value)


def set_key(key, value=b"v" * 16):
    return b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value)


def del_request(number):
    return b"*2\r\n$3\r\nDEL\r\n$16\r\nkey:%012d\r\n" % number


def fill(server, numbers, value=b"v" * 16):
    page = []
    for number in numbers:
        page.append(set_request(number, value))
        if len(page) == 20 * PAGE:
            server.send(page)
            page = []
    server.send(page)


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def blog(binary, options):
    n = int(10e6 * options.scale)
    bench = os.path.join(os.path.dirname(options.peer), "valkey-benchmark")
    with Server(binary, options.cluster) as s:
        start_used, start_rss = s.used(), s.rss()
        subprocess.run([bench, "-p", str(s.port), "-t", "set", "-n", str(n), "-r", str(n), "-d", "16",
                        "-P", "50", "-q"] + (["--cluster"] if options.cluster else []),
                       check=True, stdout=subprocess.DEVNULL)
        keys = int(s.ask("DBSIZE"))
        return (f"{keys} keys, {(s.used() - start_used) / keys:.1f} B a key (used_memory), "
                f"{(s.rss() - start_rss) / keys:.1f} B (RSS), {s.cpu():.1f} s CPU")


def flushall(binary, options):
    n = int(5e6 * options.scale)
    with Server(binary, options.cluster) as s:
        used, rss = s.used(), s.rss()
        fill(s, range(n))
        s.ask("FLUSHALL")
        time.sleep(2)
        return f"used_memory +{megabytes(s.used() - used)}, RSS +{megabytes(s.rss() - rss)} over the start"


def delete(binary, options):
    n = int(5e6 * options.scale)
    rng = random.Random(1)
    with Server(binary, options.cluster) as s:
        used, rss = s.used(), s.rss()
        fill(s, range(n))
        s.send([del_request(i) for i in range(n) if rng.random() < 0.9])
        ratios = []
        for wait_s in (0, 10, 20, 30):
            time.sleep(wait_s)
            ratios.append(f"{(s.rss() - rss) / (s.used() - used):.3f}")
        return f"RSS / used_memory at once, after 10, 30 and 60 s: {', '.join(ratios)}"


def correlated(binary, options):
    n = int(5e6 * options.scale)
    with Server(binary, extra=("--hash-seed", SEED)) as first:
        fill(first, range(n))
        keys = [key for page in first.scan() for key in page]
    out = []
    for name in ("scan order", "random order"):
        with Server(binary, extra=("--hash-seed", SEED)) as s:
            used, cpu = s.used(), s.cpu()
            for at in range(0, len(keys), 20 * PAGE):
                s.send([set_key(key) for key in keys[at:at + 20 * PAGE]])
            out.append(f"{name} {s.cpu() - cpu:.2f} s CPU, {(s.used() - used) / len(keys):.1f} B a key")
        random.Random(2).shuffle(keys)
    return "; ".join(out)


def scandel(binary, options):
    n = int(5e6 * options.scale)
    with Server(binary, options.cluster) as s:
        fill(s, range(n))
        cpu, used = s.cpu(), s.used()
        peak = used
        for page in s.scan():
            if page:
                s.ask("DEL", *page)
        left = int(s.ask("DBSIZE"))
        return f"{s.cpu() - cpu:.2f} s CPU, {left} keys left, {megabytes(s.used())} used of {megabytes(peak)}"


def scancopy(binary, options):
    n = int(5e6 * options.scale)
    with Server(binary, extra=("--hash-seed", SEED)) as s, Server(binary, extra=("--hash-seed", SEED)) as copy:
        fill(s, range(n))
        cpu, copy_cpu, copy_used = s.cpu(), copy.cpu(), copy.used()
        for page in s.scan():
            copy.send([set_key(key) for key in page])
        keys = int(copy.ask("DBSIZE"))
        return (f"scan {s.cpu() - cpu:.2f} s CPU, copy {copy.cpu() - copy_cpu:.2f} s CPU, {keys} keys, "
                f"{(copy.used() - copy_used) / keys:.1f} B a key")


def child(binary, options):
    n = int(3e6 * options.scale)
    rng = random.Random(3)
    with Server(binary, extra=("--rdb-key-save-delay", "100")) as s:
        fill(s, range(n))
        used, rss, cpu = s.used(), s.rss(), s.cpu()
        try:
            s.ask("DEBUG", "CHILD", "1000")
        except RuntimeError:
            s.ask("BGSAVE")
        changes = [set_request(rng.randrange(n), b"w" * 16) for _ in range(int(n * 0.3))]
        changes += [del_request(rng.randrange(n)) for _ in range(int(n * 0.1))]
        changes += [set_request(n + i) for i in range(int(n * 0.1))]
        rng.shuffle(changes)
        s.send(changes)
        children = subprocess.run(["pgrep", "-P", str(s.process.pid)], capture_output=True, text=True).stdout.split()
        if not children:
            return "the child ended too early"
        copied = 0
        for line in open(f"/proc/{s.process.pid}/smaps_rollup"):
            if line.startswith("Private_Dirty:"):
                copied = int(line.split()[1]) * 1024
        text = (f"{s.cpu() - cpu:.2f} s CPU for {len(changes)} changes, {megabytes(copied)} of the parent's own beside "
                f"the child, used_memory {megabytes(used)} -> {megabytes(s.used())}, RSS {megabytes(rss)} -> {megabytes(s.rss())}")
        os.kill(int(children[0]), signal.SIGKILL)
        return text


def latency(binary, options):
    n = int(10e6 * options.scale)
    times = []
    with Server(binary, options.cluster) as s:
        order = list(range(n))
        random.Random(4).shuffle(order)
        clock, send, receive = time.perf_counter_ns, s.socket.sendall, s.socket.recv
        for number in order:
            data = set_request(number)
            start = clock()
            send(data)
            receive(16)
            times.append(clock() - start)
    times.sort()
    return ", ".join(f"p{p:g} {times[min(n - 1, int(n * p / 100))] / 1000:.0f} us"
                     for p in (50, 99, 99.9, 99.99, 99.999, 100))


WORKLOADS = (blog, flushall, delete, correlated, scandel, scancopy, child, latency)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", type=os.path.abspath)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--only", default=",".join(w.__name__ for w in WORKLOADS))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    wanted = options.only.split(",")
    unknown = set(wanted) - {w.__name__ for w in WORKLOADS}
    if unknown:
        sys.exit(f"keyspace.py: no such workload: {', '.join(sorted(unknown))}")
    for workload in WORKLOADS:
        if workload.__name__ not in wanted:
            continue
        print(workload.__name__)
        for name, binary in (("ours", options.ours), ("peer", options.peer)):
            print(f"  {name}  {workload(binary, options)}", flush=True)


if __name__ == "__main__":
    main()

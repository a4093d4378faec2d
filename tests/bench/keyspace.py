#!/usr/bin/env python3
"""Compares costs of a large keyspace in two servers that averages do not show.

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
  expiry      1 M keys whose time is the same: CPU from then on, how long until all are gone, and the longest answer a
              client waited for that asks every ms
  fewttl      100 of 10 M keys with a time of 1 s: when they are gone, and the CPU of those 2 s
  victim      volatile-ttl among 1,000 of 10 M keys: CPU of a SET that evicts one, beside one that does not
  flushasync  FLUSHALL ASYNC of 10 M keys: its own answer, the longest one beside it, and memory afterwards
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
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import reserve_node_port, reserve_port  # noqa: E402

SEED = "0123456789abcdef"
PAGE = 1000
PING = b"*1\r\n$4\r\nPING\r\n"


class Server:
    """A server process and one connection to it. `prepare` gets its folder and port before it starts."""

    def __init__(self, binary, cluster=False, extra=(), prepare=None):
        # Guarded for as long as this object lives.
        self.port, self.guard = reserve_node_port() if cluster else reserve_port()
        self.dir = tempfile.mkdtemp()
        if prepare:
            prepare(self.dir, self.port)
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
        """Sends a pipeline in parts that fit all buffers; replies must be simple."""
        for at in range(0, len(requests), PAGE):
            page = requests[at:at + PAGE]
            self.socket.sendall(b"".join(page))
            for _ in page:
                if self.reader.readline()[:1] == b"-":
                    raise RuntimeError("refused")

    def pass_over(self, batch):
        """Sends encoded requests and discards their replies; a PING marks the end."""
        self.socket.sendall(batch + PING)
        tail = b""
        while not tail.endswith(b"+PONG\r\n"):
            some = self.socket.recv(1 << 20)
            if not some:
                raise RuntimeError("the server closed the connection")
            tail = tail[-16:] + some

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
        word = word if isinstance(word, bytes) else str(word).encode()
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


def cpu_us(server):
    """CPU time of all threads, with a finer resolution than cpu()."""
    folder = f"/proc/{server.process.pid}/task"
    return sum(int(open(f"{folder}/{thread}/schedstat").read().split()[0]) for thread in os.listdir(folder)) / 1000


class Probe(threading.Thread):
    """A client that sends a request every ms and records the longest wait."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.longest_s, self.over = 0, False
        self.start()

    def run(self):
        ping = request("PING")
        while not self.over:
            start = time.perf_counter()
            self.socket.sendall(ping)
            self.socket.recv(16)
            self.longest_s = max(self.longest_s, time.perf_counter() - start)
            time.sleep(0.001)

    def end(self):
        self.over = True
        self.join()
        return f"{self.longest_s * 1000:.1f} ms"


def expiry(binary, options):
    n = int(1e6 * options.scale)
    with Server(binary, options.cluster) as s:
        due = time.time() + 5 + n / 20000  # when the slower server is filled
        at = str(int(due * 1000)).encode()
        for first in range(0, n, 20 * PAGE):
            s.send([request("SET", b"key:%012d" % i, b"v" * 16, "PXAT", at)
                    for i in range(first, min(n, first + 20 * PAGE))])
        if time.time() > due:
            return "the machine is too slow"
        time.sleep(due - time.time())
        cpu, probe = s.cpu(), Probe(s)
        while int(s.ask("DBSIZE")):
            time.sleep(0.02)
        gone = time.time() - due
        return f"gone after {gone:.2f} s, {s.cpu() - cpu:.2f} s CPU, longest wait {probe.end()}"


def fewttl(binary, options):
    n = int(10e6 * options.scale)
    with Server(binary, options.cluster) as s:
        s.ask("DEBUG", "POPULATE", str(n))
        time.sleep(2)
        cpu, start = s.cpu(), time.time()
        s.send([request("SET", f"short:{i}", "v", "PX", "1000") for i in range(100)])
        gone = None
        while time.time() < start + 10 and (gone is None or time.time() < start + 3):
            time.sleep(0.05)
            if gone is None and int(s.ask("DBSIZE")) == n:
                gone = time.time() - start - 1
        used, took = s.cpu() - cpu, time.time() - start
        when = "not gone" if gone is None else f"gone {gone:.2f} s behind their time"
        return f"{when}, {100 * used / took:.2f} % CPU over {took:.1f} s"


def victim(binary, options):
    n = int(10e6 * options.scale)
    with Server(binary, options.cluster) as s:
        s.ask("DEBUG", "POPULATE", str(n))
        s.send([request("SET", f"volatile:{i:06d}", "v" * 64, "EX", str(1000 + i)) for i in range(1000)])
        s.ask("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")

        def sets(prefix, count):
            times = []
            for i in range(count):
                data = request("SET", f"{prefix}:{i:06d}", "v" * 64)
                start = cpu_us(s)
                s.socket.sendall(data)
                s.reply()
                times.append(cpu_us(s) - start)
            return sorted(times)[count // 2]
        plain = sets("plain", 500)
        s.ask("CONFIG", "SET", "maxmemory", str(s.used()))
        before = evicted(s)
        evicting = sets("evicting", 500)
        return f"{plain:.1f} us a SET, {evicting:.1f} us with {(evicted(s) - before) / 500:.2f} victims each"


def evicted(s):
    for line in s.ask("INFO", "stats").split(b"\r\n"):
        if line.startswith(b"evicted_keys:"):
            return int(line[13:])
    raise RuntimeError("no evicted_keys")


def flushasync(binary, options):
    n = int(10e6 * options.scale)
    with Server(binary, options.cluster) as s:
        used, rss = s.used(), s.rss()
        s.ask("DEBUG", "POPULATE", str(n))
        full = s.rss()
        probe = Probe(s)
        time.sleep(0.2)
        before, cpu = probe.longest_s, s.cpu()
        probe.longest_s = 0
        start = time.perf_counter()
        s.ask("FLUSHALL", "ASYNC")
        answer = time.perf_counter() - start
        time.sleep(10)
        return (f"answered after {answer * 1000:.1f} ms, longest wait of another {probe.end()} "
                f"({before * 1000:.1f} ms before), {s.cpu() - cpu:.2f} s CPU; 10 s later used_memory "
                f"+{megabytes(s.used() - used)}, RSS +{megabytes(s.rss() - rss)} of +{megabytes(full - rss)}")


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


WORKLOADS = (blog, flushall, delete, correlated, scandel, scancopy, child, expiry, fewttl, victim, flushasync, latency)


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

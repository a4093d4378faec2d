#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""replication-quorum in clusters of real processes, in network namespaces: what clients see is linearizable.

    quorum.py [--runs N] [--seconds N] [--members N] [--jobs N] [--seed N] [--quorum N] [--lease MS] [--[no-]files]
              [--disk] [--fsync WHEN] [--tls] [--sentinels N]

A shard of three or five members, and two more primaries that vote. Clients set, read and increment a few keys of the
shard, at the primary that they know last, while members are killed (SIGKILL) and started again, stopped (SIGSTOP) and
continued, separated from each other in one or both directions, get orders to fail over, and while the clock of the wall
jumps by up to an hour and clocks run faster or slower by up to one percent. Elections are those of the cluster. At the
end the members agree, and the history of each key must be linearizable (tests/durability/histories.py). With
--disk what is confirmed is on disk; with --tls the bus and replication are encrypted; with
--sentinels it is no cluster, and so many Sentinels, which are separated too, choose the primary. With
--quorum 0, or --lease 0 with clients that read from an old primary, it is not, at times: that shows what the check finds.

Each run has a seed, which is printed: --seed N --runs 1 repeats its choices."""
import argparse
import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import await_met, settle
from lab import Client, Failed, Lab, Node, ReplyError
from load import SLOTS, slot_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/durability"))
from histories import UNKNOWN, Op, counter_fault, register_fault  # noqa: E402

TIMEOUT_MS = 1000  # cluster-node-timeout
TLS_PORT = 7001
CLIENTS = 6
VOTERS = 3
PATIENCE_S = 3  # how long a client waits for a reply
LAST_SLOT = SLOTS // VOTERS - 1  # of the shard
KEYS = [k for k in (f"{kind}:{n}" for n in range(40) for kind in ("register", "register", "counter"))
        if slot_of(k) <= LAST_SLOT]
KEYS = sorted({k for k in KEYS if "register" in k})[:3] + sorted({k for k in KEYS if "counter" in k})[:2]
# What tells that a request was not executed.
REFUSALS = ("EXECABORT", "MOVED", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY", "TRYAGAIN")


class Clock:
    """The clocks of a node (clock.c)."""

    def __init__(self, path):
        with open(path, "wb") as file:
            file.write(struct.pack("=Qqqqq", 0, time.monotonic_ns(), 0, 0, 0))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.version, self.ppm, self.mono_ns, self.wall_ns = 0, 0, 0, 0
        self.since_ns = time.monotonic_ns()

    def set(self, ppm, jump_s):
        now_ns = time.monotonic_ns()
        gained_ns = (now_ns - self.since_ns) * self.ppm // 1000000
        self.mono_ns += gained_ns
        self.wall_ns += gained_ns + int(jump_s * 1e9)
        self.since_ns, self.ppm = now_ns, ppm
        self.map[0:8] = struct.pack("=Q", self.version + 1)
        self.map[8:40] = struct.pack("=qqqq", now_ns, ppm, self.mono_ns, self.wall_ns)
        self.version += 2
        self.map[0:8] = struct.pack("=Q", self.version)


def make_certificate(folder, clock):
    """Valid since yesterday: the clocks of nodes are moved back."""
    path = os.path.join(folder, "clock")
    Clock(path).set(0, -86400)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=proof",
                    "-keyout", f"{folder}/key", "-out", f"{folder}/certificate"], check=True, capture_output=True,
                   env=dict(os.environ, CLOCK_FILE=path, LD_PRELOAD=clock))


def tls_options(folder):
    """Clients use the plain port."""
    return ["--tls-port", str(TLS_PORT), "--tls-cluster", "yes", "--tls-replication", "yes", "--tls-key-file", f"{folder}/key",
            "--tls-cert-file", f"{folder}/certificate", "--tls-ca-cert-file", f"{folder}/certificate"]


class Load(threading.Thread):
    """A client. Some stay at a primary until it refuses them, others ask who is the primary from time to time."""

    def __init__(self, run, number, seed):
        super().__init__(daemon=True)
        self.run_, self.number = run, number
        self.rng = random.Random(seed)
        self.stays = number % 2 == 0
        self.history = {k: [] for k in KEYS}
        self.socket = None
        self.node = None
        self.written = 0
        self.acknowledged = self.unknown = self.refused = 0

    def run(self):
        while not self.run_.ended.is_set():
            if not self.stays and self.rng.random() < 0.02:
                self.leave(self.rng.choice(self.run_.members))
            if self.connect():
                self.request()
            time.sleep(self.rng.uniform(0, 0.02))

    def connect(self):
        if self.socket:
            return True
        self.node = self.node or self.rng.choice(self.run_.members)
        try:
            self.socket = socket.create_connection(self.node.address, 0.3)
            self.socket.settimeout(PATIENCE_S)
            self.file = self.socket.makefile("rb")
        except OSError:
            self.leave(None)
            time.sleep(0.02)
        return bool(self.socket)

    def leave(self, node):
        if self.socket:
            self.file.close()
            self.socket.close()
        self.socket, self.node = None, node

    def choose(self):
        """A command, the key, the kind of the operation, and the value that is written."""
        key = self.rng.choice(KEYS)
        if self.run_.only_reads or self.rng.random() < 0.5:
            return ("GET", key), key, "read", None
        if key.startswith("counter"):
            return ("INCR", key), key, "increment", None
        self.written += 1
        value = f"{self.number}:{self.written}"
        return ("SET", key, value), key, "write", value

    def request(self):
        steps = [self.choose() for _ in range(self.rng.choice((1, 1, 1, 4)))]
        data = b"".join(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)
                        for words, *_ in steps)
        begin = time.monotonic()
        lines = []
        try:
            self.socket.sendall(data)
            for words, *_ in steps:
                lines.append(self.read())
        except OSError:
            pass
        end = time.monotonic()
        lines += [None] * (len(steps) - len(lines))
        for (_, key, kind, value), line in zip(steps, lines):
            self.note(Op(kind, value, begin, end), key, line)
        last = next((line for line in lines if line is None or line[:1] == b"-"), b"")
        if last is None or last[:1] == b"-":
            self.redirect(last)

    def redirect(self, line):
        node = None
        if line and line.startswith(b"-MOVED"):
            ip = line.split()[2].rpartition(b":")[0].decode()
            node = next((n for n in self.run_.members if n.address[0] == ip), None)
        self.leave(node)

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection has ended")
        if line[:1] != b"$":
            return line[:-2]
        if line == b"$-1\r\n":
            return b"$"
        text = self.file.read(int(line[1:]) + 2)
        if len(text) != int(line[1:]) + 2:
            raise OSError("the connection has ended")
        return b"$" + text

    def note(self, op, key, line):
        if line and line[:1] == b"-" and line[1:].decode().startswith(REFUSALS):
            self.refused += 1
            return
        if line is None or line[:1] == b"-":
            self.unknown += 1
            op.end = UNKNOWN
            if op.kind != "read":
                self.history[key].append(op)
            return
        self.acknowledged += 1
        if op.kind == "read":
            op.value = line[1:-2].decode() if len(line) > 1 else None
        elif op.kind == "increment":
            op.value = int(line[1:])
        self.history[key].append(op)


def has_all(replica, primary):
    return (replica.get("master_link_status") == "up" and replica["master_replid"] == primary["master_replid"]
            and int(replica["slave_repl_offset"]) >= int(primary["master_repl_offset"]))


class Run:
    """A cluster, its clients, and what happens to it."""

    load_class = Load

    def __init__(self, args, seed):
        self.args, self.rng = args, random.Random(seed)
        self.members_wanted = args.members or self.rng.choice((3, 3, 5))
        self.quorum = self.members_wanted // 2 if args.quorum is None else args.quorum
        self.has_files = args.disk or (self.rng.random() >= 0.3 if args.files is None else args.files)
        self.ended = threading.Event()
        self.only_reads = False
        encrypted = tls_options(args.tls_folder) if args.tls else []
        self.lab = Lab(f"qu{os.getpid() % 10000}s{seed % 1000}"[:12], TIMEOUT_MS, True, [
            *encrypted, "--appendfsync", args.fsync, "--replication-quorum-durability", "disk" if args.disk else "memory",
            "--appendonly", "yes" if self.has_files else "no", "--replication-quorum", str(self.quorum),
            "--replication-quorum-timeout", "1000", "--replication-read-lease", str(args.lease), "--repl-diskless-load", "swapdb",
            "--cluster-manual-failover-timeout", "2000", "--cluster-allow-replica-migration", "no",
            "--dual-channel-replication-enabled", self.rng.choice(("yes", "no"))])
        self.members, self.clocks = [], []

    def add(self):
        path = os.path.join(self.lab.folder, f"clock{len(self.lab.nodes)}")
        self.clocks.append(Clock(path))
        return self.lab.add(self.args.server, {"CLOCK_FILE": path, "LD_PRELOAD": self.args.clock})

    def create(self):
        owners = [self.add() for _ in range(VOTERS)]
        replicas = [self.add() for _ in range(self.members_wanted - 1)]
        self.members = [owners[0], *replicas]
        for node in self.lab.nodes[1:]:
            port = TLS_PORT if self.args.tls else node.address[1]
            owners[0].call("CLUSTER", "MEET", node.address[0], port, port + 10000)
        for i, node in enumerate(owners):
            node.call("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // VOTERS, (i + 1) * SLOTS // VOTERS - 1)
        await_met(self.lab, 20)
        for node in replicas:
            node.call("CLUSTER", "REPLICATE", owners[0].id())
        self.settle(60)

    def settle(self, seconds):
        settle(self.lab, seconds)

    # ---- what happens: each begins something, and returns how to undo it

    def running(self):
        return [n for n in self.members if n.process and n not in self.away]

    def primary(self):
        """The member that says that it is the primary, of several any."""
        found = []
        for node in self.running():
            try:
                if node.call("ROLE", timeout=0.2)[0] == "master":
                    found.append(node)
            except (OSError, ReplyError):
                pass
        return self.rng.choice(found) if found else None

    def victim(self):
        primary = self.primary() if self.rng.random() < 0.5 else None
        return primary or self.rng.choice(self.running() or self.members)

    def victim_of_kill(self):
        return self.victim()

    def kill(self):
        node = self.victim_of_kill()
        if not node or not node.process or node in self.away:
            return None
        if not self.has_files and not self.are_complete():
            return None
        self.away.add(node)
        node.kill()
        return lambda: self.start(node)

    def are_complete(self):
        """All members have what the primary has: one of them may lose it. What the primary knows of the others is old
        for a moment when they are cut off or start again."""
        primary = self.primary()
        if self.away or not primary:
            return False
        wanted, *others = [n.fields("INFO", "replication", timeout=0.3)
                           for n in (primary, *(n for n in self.members if n is not primary))]
        return all(has_all(other, wanted) for other in others)

    def start(self, node):
        node.start()
        self.away.discard(node)

    def stop(self):
        node = self.victim()
        if not node.process or node in self.away:
            return None
        self.away.add(node)
        node.signal(signal.SIGSTOP)
        return lambda: self.resume(node)

    def resume(self, node):
        node.signal(signal.SIGCONT)
        self.away.discard(node)

    def isolate(self):
        """A member reaches no other node, or is reached by none, or both; clients reach it."""
        node = self.victim()
        ways = self.rng.choice((1, 2, 3, 3, 3))
        pairs = [(a, b) for other in self.lab.nodes if other is not node
                 for way, (a, b) in ((1, (node, other)), (2, (other, node))) if ways & way]
        return self.separate(pairs)

    def split(self):
        """Some pairs of nodes are separated."""
        pairs = [(a, b) for a in self.members for b in self.lab.nodes if a is not b and self.rng.random() < 0.3]
        return self.separate(pairs)

    def separate(self, pairs):
        for a, b in pairs:
            self.lab.separate(a, b)
        return lambda: [self.lab.separate(a, b, False) for a, b in pairs]

    def order(self):
        node = self.rng.choice(self.running() or self.members)
        words = ["FORCE"] if self.rng.random() < 0.3 else []
        node.call("CLUSTER", "FAILOVER", *words, timeout=0.3)
        return None

    def clock(self):
        jump_s = self.rng.choice((0, self.rng.uniform(-5, 5), self.rng.uniform(-3600, 3600)))
        self.rng.choice(self.clocks).set(self.rng.randint(-10000, 10000), jump_s)
        return None

    def begin(self):
        kind = self.rng.choice((self.kill, self.kill, self.stop, self.stop, self.isolate, self.isolate, self.split,
                                self.order, self.clock))
        if len(self.away) * 2 >= len(self.members) and kind in (self.kill, self.stop):
            return
        self.only_reads = self.rng.random() < 0.2
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
        try:
            undo = kind()
        except (OSError, ReplyError):
            return
        if undo:
            self.undos.append((time.monotonic() + self.rng.choice((0.2, 1, 5)) * self.rng.random(), undo))

    def end(self, all_of_them=False):
        for entry in list(self.undos):
            if entry in self.undos and (all_of_them or time.monotonic() >= entry[0]):
                self.undos.remove(entry)
                entry[1]()

    def disturb(self):
        end = time.monotonic() + self.args.seconds
        while time.monotonic() < end:
            if len(self.undos) < 3 and self.rng.random() < 0.5:
                self.begin()
            time.sleep(self.rng.uniform(0, 1.0))
            self.end()
        self.lab.heal()
        while self.undos:
            self.end(True)
        self.only_reads = False

    def execute(self):
        """Returns what is wrong."""
        self.away, self.undos, self.counts = set(), [], {}
        self.create()
        loads = self.loads = [self.load_class(self, i, self.rng.random()) for i in range(CLIENTS)]
        for load in loads:
            load.start()
        self.disturb()
        self.settle(120)
        time.sleep(1)
        self.ended.set()
        for load in loads:
            load.join(PATIENCE_S + 5)
        for key in KEYS:
            history = sorted((op for load in loads for op in load.history[key]), key=lambda op: op.begin)
            fault = (counter_fault if key.startswith("counter") else register_fault)(history)
            if fault:
                return f"{key}: {fault}"
        return ""

    def promotions(self):
        count = 0
        for node in self.members:
            with open(os.path.join(node.folder, "log"), errors="replace") as log:
                count += log.read().count("Failover election won")
        return count


class GroupLoad(Load):
    """A client of a group that Sentinels watch. Replicas reply to reads, too: each request is in a transaction that tells
    the role, and counts if that is the one of a primary."""

    def request(self):
        (words, key, kind, value), begin = self.choose(), time.monotonic()
        line = None
        try:
            client = Client(self.node.address, PATIENCE_S)
            try:
                role, reply = client.pipeline([("MULTI",), ("ROLE",), words, ("EXEC",)])[-1]
            finally:
                client.close()
            if role[0] != "master":
                line = b"-READONLY"
            elif isinstance(reply, ReplyError):
                line = b"-" + str(reply).encode()
            else:
                line = b":%d" % reply if isinstance(reply, int) else b"$" if reply is None else b"$%s\r\n" % reply.encode()
        except ReplyError as error:
            line = b"-" + str(error).encode()
        except OSError:
            pass
        self.note(Op(kind, value, begin, time.monotonic()), key, line)
        if line is None or line[:1] == b"-":
            self.leave(None)

    def connect(self):
        self.node = self.node or self.rng.choice(self.run_.members)
        return True


class GroupNode(Node):
    """A server or a Sentinel with a configuration file, which keeps whom it follows."""

    def __init__(self, lab, binary, environment, lines, is_sentinel):
        super().__init__(lab, len(lab.nodes), binary, environment)
        lab.nodes.append(self)
        self.mode = ["--sentinel"] if is_sentinel else []
        Path(self.folder, "conf").write_text("".join(f"{line}\n" for line in [f"port {self.address[1]}", f"dir {self.folder}", *lines]))
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.space, self.binary, os.path.join(self.folder, "conf"), *self.mode],
                stdout=log, stderr=log, cwd=self.folder, env=dict(os.environ, **self.environment))
        self.lab.wait(lambda: self.call("PING") == "PONG", 20, f"start of node {self.number}")


class GroupRun(Run):
    """Without a cluster: Sentinels choose the primary."""

    load_class = GroupLoad

    def __init__(self, args, seed):
        super().__init__(args, seed)
        self.has_files = True  # a member that restarts without its data would be a primary again before anybody notices
        words = self.lab.options
        self.lines = [f"{name[2:]} {value}" for name, value in zip(words[::2], words[1::2])
                      if not name.startswith(("--cluster", "--appendonly"))]
        self.lines += ["appendonly yes", 'save ""', "bind 0.0.0.0", "protected-mode no", "repl-diskless-sync-delay 0",
                       "repl-ping-replica-period 1", "repl-timeout 5"]
        self.sentinels = []

    def add_member(self, *lines):
        path = os.path.join(self.lab.folder, f"clock{len(self.lab.nodes)}")
        self.clocks.append(Clock(path))
        environment = {"CLOCK_FILE": path, "LD_PRELOAD": self.args.clock}
        return GroupNode(self.lab, self.args.server, environment, [*self.lines, *lines], False)

    def create(self):
        self.members = [self.add_member()]
        ip, port = self.members[0].address
        for _ in range(self.members_wanted - 1):
            self.members.append(self.add_member(f"replicaof {ip} {port}"))
        for _ in range(self.args.sentinels):
            node = GroupNode(self.lab, self.args.server, {}, ["bind 0.0.0.0", "protected-mode no"], True)
            node.call("SENTINEL", "MONITOR", "mym", ip, port, self.args.sentinels // 2 + 1)
            node.call("SENTINEL", "SET", "mym", "down-after-milliseconds", TIMEOUT_MS, "failover-timeout", 4000)
            node.call("SENTINEL", "DEBUG", "info-period", 500, "publish-period", 500)
            self.sentinels.append(node)
        self.settle(60)

    def settle(self, seconds):
        self.lab.wait(self.is_settled, seconds, "agreement")

    def is_settled(self):
        primaries = {tuple(s.call("SENTINEL", "GET-PRIMARY-ADDR-BY-NAME", "mym")) for s in self.sentinels}
        if len(primaries) != 1:
            return False
        ip = primaries.pop()[0]
        for s in self.sentinels:
            known = s.call("SENTINEL", "PRIMARY", "mym")
            known = dict(zip(known[::2], known[1::2]))
            if (known["num-other-sentinels"], known["num-slaves"]) != (str(self.args.sentinels - 1), str(len(self.members) - 1)):
                return False
        for node in self.members:
            role = node.call("ROLE")
            if node.address[0] == ip and role[0] != "master":
                return False
            if node.address[0] != ip and (role[0] != "slave" or (role[1], role[3]) != (ip, "connected")):
                return False
        return True

    def order(self):
        words = ["COORDINATED"] if self.rng.random() < 0.5 else []
        self.rng.choice(self.sentinels).call("SENTINEL", "FAILOVER", "mym", *words, timeout=0.3)
        return None

    def isolate(self):
        if self.rng.random() < 0.6:
            return super().isolate()
        node = self.rng.choice(self.sentinels)
        return self.separate([pair for other in self.lab.nodes if other is not node for pair in ((node, other), (other, node))])

    def promotions(self):
        return sum(Path(s.folder, "log").read_text(errors="replace").count("+promoted-slave") for s in self.sentinels)


def one(args, seed):
    """A line about a run."""
    run = (GroupRun if args.sentinels else Run)(args, seed)
    try:
        fault = run.execute()
        elections = run.promotions()
    except (Failed, OSError, ReplyError) as error:
        fault, elections = f"{type(error).__name__} {error}", 0
    run.ended.set()
    run.lab.close(keep=bool(fault))
    kind = "" if run.has_files else " without files"
    if fault:
        return f"FAILED  seed {seed}, {run.members_wanted} members{kind}: {fault}; {run.lab.folder}", {}
    totals = {what: sum(getattr(load, what) for load in run.loads) for what in ("acknowledged", "unknown", "refused")}
    totals["elections"] = elections
    shown = ", ".join(f"{n} {what}" for what, n in {**totals, **run.counts}.items())
    return f"ok  seed {seed}, {run.members_wanted} members{kind}: {shown}", totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", type=os.path.abspath, default=ROOT / "build/release/valkey-server")
    parser.add_argument("--clock", type=os.path.abspath, default=ROOT / "build/release/tests/proofs/clock.so")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--members", type=int, choices=(3, 5), help="default: either")
    parser.add_argument("--quorum", type=int, help="default: so many that they and the primary are a majority")
    parser.add_argument("--lease", type=int, default=TIMEOUT_MS, help="replication-read-lease; 0: old values are read at times")
    parser.add_argument("--files", action=argparse.BooleanOptionalAction, help="append only files; default: either. Without "
                        "them a member that is killed loses its data, and others are killed when it has them again")
    parser.add_argument("--disk", action="store_true", help="replication-quorum-durability disk")
    parser.add_argument("--fsync", choices=("always", "everysec"), default="everysec", help="appendfsync")
    parser.add_argument("--tls", action="store_true", help="tls-cluster and tls-replication")
    parser.add_argument("--sentinels", type=int, default=0, help="of a group that is no cluster")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    if os.geteuid() or not Path(args.clock).exists():
        sys.exit("quorum.py: needs root, for network namespaces, and clock.so (make quorum-proof builds it)")
    if args.sentinels and args.tls:
        sys.exit("quorum.py: Sentinels would need TLS for what they watch: tests/proofs/sentinel.py has it")
    args.server, args.clock = str(args.server), str(args.clock)
    failed, sums = 0, {}
    args.tls_folder = tempfile.mkdtemp(prefix="proof-tls-")
    if args.tls:
        make_certificate(args.tls_folder, args.clock)
    with ThreadPoolExecutor(args.jobs) as pool:
        for line, totals in pool.map(lambda seed: one(args, seed), range(args.seed, args.seed + args.runs)):
            print(line, flush=True)
            failed += line.startswith("FAILED")
            for what, n in totals.items():
                sums[what] = sums.get(what, 0) + n
    shutil.rmtree(args.tls_folder)
    print(", ".join(f"{n} {what}" for what, n in sums.items()))
    print(f"{args.runs - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()

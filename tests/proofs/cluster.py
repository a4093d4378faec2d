#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proofs about clusters of real processes: make cluster-proof ARGS="MODE [options]". See README.md.

    mixed        3 primaries and 3 replicas, of which some are --peer: random failures and orders
    partitions   nodes of ours, separated in random ways; writes are lost only for a node timeout
    quiet        a saturating load and long scripts mark no node as failed
    times        how long a failover takes, of killed, stopped and separated primaries
    idle         what an idle bus costs: bytes and CPU per node
    smoke        a short `mixed` of our nodes without namespaces, for `make test`

Each scenario has a seed, which is printed: --seed N --count 1 repeats its choices."""
import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import Client, Failed, Lab, ReplyError
from load import SLOTS, Load, slot_of

ROOT = Path(__file__).resolve().parents[2]
NODES_MAX = 8  # that scenarios add up to
SLACK_S = 1.0  # replication, and the time until a client is told


def await_met(lab, seconds):
    """Until each node knows all."""
    lab.wait(lambda: all(len(n.nodes()) == len(lab.nodes) for n in lab.nodes), seconds,
             "meeting")


def create(lab):
    """Three primaries and a replica of each."""
    nodes = lab.nodes
    for n in nodes[1:]:
        nodes[0].call("CLUSTER", "MEET", *n.address)
    for i in range(3):
        nodes[i].call("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1)
    await_met(lab, 20)
    for i in range(3, len(nodes)):
        nodes[i].call("CLUSTER", "REPLICATE", nodes[i % 3].id())
    settle(lab)


def create_with_cli(lab, cli):
    hosts = [f"{n.address[0]}:{n.address[1]}" for n in lab.nodes[:6]]
    result = subprocess.run([cli, "--cluster", "create", *hosts, "--cluster-replicas", "1",
                             "--cluster-yes"], capture_output=True, text=True, timeout=60)
    if result.returncode:
        raise Failed(f"create: {result.stdout}{result.stderr}")
    settle(lab)


def view(node):
    """Roles, primaries, epochs of primaries and slots, as a node sees them; None: it sees failures."""
    seen = {}
    for node_id, flags, primary, epoch, slots in node.nodes():
        if flags & {"fail", "fail?", "handshake", "noaddr"}:
            return None
        is_primary = "master" in flags
        seen[node_id] = (is_primary, primary, epoch if is_primary else 0, slots)
    return seen


def is_settled(lab):
    views = [view(n) for n in lab.nodes]
    if None in views or any(v != views[0] for v in views) or len(views[0]) != len(lab.nodes):
        return False
    epochs = [v[2] for v in views[0].values() if v[0]]
    if len(set(epochs)) != len(epochs):
        return False
    for n in lab.nodes:
        info = n.info()
        if info["cluster_state"] != "ok" or info["cluster_slots_assigned"] != str(SLOTS):
            return False
        if not n.is_primary() and "master_link_status:up" not in n.call("INFO", "replication"):
            return False
    return True


def settle(lab, seconds=60):
    lab.wait(lambda: is_settled(lab), seconds, "agreement")


def dataset(node):
    client = Client(node.address, 5)
    try:
        client.call("READONLY")
        keys = sorted(client.call("KEYS", "*"))
        return dict(zip(keys, client.pipeline([("GET", k) for k in keys]))) if keys else {}
    finally:
        client.close()


def check_datasets(lab):
    by_id = {n.id(): n for n in lab.nodes}
    for n in lab.nodes:
        primary = n.myself()[2]
        if primary != "-":
            lab.wait(lambda: dataset(n) == dataset(by_id[primary]), 10, "equal datasets")


# ---- what happens to a cluster: each ends when it is undone; returns the time when losses may end

def owners(lab):
    return [n for n in lab.nodes if n.process and n.is_primary() and n.myself()[4]]


def replicas_of(lab, primary):
    own = primary.id()
    return [n for n in lab.nodes if n is not primary and n.myself()[2] == own]


def await_replaced(lab, replica):
    lab.wait(replica.is_primary, 20 + 4 * lab.timeout_ms / 1000, f"election of node {replica.number}")


def kill_primary(lab, rng):
    primary = rng.choice([p for p in owners(lab) if replicas_of(lab, p)])
    replicas = replicas_of(lab, primary)
    primary.kill()
    lab.wait(lambda: any(r.is_primary() for r in replicas), 30, "election after kill")
    primary.start()


def stop_primary(lab, rng):
    primary = rng.choice([p for p in owners(lab) if replicas_of(lab, p)])
    replicas = replicas_of(lab, primary)
    primary.signal(signal.SIGSTOP)
    try:
        lab.wait(lambda: any(r.is_primary() for r in replicas), 30, "election after STOP")
    finally:
        primary.signal(signal.SIGCONT)


def order(lab, rng):
    primary = rng.choice([p for p in owners(lab) if replicas_of(lab, p)])
    replica = rng.choice(replicas_of(lab, primary))
    form = rng.choice([[], ["FORCE"], ["TAKEOVER"]])
    replica.call("CLUSTER", "FAILOVER", *form)
    lab.wait(replica.is_primary, 20, f"failover {form}")


def restart_replica(lab, rng):
    node = rng.choice([n for n in lab.nodes if not n.is_primary()])
    node.kill()
    time.sleep(rng.random() * 2 * lab.timeout_ms / 1000)
    node.start()


def meet_all(lab):
    for n in lab.nodes[1:]:
        lab.nodes[0].call("CLUSTER", "MEET", *n.address)


def move_all(lab, rng):
    for n in lab.nodes:
        try:
            n.call("SHUTDOWN", "SAVE", timeout=5)
        except OSError:
            pass
        n.process.wait(20)
    for n in lab.nodes:
        n.move()
        n.start()
    meet_all(lab)


def forget(lab, rng):
    node = rng.choice([n for n in lab.nodes if not n.is_primary()])
    own, primary = node.id(), node.myself()[2]
    hard = rng.random() < 0.5
    for n in lab.nodes:
        if n is not node:
            try:
                n.call("CLUSTER", "FORGET", own)
            except ReplyError as error:  # another one has told it already
                if "Unknown node" not in str(error):
                    raise
    node.call("CLUSTER", "RESET", *(["HARD"] if hard else []))
    lab.wait(lambda: all(len(n.nodes()) == len(lab.nodes) - 1 for n in lab.nodes if n is not node),
             20, "FORGET")
    if not hard:  # the id is refused for a minute
        node.call("CLUSTER", "RESET", "HARD")
    lab.nodes[0 if node.number else 1].call("CLUSTER", "MEET", *node.address)
    await_met(lab, 30)
    node.call("CLUSTER", "REPLICATE", primary)


def add(lab, rng):
    """A new replica; a large cluster gets a failover instead."""
    if len(lab.nodes) >= NODES_MAX:
        order(lab, rng)
        return
    primary = rng.choice(owners(lab))
    node = lab.add(rng.choice(lab.binaries))
    primary.call("CLUSTER", "MEET", *node.address)
    await_met(lab, 30)
    node.call("CLUSTER", "REPLICATE", primary.id())


def partition(lab, rng):
    """Some nodes are separated from the others, in one or both directions, or but for a bridge."""
    side = rng.sample(lab.nodes, rng.randrange(1, 4))
    rest = [n for n in lab.nodes if n not in side]
    bridge = rng.choice(rest) if rng.random() < 0.3 else None
    one_way = rng.random() < 0.3
    for a in side:
        for b in rest:
            if b is not bridge:
                lab.separate(a, b)
                if not one_way:
                    lab.separate(b, a)
    time.sleep(lab.timeout_ms / 1000 * rng.uniform(0.3, 4))
    lab.heal()


# ---- modes

def losses(loads, windows, timeout_ms):
    """Numbers of lost writes: all, and those that no window explains."""
    lost = [when for load in loads for when, _ in load.lost]
    stray = [w for w in lost
             if not any(begin - SLACK_S <= w <= end + SLACK_S for begin, end in windows)]
    return len(lost), len(stray)


def scenario(args, seed, actions, binaries, options):
    rng = random.Random(seed)
    lab = Lab(f"pf{os.getpid() % 10000}s{seed % 1000}"[:12], args.timeout, args.namespaces)
    lab.binaries = binaries
    loads, windows = [], []
    done = []
    try:
        chosen = [rng.choice(binaries) for _ in range(6)]
        for binary in chosen:
            lab.add(binary)
        if options.get("cli"):
            create_with_cli(lab, rng.choice(options["cli"]))
        else:
            create(lab)
        loads = [Load(lab, i, wait=options.get("wait", False)) for i in range(3)]
        for load in loads:
            load.start()
        time.sleep(0.5)
        for _ in range(options["steps"]):
            action = rng.choice(actions)
            done.append(action.__name__)
            begin = time.time()
            action(lab, rng)
            settle(lab)
            # A primary that lost the majority stops to accept writes after the node timeout.
            windows.append((begin, min(time.time(), begin + options["window_s"])))
            time.sleep(0.3)
        for load in loads:
            load.stop()
        settle(lab)
        for load in loads:
            load.verify()
        check_datasets(lab)
    except (Failed, OSError, ReplyError, subprocess.SubprocessError) as error:
        for load in loads:
            load.ended.set()
        lab.close(keep=True)
        return f"FAILED  seed {seed}: {' '.join(done)}: {type(error).__name__} {error}", 0, 0
    lab.close()
    lost, stray = losses(loads, windows, args.timeout)
    wrong = [w for load in loads for w in load.wrong]
    peers = sum(b != binaries[0] for b in chosen)
    writes, reads = sum(load.writes for load in loads), sum(load.reads for load in loads)
    bad = wrong or stray or (options.get("wait") and lost)
    line = (f"{'FAILED' if bad else 'ok'}  seed {seed}: {peers} peers; {' '.join(done)}; {writes} "
            f"writes, {reads} reads, {lost} lost, {stray} of them unexplained {wrong[:2] or ''}")
    return line, writes, lost


def run_scenarios(args, actions, binaries, options):
    failed = writes = lost = 0
    seeds = range(args.seed, args.seed + args.count)
    with ThreadPoolExecutor(args.jobs) as pool:
        work = pool.map(lambda s: scenario(args, s, actions, binaries, options), seeds)
        for line, some_writes, some_lost in work:
            print(line, flush=True)
            failed += line.startswith("FAILED")
            writes += some_writes
            lost += some_lost
    print(f"{writes} acknowledged writes, {lost} lost")
    return args.count - failed, failed


def mixed(args):
    binaries = [args.server] + ([args.peer] if args.peer else [])
    cli = [str(Path(b).with_name("valkey-cli")) for b in binaries]
    actions = [kill_primary, stop_primary, order, order, restart_replica, forget, move_all, add]
    if args.namespaces:
        actions += [partition, partition]
    return run_scenarios(args, actions, binaries, {
        "steps": args.steps, "cli": cli, "window_s": 3 * args.timeout / 1000 + 2})


def partitions(args):
    return run_scenarios(args, [partition], [args.server], {
        "steps": args.steps, "wait": args.wait, "window_s": 2 * args.timeout / 1000})


def kill(lab, primary):
    primary.kill()


def stop(lab, primary):
    primary.signal(signal.SIGSTOP)


def separate(lab, primary):
    for n in lab.nodes:
        if n is not primary:
            lab.separate(primary, n)
            lab.separate(n, primary)


def undo(lab, primary):
    if not primary.process:
        primary.start()
    primary.signal(signal.SIGCONT)
    lab.heal()


def accepts(node, key):
    """Whether it accepts a write: an owner of the slot whose cluster is in order."""
    try:
        return node.call("SET", key, "1") == "OK"
    except (OSError, ReplyError):
        return False


def failover_ms(lab, fail, rng):
    """From the failure of a primary to the first write that its replica accepts."""
    primary = rng.choice([p for p in owners(lab) if replicas_of(lab, p)])
    replica = rng.choice(replicas_of(lab, primary))
    first = int(primary.myself()[4].split()[0].split("-")[0])
    last = int(primary.myself()[4].split()[0].split("-")[-1])
    key = next(k for k in map(str, range(10**6)) if first <= slot_of(k) <= last)
    time.sleep(rng.random() * min(lab.timeout_ms, 2000) / 1000)  # at any time between two PINGs
    begin = time.monotonic()
    fail(lab, primary)
    lab.wait(lambda: accepts(replica, key), 10 + 4 * lab.timeout_ms / 1000, "failover")
    took = (time.monotonic() - begin) * 1000
    undo(lab, primary)
    settle(lab, 60 + 4 * lab.timeout_ms / 1000)
    return took


def times_of(args, number, name, binary, options, fail):
    """A line about the failovers of one kind."""
    rng = random.Random(args.seed)
    lab = Lab(f"pf{os.getpid() % 10000}t{number}", args.timeout, args.namespaces, options)
    try:
        for _ in range(6):
            lab.add(binary)
        create(lab)
        took = sorted(failover_ms(lab, fail, rng) for _ in range(args.count))
    except (Failed, OSError, ReplyError) as error:
        lab.close(keep=True)
        return f"FAILED  {name}, {fail.__name__}: {type(error).__name__} {error}"
    lab.close()
    return (f"ok  {name}, {fail.__name__}, node timeout {args.timeout} ms: median "
            f"{statistics.median(took):.0f} ms, {took[0]:.0f} to {took[-1]:.0f}, nine of ten {took[len(took) * 9 // 10 - 1]:.0f}, "
            f"{len(took)} runs")


def times(args):
    refused = ["--cluster-refused-timeout", "300"]
    kinds = [kill, stop, separate] if args.namespaces else [kill, stop]
    rows = [("server", args.server, [], f) for f in kinds]
    rows += [("server, refused-timeout 300", args.server, refused, f) for f in kinds]
    rows += [("peer", args.peer, [], f) for f in kinds if args.peer]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(lambda row: times_of(args, row[0], *row[1]), enumerate(rows)):
            print(line, flush=True)
            failed += line.startswith("FAILED")
    return len(rows) - failed, failed


def bus_bytes():
    """All that this machine sent to itself."""
    with open("/proc/net/dev") as file:
        return next(int(line.split()[1]) for line in file if "lo:" in line)


def idle(args):
    """Nobody else may use the loopback interface meanwhile, as in a namespace: unshare -n."""
    for name, binary in [("server", args.server), ("peer", args.peer)]:
        if not binary:
            continue
        lab = Lab(f"pf{os.getpid() % 10000}i", 15000, False)
        for i in range(args.count):
            node = lab.add(binary)
            node.call("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // args.count,
                      (i + 1) * SLOTS // args.count - 1)
            node.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for n in lab.nodes[1:]:
            lab.nodes[0].call("CLUSTER", "MEET", *n.address)
        lab.wait(lambda: all(n.info()["cluster_state"] == "ok" and
                             n.info()["cluster_known_nodes"] == str(args.count)
                             for n in lab.nodes), 120, "meeting")
        time.sleep(60)
        cpu, sent = sum(n.cpu_s() for n in lab.nodes), bus_bytes()
        time.sleep(args.seconds)
        cpu, sent = sum(n.cpu_s() for n in lab.nodes) - cpu, bus_bytes() - sent
        print(f"{name}, {args.count} nodes: {sent / 1024 / args.seconds / args.count:.2f} KB and "
              f"{cpu * 1000 / args.seconds / args.count:.3f} ms of CPU per node and second",
              flush=True)
        lab.close()
    return 1, 0


def smoke(args):
    args.namespaces, args.count, args.jobs = False, 1, 1
    return run_scenarios(args, [kill_primary, order], [args.server], {
        "steps": 2, "window_s": 3 * args.timeout / 1000 + 2})


def spin(node, seconds, ended):
    """A script that runs for so long, again and again."""
    tag = next(f"t{i}" for i in range(100000) if slot_of(f"t{i}") == 0)
    # TIME stands still in a script.
    text = "local s = os.clock() + ARGV[1] while os.clock() < s do end return 1"
    while not ended.is_set():
        try:
            node.call("EVAL", text, 1, tag, seconds, timeout=seconds + 20)
        except (OSError, ReplyError):
            pass
        ended.wait(1)


def quiet(args):
    """No node is marked as failing; a primary whose main thread hangs is."""
    lab = Lab(f"pf{os.getpid() % 10000}q", args.timeout, False)
    ended = threading.Event()
    programs = []
    try:
        for _ in range(6):
            lab.add(args.server)
        create(lab)
        before = view(lab.nodes[0])
        threading.Thread(target=spin, args=(lab.nodes[0], 5, ended), daemon=True).start()
        benchmark = str(Path(args.server).with_name("valkey-benchmark"))
        for _ in range(2):
            programs.append(subprocess.Popen(
                [benchmark, "-p", str(lab.nodes[1].address[1]), "--cluster", "-P", "100", "-c", "50",
                 "-t", "set,get", "-l", "-q", "-r", "100000", "-d", "100"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            time.sleep(1)
        for p in programs:
            p.kill()
            p.wait()
        ended.set()
        logs = [Path(n.folder, "log").read_text(errors="replace") for n in lab.nodes]
        suspected = sum(log.count("FAIL message received") + log.count("quorum reached") +
                        log.count("possibly failing") for log in logs)
        lab.wait(lambda: is_settled(lab), 30, "agreement after the load")
        if suspected or view(lab.nodes[0]) != before:
            raise Failed(f"{suspected} lines about failures in {lab.folder}")
        print(f"ok  {args.seconds} s of load and scripts: no node is suspected")
        replicas = replicas_of(lab, lab.nodes[2])
        lab.nodes[2].signal(signal.SIGSTOP)
        begin = time.monotonic()
        lab.wait(lambda: any(r.is_primary() for r in replicas), 20, "a hung main thread")
        print(f"ok  a hung main thread is replaced after {time.monotonic() - begin:.1f} s")
    except (Failed, OSError, ReplyError) as error:
        print(f"FAILED  {error}")
        lab.close(keep=True)
        return 0, 1
    finally:
        ended.set()
        for p in programs:
            p.kill()
    lab.close()
    return 2, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["mixed", "partitions", "quiet", "times", "idle", "smoke"])
    parser.add_argument("--server", default=str(ROOT / "build/release/valkey-server"))
    parser.add_argument("--peer", help="another server: a part of the nodes of `mixed`, beside ours in `times` and `idle`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5, help="scenarios; failovers of a kind; nodes of `idle`")
    parser.add_argument("--steps", type=int, default=4, help="failures and orders in a scenario")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at a time")
    parser.add_argument("--timeout", type=int, default=1000, help="cluster-node-timeout")
    parser.add_argument("--seconds", type=int, default=180, help="of `quiet` and `idle`")
    parser.add_argument("--wait", action="store_true", help="a write counts after WAIT 1; none is lost")
    parser.add_argument("--no-namespaces", dest="namespaces", action="store_false",
                        help="no root is needed, and nothing is separated")
    args = parser.parse_args()
    modes = {"mixed": mixed, "partitions": partitions, "quiet": quiet, "times": times,
             "idle": idle, "smoke": smoke}
    passed, failed = modes[args.mode](args)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Slots move between real servers that fail at random moments of it: nothing acknowledged is lost, no
slot loses its owner, nobody has to repair anything.

    tests/proofs/move_failures.py [--server PROGRAM] [--count N] [--steps N] [--jobs N] [--seed N] [--way atomic|keys]

Each scenario is a cluster of three primaries and three replicas under the load of load.py, in which
a write counts when WAIT 1 has confirmed it. In each step some slots move from one primary to
another one, atomically or key by key, and meanwhile the source, the target or a replica of one of
them is killed, stopped, or replaced by order. A move key by key is continued as an operator would:
with the primaries that are there now. As MIGRATE does not wait for the replicas of the target, keys
of the last MIGRATE may get lost with a target that is killed: they are counted."""
import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import ROOT, check_datasets, create, settle
from lab import Client, Failed, Lab, ReplyError
from load import Load, slot_of

HOT_SLOTS = 36  # that have keys
FILL = 400      # keys of each that nobody changes
FILL_BYTES = 2000
MOVE_S = 90     # the longest that a move may take, with what fails meanwhile


def hot_tags():
    """Tags whose slots are in three groups, one for each primary."""
    tags, i = {}, 0
    while len(tags) < HOT_SLOTS:
        slot = slot_of(f"t{i}")
        if sum(s * 3 // 16384 == slot * 3 // 16384 for s in tags) < HOT_SLOTS // 3:
            tags.setdefault(slot, f"t{i}")
        i += 1
    return tags


TAGS = hot_tags()


def fill(lab):
    for n in lab.nodes[:3]:
        client = Client(n.address, 10)
        for slot, tag in TAGS.items():
            try:
                client.pipeline([("SET", f"{{{tag}}}fill{i}", "x" * FILL_BYTES) for i in range(FILL)])
            except ReplyError:
                continue  # the slot of another one
        if client.call("WAIT", 1, 10000) < 1:
            raise Failed("filling: the replica does not acknowledge")
        client.close()


class Shards:
    """Which nodes belong together, by their first roles."""

    def __init__(self, lab):
        self.of = {n.id(): i % 3 for i, n in enumerate(lab.nodes[:6])}
        self.by_id = {n.id(): n for n in lab.nodes}

    def members(self, number):
        return [n for i, n in self.by_id.items() if self.of[i] == number]

    def primary(self, number):
        """The node of the shard that owns slots, as it sees itself; None: there is none now."""
        for n in self.members(number):
            try:
                row = n.myself()
            except (OSError, ReplyError, StopIteration):
                continue
            if n.process and "master" in row[1] and row[4]:
                return n
        return None

    def current(self, number):
        """The same; an OSError if there is none."""
        node = self.primary(number)
        if not node:
            raise OSError(f"shard {number} has no primary now")
        return node


def slots_of(node):
    """The hot slots of a node, as it sees itself."""
    owned = set()
    for part in node.myself()[4].split():
        if part[0] != "[":
            first, _, last = part.partition("-")
            owned.update(range(int(first), int(last or first) + 1))
    return [s for s in TAGS if s in owned]


# ---- moves: each returns when it has ended, and what came of it

def is_idle(lab):
    """No job runs on any node."""
    for n in lab.nodes:
        rows = n.call("CLUSTER", "GETSLOTMIGRATIONS")
        for row in rows:
            fields = dict(zip(row[::2], row[1::2]))
            if fields["state"] not in ("success", "failed", "cancelled"):
                return False
    return True


def move_atomic(lab, shards, source, target, slots, ended):
    lab.wait(lambda: shards.primary(source) and shards.primary(target), 30, "primaries")
    words = [w for s in slots for w in (s, s)]
    try:
        node, to = shards.current(source), shards.current(target)
        node.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *words, "NODE", to.id())
    except (OSError, ReplyError):
        pass  # a node has failed before
    ended.wait(MOVE_S)  # until who fails is back
    lab.wait(lambda: is_idle(lab), MOVE_S, "the end of the jobs")
    settle(lab)
    moved = set(slots) <= set(slots_of(shards.current(target)))
    return "moved" if moved else "kept"


def move_slot(shards, source, target, slot, counts):
    """One slot as valkey-cli does it, from whatever state it is in."""
    node, to = shards.current(source), shards.current(target)
    if slot in slots_of(node):
        try:
            to.call("CLUSTER", "SETSLOT", slot, "IMPORTING", node.id(), timeout=4)
            node.call("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id(), timeout=4)
        except ReplyError as error:
            counts[str(error).split()[0] + " of SETSLOT"] += 1
            raise OSError(str(error)) from error
    while True:
        keys = node.call("CLUSTER", "GETKEYSINSLOT", slot, 40)
        if not keys:
            break
        words = ["MIGRATE", *to.address, "", 0, 2000]
        try:
            node.call(*words, "KEYS", *keys, timeout=5)
        except ReplyError as error:
            if "BUSYKEY" in str(error):  # an earlier MIGRATE ended before its reply
                counts["BUSYKEY of MIGRATE"] += 1
                node.call(*words, "REPLACE", "KEYS", *keys, timeout=5)
            else:
                counts[" ".join(str(error).split()[:2]) + " of MIGRATE"] += 1
                raise OSError(str(error)) from error
    others = [n for n in map(shards.primary, range(3)) if n and n is not node and n is not to]
    for n in [to, node, *others]:
        try:
            n.call("CLUSTER", "SETSLOT", slot, "NODE", to.id(), timeout=4)
        except ReplyError as error:
            counts[str(error).split()[0] + " of SETSLOT"] += 1
            raise OSError(str(error)) from error


def is_moved(shards, source, target, slot):
    to = shards.primary(target)
    if not to or slot not in slots_of(to):
        return False
    marks = f"[{slot}-"
    return not any(marks in n.myself()[4] for s in (source, target) for n in shards.members(s))


def move_keys(lab, shards, source, target, slots, ended, counts):
    end = time.monotonic() + MOVE_S
    tries = 0
    for slot in slots:
        done = False
        while not done:
            if time.monotonic() > end:
                raise Failed(f"slot {slot} cannot be moved; {lab.folder}")
            try:
                tries += 1
                move_slot(shards, source, target, slot, counts)
                done = is_moved(shards, source, target, slot)
            except (OSError, ReplyError) as error:
                counts["tries again"] += 1
                if not isinstance(error, OSError):
                    counts[" ".join(str(error).split()[:2])] += 1
            if not done:
                time.sleep(0.2)
    ended.wait(MOVE_S)
    settle(lab)
    for slot in slots:  # what a failover has undone
        lab.wait(lambda: is_moved(shards, source, target, slot) or
                 move_slot(shards, source, target, slot, counts), MOVE_S, f"slot {slot}")
    return "moved" if tries == len(slots) else "moved after failures"


# ---- failures: each waits until the node is back

def await_replaced(lab, shards, number, old):
    lab.wait(lambda: shards.primary(number) not in (None, old), 30, "an election")


def fail(lab, shards, number, is_primary, how, rng, forms):
    primary = shards.primary(number)
    if not primary:
        return
    node = primary if is_primary else next(n for n in shards.members(number) if n is not primary)
    if how == "order":
        replica = next(n for n in shards.members(number) if n is not primary)
        try:
            replica.call("CLUSTER", "FAILOVER", *rng.choice(forms))
        except ReplyError:
            pass  # its link is down
    elif how == "kill":
        node.kill()
        if is_primary:  # its data is in memory alone
            await_replaced(lab, shards, number, node)
        else:
            time.sleep(rng.random() * 2 * lab.timeout_ms / 1000)
        node.start()
    else:
        node.signal(signal.SIGSTOP)
        try:
            time.sleep(rng.random() * 4 * lab.timeout_ms / 1000)
        finally:
            node.signal(signal.SIGCONT)


# ---- a scenario

def check_keys(lab, shards, counts):
    """Every key that nobody changed is there, once; no node has keys of slots of others."""
    def count():
        found = Counter()
        for number in range(3):
            primary = shards.current(number)
            owned = set(slots_of(primary))
            for slot in TAGS:
                keys = primary.call("CLUSTER", "GETKEYSINSLOT", slot, 10000)
                if keys and slot not in owned:
                    raise OSError(f"node {primary.number} has keys of slot {slot}")
                found[slot] += sum("fill" in k for k in keys)
        return found

    found = {}
    def is_clean():
        found.update(count())
        return True

    lab.wait(is_clean, 20, "no keys of slots of other nodes")
    missing = {s: lab.fill[s] - n for s, n in found.items() if n != lab.fill[s]}
    for slot in lab.arrived & set(missing):
        counts["keys lost with the node at which they had just arrived"] += missing.pop(slot)
        lab.fill[slot] = found[slot]
    if missing:
        raise Failed(f"keys of slots are missing: {missing}; {lab.folder}")


def step(lab, shards, rng, way, counts):
    """Returns what was done and came of it."""
    lab.wait(lambda: all(shards.primary(i) for i in range(3)), 30, "primaries")
    by_shard = [slots_of(shards.current(i)) for i in range(3)]
    source = rng.choice([i for i in range(3) if len(by_shard[i]) > 3])
    target = rng.choice([i for i in range(3) if i != source])
    owned = by_shard[source]
    slots = rng.sample(owned, rng.randrange(1, min(len(owned), 9)))
    way = way or rng.choice(["atomic", "keys"])
    number, is_primary = rng.choice([source, target]), rng.random() < 0.6
    how = rng.choice(["kill", "kill", "kill", "stop", "order"])
    who = ("source" if number == source else "target") + ("" if is_primary or how == "order" else "'s replica")
    ended = threading.Event()
    errors = []
    # MIGRATE does not wait for replicas of the target.
    if way == "keys" and number == target and is_primary and how != "order":
        lab.arrived.update(slots)

    def disturb():
        try:
            time.sleep(rng.random() ** 2 * (0.6 if way == "atomic" else 1.5))
            # FORCE loses what is not replicated so far: keys that have just arrived, too.
            forms = [[], ["FORCE"]] if way == "atomic" else [[]]
            fail(lab, shards, number, is_primary, how, rng, forms)
        except Exception as error:  # the step fails with it
            errors.append(error)
        ended.set()

    thread = threading.Thread(target=disturb, daemon=True)
    thread.start()
    if way == "atomic":
        result = move_atomic(lab, shards, source, target, slots, ended)
    else:
        result = move_keys(lab, shards, source, target, slots, ended, counts)
    thread.join()
    if errors:
        raise errors[0]
    settle(lab)
    check_keys(lab, shards, counts)
    name = f"{way}, {how} {who}: {result}"
    counts[name] += 1
    return name


def scenario(args, seed, counts):
    rng = random.Random(seed)
    lab = Lab(f"mf{os.getpid() % 10000}s{seed % 1000}"[:12], args.timeout, False,
              ["--cluster-allow-replica-migration", "no"])
    lab.fill = dict.fromkeys(TAGS, FILL)
    lab.arrived = set()  # slots of which keys may get lost
    loads, done = [], []
    try:
        for _ in range(6):
            lab.add(args.server)
        create(lab)
        fill(lab)
        shards = Shards(lab)
        loads = [Load(lab, i, wait=True,
                      keys=[f"{{{t}}}{i}-{k}" for t in TAGS.values() for k in range(3)])
                 for i in range(3)]
        for load in loads:
            load.start()
        for _ in range(args.steps):
            done.append(step(lab, shards, rng, args.way, counts))
        for load in loads:
            load.stop()
        settle(lab)
        for load in loads:
            load.verify()
        check_datasets(lab)
    except (Failed, OSError, ReplyError, StopIteration, subprocess.SubprocessError) as error:
        for load in loads:
            load.ended.set()
        lab.close(keep=True)
        return f"FAILED  seed {seed}: {'; '.join(done)}: {type(error).__name__} {error}"
    lost = [w for load in loads for w in load.lost]
    at_risk = [w for w in lost if slot_of(w[1].split("}")[0][1:]) in lab.arrived]
    counts["writes lost with the node at which they had just arrived"] += len(at_risk)
    lost = [w for w in lost if w not in at_risk]
    wrong = [w for load in loads for w in load.wrong]
    bad = lost or wrong
    lab.close(keep=bool(bad))
    refusals = sum((load.refusals for load in loads), Counter())
    counts["confirmed writes"] += sum(load.writes for load in loads)
    counts["reads"] += sum(load.reads for load in loads)
    for what, number in refusals.items():
        counts[f"client: {what}"] += number
    return (f"{'FAILED' if bad else 'ok'}  seed {seed}: {'; '.join(done)}; {dict(refusals)}"
            + (f" lost {lost[:4]} wrong {wrong[:4]} {lab.folder}" if bad else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(ROOT / "build/release/valkey-server"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5, help="scenarios")
    parser.add_argument("--steps", type=int, default=10, help="moves in a scenario")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios at a time")
    parser.add_argument("--timeout", type=int, default=1000, help="cluster-node-timeout")
    parser.add_argument("--way", choices=["atomic", "keys"], help="of all moves; else both")
    args = parser.parse_args()
    args.server = os.path.abspath(args.server)
    counts, failed = Counter(), 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for line in pool.map(lambda s: scenario(args, s, counts),
                             range(args.seed, args.seed + args.count)):
            print(line, flush=True)
            failed += line.startswith("FAILED")
    for name, number in sorted(counts.items()):
        print(f"{number:9} {name}")
    print(f"{args.count - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Modules of others in clusters, a part of other_modules.py: RediSearch with shards and replicas, and
keys of modules' types that move between this server and a peer."""
import itertools
from pathlib import Path

import other_modules
from lab import Client, Failed, Lab, ReplyError
from load import SLOTS

WAIT_S = 60
REFUSAL = "does not support atomic slot migration"
MOVED = ("redisbloom", "rejson", "redis-cell", "hello_type")


def start(modules, *binaries):
    """A cluster of these programs, of which the first has all slots."""
    options = ["--enable-debug-command", "yes", "--cluster-allow-replica-migration", "no"]
    for module in modules:
        options += ["--loadmodule", str(other_modules.library(module))]
    lab = Lab("modules", 5000, False, options)
    try:
        nodes = [lab.add(str(Path(binary).resolve())) for binary in binaries]
        nodes[0].call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        for node in nodes[1:]:
            node.call("CLUSTER", "MEET", *nodes[0].address)
        lab.wait(lambda: all(n.info()["cluster_state"] == "ok" and len(n.nodes()) == len(nodes) for n in nodes),
                 WAIT_S, "meeting")
    except BaseException:
        lab.close()
        raise
    return lab, nodes


def call(node, *words):
    return node.call(*words, timeout=30)


def error_of(node, *words):
    """The error of a command that must be refused."""
    try:
        reply = call(node, *words)
    except ReplyError as error:
        return str(error)
    raise Failed(f"{words[:3]} was not refused: {reply}")


def move_slot(lab, source, target, slot):
    """The old way: key by key."""
    target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id())
    source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id())
    while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 100):
        call(source, "MIGRATE", *target.address, "", 0, 20000, "KEYS", *keys)
    for node in (target, source):
        node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id())
    lab.wait(lambda: all(str(slot) not in n.myself()[4].split() for n in lab.nodes if n is not target),
             WAIT_S, "the new owner")


# ---- RediSearch

def found(node, index):
    """The documents that a search finds."""
    return sorted(call(node, "FT.SEARCH", index, "hello", "NOCONTENT", "LIMIT", 0, 1000)[1:])


def expect(lab, node, index, keys, when):
    lab.wait(lambda: found(node, index) == sorted(keys), WAIT_S, f"{len(keys)} documents {when}")


def search(binary, peer):
    """Indexes on a primary and its replica; documents of one slot move to another node; failover."""
    lab, (first, second, replica) = start(("redisearch",), binary, peer or binary, binary)
    schema = ("ON", "HASH", "PREFIX", 1, "d:", "SCHEMA", "title", "TEXT", "n", "NUMERIC", "SORTABLE")
    try:
        call(first, "FT.CREATE", "idx", *schema)
        staying, moving = [f"d:{i}" for i in range(60)], [f"d:{{x}}{i}" for i in range(60)]
        client = Client(first.address, 30)
        for i, key in enumerate(staying + moving):
            client.call("HSET", key, "title", f"hello world n{i % 7}", "n", i)
        client.close()
        expect(lab, first, "idx", staying + moving, "after they were written")
        replica.call("CLUSTER", "REPLICATE", first.id())
        lab.wait(lambda: "master_link_status:up" in replica.call("INFO", "replication"), WAIT_S, "the link")
        if REFUSAL not in (text := error_of(first, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, 9, "NODE", second.id())):
            raise Failed(f"an atomic move: {text}")
        move_slot(lab, first, second, first.call("CLUSTER", "KEYSLOT", "d:{x}"))
        expect(lab, first, "idx", staying, "on the source")
        call(first, "DEBUG", "RELOAD")
        expect(lab, first, "idx", staying, "after DEBUG RELOAD")
        replica.call("CLUSTER", "FAILOVER")
        lab.wait(replica.is_primary, WAIT_S, "the failover")
        expect(lab, replica, "idx", staying, "on the former replica")
        # The name of an index is routed as a key is.
        move_slot(lab, replica, second, replica.call("CLUSTER", "KEYSLOT", "idx"))
        if not error_of(replica, "FT.SEARCH", "idx", "hello").startswith("MOVED "):
            raise Failed("the name of an index is not routed")
        call(second, "FT.CREATE", "idx", *schema)
        expect(lab, second, "idx", moving, "on the target")
        for node in lab.nodes:
            if node.call("PING") != "PONG" or node.process.poll() is not None:
                raise Failed("a node has ended")
    finally:
        lab.close()


# ---- keys that move

def replies(node, modules):
    """Without reads of several keys, which are in several slots."""
    return [(words, other_modules.without_times(call(node, *words)))
            for module in modules for words in other_modules.TRIALS[module][1] if words[0] != "JSON.MGET"]


def fill(node, modules):
    client = Client(node.address, 30)
    for module in modules:
        for words in other_modules.TRIALS[module][0]:
            client.call(*words)
    client.close()
    return replies(node, modules)


def compare(node, modules, expected, when):
    for (words, before), (_, after) in zip(expected, replies(node, modules)):
        if before != after:
            raise Failed(f"{when}: {words} was {str(before)[:200]}, is {str(after)[:200]}")


def moves(binary, peer):
    """Key by key to the peer and back; moves of whole slots are refused for modules that know nothing of them."""
    lab, nodes = start(MOVED, binary, peer or binary)
    try:
        expected = fill(nodes[0], MOVED)
        for source, target in (nodes, nodes[::-1]):
            slots = sorted({source.call("CLUSTER", "KEYSLOT", key) for key in call(source, "KEYS", "*")})
            text = error_of(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slots[0], slots[0], "NODE", target.id())
            if REFUSAL not in text:
                raise Failed(f"an atomic move: {text}")
            for slot in slots:
                move_slot(lab, source, target, slot)
            compare(target, MOVED, expected, f"after a move to {target.binary}")
            if source.call("DBSIZE"):
                raise Failed("keys remain on the source")
    finally:
        lab.close()


def atomic_moves(binary, peer):
    """All slots at once to the peer and back, with a type whose module permits it, while it is written."""
    modules = ("hello_type",)
    lab, nodes = start(modules, binary, peer or binary)
    try:
        rows, numbers = [f"row:{i}" for i in range(500)], itertools.count()
        client = Client(nodes[0].address, 30)
        client.pipeline([("HELLO.ROW.ADD", key, *range(i, 3 * i + 1)) for i, key in enumerate(rows)])
        expected = client.pipeline([("HELLO.ROW.GET", key) for key in rows])
        client.close()
        for source, target in (nodes, nodes[::-1]):
            source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, SLOTS - 1, "NODE", target.id())
            writer = Client(source.address, 30)
            lab.wait(lambda: add(writer, rows[:5], expected, next(numbers)), WAIT_S, "the move")
            writer.close()
            lab.wait(lambda: source.call("DBSIZE") == 0 and "success" in source.call("CLUSTER", "GETSLOTMIGRATIONS")[0],
                     WAIT_S, "the source without keys")
            client = Client(target.address, 30)
            found_now = client.pipeline([("HELLO.ROW.GET", key) for key in rows])
            client.close()
            if wrong := [key for key, a, b in zip(rows, expected, found_now) if a != b]:
                raise Failed(f"{len(wrong)} rows differ on {target.binary}, {wrong[0]} for one")
    finally:
        lab.close()


def add(writer, keys, expected, number):
    """Appends to some rows while they move. True: the slots are no more here."""
    for i, key in enumerate(keys):
        try:
            writer.call("HELLO.ROW.ADD", key, number)
            expected[i].append(number)
        except ReplyError as error:
            if str(error).startswith("MOVED "):
                return True
            raise
    return False


TRIALS = {
    "redisearch in a cluster": (("redisearch",), search),
    "keys that move": (MOVED, moves),
    "slots that move": (("hello_type",), atomic_moves),
}

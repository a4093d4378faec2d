#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that read, change and store the same few keys at random while the commands run in slices; each history must be
serializable in real time (tests/support/serial.py), with the dataset that the server has at its end.

    serializable.py PORT|SOCKET [--protocol 2|3] [--clients N] [--rounds N] [--steps N] [--elements N] [--seed N]

Another connection suspends and continues jobs at random (DEBUG PAUSE-JOBS), so that requests meet jobs in each state.
Prints the seed, the number of operations and of jobs, and the first history that has no order; exit status 1 then.
Empties all databases."""
import argparse
import os
import random
import select
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from serial import Op, fault_of  # noqa: E402
from worst_cases import Client, ReplyError, encode  # noqa: E402

SLICE_US = 10
KEYS = {kind: [f"{kind}{i}" for i in (1, 2, 3)] for kind in "szlh"}


def word(rng, elements):
    return b"%d" % rng.randrange(elements * 2)


def read_of(rng, kind):
    one, other = rng.sample(KEYS[kind], 2)
    if kind == "s":
        return rng.choice([("SMEMBERS", one), ("SCARD", one), ("SUNION", one, other), ("SINTER", one, other), ("SDIFF", one, other)])
    if kind == "z":
        return rng.choice([("ZRANGE", one, 0, -1, "WITHSCORES"), ("ZUNION", 2, one, other, "WITHSCORES"),
                           ("ZINTER", 2, one, other, "WITHSCORES"), ("ZDIFF", 2, one, other, "WITHSCORES")])
    if kind == "l":
        return rng.choice([("LRANGE", one, 0, -1), ("SORT", one)])
    return ("HGETALL", one)


def quick_write_of(rng, kind, elements):
    key, element = rng.choice(KEYS[kind]), word(rng, elements)
    return rng.choice({
        "s": [("SADD", key, element), ("SREM", key, element)],
        "z": [("ZADD", key, rng.randrange(9), element), ("ZREM", key, element)],
        "l": [("RPUSH", key, element), ("LPOP", key)],
        "h": [("HSET", key, element, b"%d" % rng.randrange(9)), ("HDEL", key, element)],
    }[kind])


def long_write_of(rng, kind, elements):
    one, other, to = rng.sample(KEYS[kind], 3)
    if rng.random() < 0.2:
        to = one
    copying = [("COPY", one, other, "REPLACE"), ("RENAME", one, other)]
    many = [word(rng, elements) for _ in range(rng.randrange(40, 120))]
    scored = [part for w in many for part in (rng.randrange(9), w)]
    fields = [part for w in many for part in (w, b"%d" % rng.randrange(9))]
    if kind == "s":
        return rng.choice(copying + [("SUNIONSTORE", to, one, other), ("SINTERSTORE", to, one, other),
                                     ("SDIFFSTORE", to, one, other), ("SPOP", one, rng.randrange(1, 120)),
                                     ("SADD", one, *many), ("SREM", one, *many), ("SADD", one, *many), ("SREM", one, *many)])
    if kind == "z":
        return rng.choice(copying + [("ZUNIONSTORE", to, 2, one, other), ("ZINTERSTORE", to, 2, one, other),
                                     ("ZDIFFSTORE", to, 2, one, other), ("ZRANGESTORE", to, other, 0, elements // 2),
                                     ("ZREMRANGEBYRANK", one, 0, rng.randrange(20)),
                                     ("ZADD", one, *scored), ("ZREM", one, *many), ("ZADD", one, *scored),
                                     ("ZREMRANGEBYRANK", one, 3, 90), ("ZPOPMIN", one, rng.randrange(30, 100))])
    if kind == "l":
        element = word(rng, elements)
        return rng.choice(copying + [("LREM", one, 0, element), ("LTRIM", one, 1, -1), ("LINSERT", one, "BEFORE", element, b"7"),
                                     ("RPUSH", one, *many), ("LPUSH", one, *many), ("LPOP", one, rng.randrange(30, 200))])
    return rng.choice(copying + [("HSET", one, *fields), ("HDEL", one, *many), ("HSET", one, *fields)])


def operation(rng, elements):
    """The words of a request; those of a transaction are ("EXEC", words, ...)."""
    kind, dice = rng.choice("sszzlh"), rng.random()
    if dice < 0.4:
        return read_of(rng, kind)
    if dice < 0.75:
        return quick_write_of(rng, kind, elements)
    if dice < 0.9:
        return long_write_of(rng, kind, elements)
    if dice < 0.93:
        return ("KEYS", "*")
    if dice < 0.95:
        return ("DEL", rng.choice(KEYS[kind]))
    return ("EXEC", read_of(rng, kind), quick_write_of(rng, kind, elements), read_of(rng, kind))


def encoded(words):
    if words[0] != "EXEC":
        return encode(*words)
    return encode("MULTI") + b"".join(encode(*inner) for inner in words[1:]) + encode("EXEC")


def reply_of(client, words):
    for _ in range(len(words) if words[0] == "EXEC" else 0):  # of MULTI and the queued commands
        client.read()
    try:
        return client.read()
    except ReplyError as error:
        return error


def pairs_of(reply):
    """Of the commands with which the dataset is read, whose replies have this form in both protocols."""
    return list(zip(reply[::2], reply[1::2]))


def dataset(client):
    state = {}
    for key in sorted(k.decode() for k in client.ask("KEYS", "*")):
        if key[0] == "s":
            state[key] = frozenset(client.ask("SMEMBERS", key))
        elif key[0] == "l":
            state[key] = tuple(client.ask("LRANGE", key, 0, -1))
        elif key[0] == "h":
            state[key] = frozenset(pairs_of(client.ask("HGETALL", key)))
        else:
            reply = client.ask("ZRANGE", key, 0, -1, "WITHSCORES")
            items = reply if reply and isinstance(reply[0], list) else pairs_of(reply)
            state[key] = frozenset((member, float(score)) for member, score in items)
    return state


def fill(client, rng, elements):
    client.ask("FLUSHALL")
    for i in (1, 2, 3):
        words = [word(rng, elements) for _ in range(elements)]
        client.ask("SADD", f"s{i}", *words)
        client.ask("ZADD", f"z{i}", *(part for w in words for part in (rng.randrange(9), w)))
        client.ask("RPUSH", f"l{i}", *words)
        client.ask("HSET", f"h{i}", *(part for w in words for part in (w, b"1")))


def play(clients, control, rng, steps, elements):
    """The history: each client sends `steps` operations, each as soon as the last one is replied, or a little later."""
    histories = [[] for _ in clients]
    waiting, paused = {}, False
    while any(len(history) < steps for history in histories) or waiting:
        for i, client in enumerate(clients):
            if client not in waiting and len(histories[i]) < steps and rng.random() < 0.7:
                words = operation(rng, elements)
                waiting[client] = i, words, time.perf_counter()
                client.socket.sendall(encoded(words))
        if rng.random() < 0.3 or len(waiting) == len(clients):
            paused = not paused and rng.random() < 0.5
            control.ask("DEBUG", "PAUSE-JOBS", int(paused))
        ready = select.select(list(waiting), [], [], 0 if paused else 0.001)[0]
        for client in ready:
            i, words, begin = waiting.pop(client)
            if words[0] == "EXEC" and paused:  # that of MULTI has arrived; EXEC itself may wait for a job
                paused = False
                control.ask("DEBUG", "PAUSE-JOBS", 0)
            histories[i].append(Op(words, reply_of(client, words), begin, time.perf_counter()))
    control.ask("DEBUG", "PAUSE-JOBS", 0)
    return histories


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", metavar="PORT|SOCKET")
    parser.add_argument("--protocol", type=int, default=2)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--elements", type=int, default=150)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    control = Client(options.server, options.protocol)
    clients = [Client(options.server, options.protocol) for _ in range(options.clients)]
    for client in clients:
        client.fileno = client.socket.fileno
    control.ask("CONFIG", "SET", "command-slice-us", SLICE_US)
    done = control.info("jobs_done")
    for number in range(options.rounds):
        rng = random.Random(f"{options.seed} {number}")
        fill(control, rng, options.elements)
        before = dataset(control)
        histories = play(clients, control, rng, options.steps, options.elements)
        fault = fault_of(histories, before, dataset(control))
        if fault:
            print(f"round {number}: {fault}")
            for i, history in enumerate(histories):
                print("\n".join(f"    {i} {op}" for op in history))
            return 1
    jobs = control.info("jobs_done") - done
    print(f"{options.rounds * options.clients * options.steps} operations, {jobs} jobs, 0 faults")
    return 0 if jobs else 1


if __name__ == "__main__":
    sys.exit(main())

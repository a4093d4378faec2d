#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random commands about long lists and streams on a server that compresses their nodes, beside one that does not.

    compressed_nodes.py SERVER [TWIN] [--steps N] [--seed N] [--cuts N]

As compressed_strings.py, with small nodes, so that lists and streams have many. In between nodes are compressed also by the walk, and
list-compress-depth changes."""
import random
import sys

import compressed_strings as model

LISTS = [f"r:l{i}" for i in range(12)]
STREAMS = [f"r:s{i}" for i in range(8)]
GROUPS = ("g", "h")
FIELDS = ("temperature", "humidity", "device", "state")
strings_disturb = model.disturb


def item(rng):
    kind = rng.randrange(10)
    if kind < 5:
        return model.record(rng)[:rng.randrange(20, 140)]
    if kind < 8:
        return f"user {rng.randrange(30)} of the European branch office"
    if kind == 8:
        return str(rng.randrange(-100, 10**rng.randrange(1, 18)))
    return model.record(rng) * rng.randrange(20) if rng.random() < 0.2 else ""


def entry(rng):
    fields = FIELDS if rng.random() < 0.8 else rng.sample(FIELDS, rng.randrange(1, 4))
    return [word for field in fields for word in (field, item(rng))]


def stream_id(rng):
    return f"{rng.randrange(1, 3000)}-{rng.randrange(3)}"


def list_words(rng):
    key, other = rng.choice(LISTS), rng.choice(LISTS)
    at, end, side, to = rng.randrange(-150, 150), rng.randrange(-150, 200), rng.choice(["LEFT", "RIGHT"]), rng.choice(["LEFT", "RIGHT"])
    choices = [
        lambda: ["RPUSH", key, *(item(rng) for _ in range(rng.randrange(1, 60)))], lambda: ["LPUSH", key, *(item(rng) for _ in range(rng.randrange(1, 40)))],
        lambda: ["RPUSHX", key, item(rng)], lambda: ["LPOP", key], lambda: ["RPOP", key, rng.randrange(20)], lambda: ["LPOP", key, rng.randrange(20)],
        lambda: ["LRANGE", key, at, end], lambda: ["LRANGE", key, 0, -1], lambda: ["LRANGE", key, at, at + 5], lambda: ["LINDEX", key, at],
        lambda: ["LINDEX", key, end], lambda: ["LSET", key, at, item(rng)], lambda: ["LLEN", key],
        lambda: ["LINSERT", key, rng.choice(["BEFORE", "AFTER"]), f"user {rng.randrange(30)} of the European branch office", item(rng)],
        lambda: ["LREM", key, rng.randrange(-3, 4), f"user {rng.randrange(30)} of the European branch office"], lambda: ["LREM", key, 0, item(rng)],
        lambda: ["LPOS", key, f"user {rng.randrange(30)} of the European branch office", "COUNT", 0],
        lambda: ["LPOS", key, f"user {rng.randrange(30)} of the European branch office", "RANK", -1, "MAXLEN", 40],
        lambda: ["LTRIM", key, at, end] if rng.random() < 0.2 else ["LTRIM", key, 0, 400], lambda: ["LTRIM", key, rng.randrange(10), -1 - rng.randrange(10)],
        lambda: ["LMOVE", key, other, side, to], lambda: ["RPOPLPUSH", key, other], lambda: ["LMPOP", 2, key, other, side, "COUNT", 5],
        lambda: ["SORT", key, "ALPHA", "LIMIT", 0, 10], lambda: ["SORT", key, "BY", "nosort", "STORE", other] if rng.random() < 0.1 else ["LLEN", other],
        lambda: ["EVAL", "redis.call('lset', KEYS[1], 0, 'x'); return redis.call('lrange', KEYS[2], 3, 40)", 2, key, other],
    ]
    return rng.choice(choices)()


def stream_words(rng):
    key, group, consumer = rng.choice(STREAMS), rng.choice(GROUPS), rng.choice(["a", "b"])
    start, end = sorted((stream_id(rng), stream_id(rng)), key=lambda text: [int(part) for part in text.split("-")])
    ids = [stream_id(rng) for _ in range(rng.randrange(1, 8))]
    trims = [[], [], [], ["MAXLEN", "~", 100], ["MAXLEN", 90 + rng.randrange(30)], ["MINID", start], ["MINID", "~", start]]
    choices = [
        lambda: ["XADD", key, *rng.choice(trims), f"{rng.randrange(1, 4000)}-*", *entry(rng)], lambda: ["XADD", key, "%d-*" % (4000 + rng.randrange(3)), *entry(rng)],
        lambda: ["EVAL", "for i = 1, 30 do redis.call('xadd', KEYS[1], ARGV[1] + i * 20 .. '-*', 'temperature', ARGV[2], 'humidity', i) end", 1, key,
                 rng.randrange(3000), item(rng)],
        lambda: ["XDEL", key, *ids], lambda: ["XLEN", key], lambda: ["XRANGE", key, "-", "+"], lambda: ["XRANGE", key, start, end, "COUNT", 9],
        lambda: ["XREVRANGE", key, end, start], lambda: ["XREVRANGE", key, "+", "-", "COUNT", 20], lambda: ["XREAD", "COUNT", 30, "STREAMS", key, start],
        lambda: ["XTRIM", key, *rng.choice(trims[3:])], lambda: ["XTRIM", key, "MAXLEN", 3000], lambda: ["XINFO", "STREAM", key],
        lambda: ["XGROUP", "CREATE", key, group, start, "MKSTREAM"], lambda: ["XGROUP", "SETID", key, group, start],
        lambda: ["XREADGROUP", "GROUP", group, consumer, "COUNT", 20, "NOACK", "STREAMS", key, ">"], lambda: ["XACK", key, group, *ids],
        lambda: ["XSETID", key, "5000-1"] if rng.random() < 0.05 else ["XLEN", key], lambda: ["XDELEX", key, "KEEPREF", "IDS", len(ids), *ids],
    ]
    return rng.choice(choices)()


def words(rng):
    """One command. Errors are welcome: they must be the same."""
    family = rng.choice([LISTS, STREAMS])
    key, other = rng.choice(family), rng.choice(family)
    when = model.FUTURE_MS + rng.randrange(10**6)
    chance = rng.random()
    if chance < 0.45:
        return list_words(rng)
    if chance < 0.9:
        return stream_words(rng)
    choices = [
        lambda: ["DUMP", rng.choice(LISTS)], lambda: ["COPY", key, other, "REPLACE"], lambda: ["COPY", key, other], lambda: ["RENAME", key, other],
        lambda: ["TYPE", key], lambda: ["OBJECT", "ENCODING", key], lambda: ["PEXPIREAT", key, when], lambda: ["PERSIST", key],
        lambda: ["MOVE", key, 3], lambda: ["DEL", key] if rng.random() < 0.3 else ["TOUCH", key], lambda: ["UNLINK", key] if rng.random() < 0.3 else ["PEXPIRETIME", key],
        lambda: ["EVAL", "local d = redis.call('dump', KEYS[1]); if not d then return 0 end return redis.call('restore', KEYS[2], 0, d, 'REPLACE')", 2, key,
                 other],
        lambda: ["LRANGE", rng.choice(STREAMS), 0, 1], lambda: ["XLEN", rng.choice(LISTS)],
    ]
    return rng.choice(choices)()


def disturb(rng, subject, replica):
    strings_disturb(rng, subject, replica)
    chance = rng.random()
    if chance < 0.1:
        subject.client("CONFIG", "SET", "list-compress-depth", rng.randrange(3), "command-slice-us", rng.choice([0, 1, 500]))
    elif chance < 0.2:
        subject.client("CONFIG", "SET", "activedefrag", rng.choice(["yes", "no"]))


def main():
    model.KEYS[:] = LISTS + STREAMS
    model.COUNTED = "nodes_compressed"
    model.words, model.disturb = words, disturb
    model.main(__doc__, "--list-max-listpack-size", "8", "--stream-node-max-entries", "8", "--value-compression-cpu", "50")


if __name__ == "__main__":
    sys.exit(main())

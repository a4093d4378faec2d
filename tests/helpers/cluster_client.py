#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A checking client of a cluster, through the client library of the project.

    cluster_client.py LIBVALKEY.SO HOST:PORT SEED < TEXT

Changes keys of all types in a few slots at random, and compares every reply with a model, until the standard input ends. Then reads everything
once more. Prints "ops N" and, if there was an error or a wrong reply, that; exit status 1 then."""
import ctypes, os, random, select, sys

TAGS = [b"{06S}", b"{Qi}", b"{5L5}", b"{4Iu}"]  # of the slots 0 to 3
KEYS = 30
STRING, ARRAY, INTEGER, NIL, STATUS, ERROR = 1, 2, 3, 4, 5, 6


class Reply(ctypes.Structure):
    pass


Reply._fields_ = [("type", ctypes.c_int), ("integer", ctypes.c_longlong), ("dval", ctypes.c_double), ("len", ctypes.c_size_t),
                  ("str", ctypes.c_void_p), ("vtype", ctypes.c_char * 4), ("elements", ctypes.c_size_t),
                  ("element", ctypes.POINTER(ctypes.POINTER(Reply)))]


class Context(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("errstr", ctypes.c_char * 128)]


class Options(ctypes.Structure):
    _fields_ = [("initial_nodes", ctypes.c_char_p), ("options", ctypes.c_int), ("connect_timeout", ctypes.c_void_p),
                ("command_timeout", ctypes.c_void_p), ("username", ctypes.c_char_p), ("password", ctypes.c_char_p),
                ("max_retry", ctypes.c_int), ("select_db", ctypes.c_int), ("rest", ctypes.c_void_p * 8)]


def value_of(reply):
    r = reply.contents
    if r.type in (STRING, STATUS):
        return ctypes.string_at(r.str, r.len)
    if r.type == ERROR:
        raise RuntimeError(ctypes.string_at(r.str, r.len).decode())
    if r.type == INTEGER:
        return r.integer
    if r.type == ARRAY:
        return [value_of(r.element[i]) for i in range(r.elements)]
    return None


class Client:
    def __init__(self, path, address):
        self.lib = ctypes.CDLL(path)
        self.lib.valkeyClusterConnectWithOptions.restype = ctypes.POINTER(Context)
        self.lib.valkeyClusterCommandArgv.restype = ctypes.POINTER(Reply)
        # Requests with several keys are tried again until the slot has moved.
        self.context = self.lib.valkeyClusterConnectWithOptions(
            ctypes.byref(Options(initial_nodes=address.encode(), max_retry=200)))
        self.check()

    def check(self):
        if self.context.contents.err:
            raise RuntimeError(self.context.contents.errstr.decode())

    def __call__(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        argv = (ctypes.c_char_p * len(words))(*words)
        lengths = (ctypes.c_size_t * len(words))(*map(len, words))
        reply = self.lib.valkeyClusterCommandArgv(self.context, len(words), argv, lengths)
        if not reply:
            self.check()
        value = value_of(reply)
        self.lib.freeReplyObject(reply)
        return value


class Model:
    """One step: requests of a random kind, each with the reply that the model expects."""

    def __init__(self, client, seed):
        self.client, self.random, self.ops = client, random.Random(seed), 0
        self.keys = {}

    def expect(self, reply, *words):
        self.ops += 1
        try:
            got = self.client(*words)
        except RuntimeError as error:
            raise RuntimeError("%s: %s" % (b" ".join(w if isinstance(w, bytes) else str(w).encode() for w in words).decode(), error))
        if got != reply:
            raise RuntimeError("%r: expected %r, got %r" % (words, reply, got))

    def key(self, kind):
        return self.random.choice(TAGS) + kind + b"%d" % self.random.randrange(KEYS)

    def step(self):
        getattr(self, self.random.choice(["string", "counter", "list", "hash", "zset", "set", "delete", "pair", "script"]))()

    def string(self):
        key, value = self.key(b"s"), b"x" * self.random.randrange(200)
        self.expect(b"OK", "SET", key, value, *(["EX", 1000] if self.random.randrange(2) else []))
        self.keys[key] = value
        self.expect(value, "GET", key)

    def counter(self):
        key = self.key(b"c")
        self.keys[key] = self.keys.get(key, 0) + 1
        self.expect(self.keys[key], "INCR", key)

    def list(self):
        key = self.key(b"l")
        value = self.keys.setdefault(key, [])
        value.append(b"%d" % self.ops)
        self.expect(len(value), "RPUSH", key, value[-1])
        if len(value) > 20:
            self.expect(value.pop(0), "LPOP", key)

    def hash(self):
        key, field = self.key(b"h"), b"f%d" % self.random.randrange(10)
        value, content = self.keys.setdefault(key, {}), b"%d" % self.ops
        self.expect(int(field not in value), "HSET", key, field, content)
        value[field] = content
        if self.random.randrange(4) == 0:
            self.expect([1], "HEXPIRE", key, 1000, "FIELDS", 1, field)

    def zset(self):
        key, member = self.key(b"z"), b"m%d" % self.random.randrange(10)
        value, score = self.keys.setdefault(key, {}), self.ops
        self.expect(int(member not in value), "ZADD", key, score, member)
        value[member] = score

    def set(self):
        key, member = self.key(b"e"), b"%d" % self.random.randrange(20)
        value = self.keys.setdefault(key, set())
        self.expect(int(member not in value), "SADD", key, member)
        value.add(member)

    def delete(self):
        key = self.key(self.random.choice([b"s", b"c", b"l", b"h", b"z", b"e"]))
        self.expect(int(self.keys.pop(key, None) is not None), "DEL", key)
        self.expect(0, "EXISTS", key)

    def pair(self):
        first = self.key(b"s")
        second = first[:first.index(b"}") + 1] + b"s%d" % self.random.randrange(KEYS)
        self.expect([self.keys.get(first), self.keys.get(second)], "MGET", first, second)

    def script(self):
        key = self.key(b"c")
        value = self.keys.pop(key, 0)
        self.expect(value, "EVAL", "local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) redis.call('incrby', KEYS[1], 7) "
                    "return tonumber(v or 0)", 1, key)
        self.keys[key] = 7

    def verify(self):
        for key, value in self.keys.items():
            kind = key[key.index(b"}") + 1:key.index(b"}") + 2]
            if kind == b"s":
                self.expect(value, "GET", key)
            elif kind == b"c":
                self.expect(b"%d" % value, "GET", key)
            elif kind == b"l":
                self.expect(value, "LRANGE", key, 0, -1)
            elif kind == b"h":
                self.expect([value[f] for f in sorted(value)], "HMGET", key, *sorted(value))
                self.expect(len(value), "HLEN", key)
            elif kind == b"z":
                self.expect([b"%d" % value[m] for m in sorted(value)], "ZMSCORE", key, *sorted(value))
                self.expect(len(value), "ZCARD", key)
            else:
                self.expect([1] * len(value), "SMISMEMBER", key, *sorted(value))
                self.expect(len(value), "SCARD", key)


def main():
    model = Model(Client(sys.argv[1], sys.argv[2]), int(sys.argv[3]))
    try:
        while True:
            for _ in range(20):
                model.step()
            if select.select([sys.stdin], [], [], 0)[0] and not os.read(0, 4096):
                break
        model.verify()
    except RuntimeError as error:
        print("after %d requests: %s" % (model.ops, error))
        return 1
    print("ops %d" % model.ops)
    return 0


sys.exit(main())

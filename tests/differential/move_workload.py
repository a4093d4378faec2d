# SPDX-License-Identifier: BSD-3-Clause
"""The writes of moves.py: templates of commands on keys of all types, and processes that send them. {k} is the number of a key, {f} of a field, {n} a
number, {v} a word, {near} milliseconds within which a key expires during the test, {far} those after its end."""
import multiprocessing
import random
import string
import time

from servers import Client, encode

KEYS = 150
BATCH = 500     # commands of a pipeline
BATCHES = 60    # different pipelines of a writer
LIBRARY = """#!lua name=moves
redis.register_function('moves_add', function(keys, args) redis.call('INCRBY', keys[1], args[1]) return redis.call('LPUSH', keys[2], args[1]) end)
"""
# Effects that differ on each server, times, and a type that only the script knows.
SCRIPT = """local t = redis.call('TIME') redis.call('SET', KEYS[1], t[2] .. math.random(1000000), 'PX', 100000 + t[2] % 1000)
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HINCRBY', KEYS[2], 'script', 1) end return redis.call('SPOP', KEYS[3], 2)"""
ACKNOWLEDGE = """local p = redis.call('XPENDING', KEYS[1], 'g', '-', '+', 3) for _, e in ipairs(p) do redis.call('XACK', KEYS[1], 'g', e[1]) end
if p[1] then return redis.call('XDEL', KEYS[1], p[1][1]) end"""
CLAIM = """local p = redis.call('XPENDING', KEYS[1], 'g', '-', '+', 2) for _, e in ipairs(p) do redis.call('XCLAIM', KEYS[1], 'g', 'claimer', 0, e[1]) end"""
STRINGS = """SET str:{k} {v}
SET soon:{k} {v} PX {near}
SET str:{k} {v} PX {far} GET
SET str:{k} {v} KEEPTTL
SET once:{k} {v} NX PX {near}
APPEND str:{k} {v}
INCRBY num:{k} {n}
INCRBYFLOAT float:{k} {n}.25
SETBIT bits:{k} {n} 1
BITFIELD field:{k} INCRBY u8 #{f} {n}
BITOP XOR bits:{k} bits:{f} bits:{k}
SETRANGE str:{k} {f} {v}
GETEX str:{k} PX {far}
GETEX str:{k} PERSIST
GETDEL str:{k}
PFADD hll:{k} {v} {v}
MSET str:{k} {v} str:{f} {v}
PEXPIRE str:{k} {near}
EXPIRE num:{k} 1000
PERSIST num:{k}
COPY str:{k} copy:{k} REPLACE
RENAME copy:{k} renamed:{k}
UNLINK renamed:{k}"""
LISTS = """RPUSH list:{k} {v} {v} {n}
LPUSH list:{k} {v}
LPOP list:{k} 2
LMOVE list:{k} list:{f} LEFT RIGHT
LTRIM list:{k} 0 40
LREM list:{k} 1 {n}
LINSERT list:{k} BEFORE {n} {v}
SORT list:{k} ALPHA STORE sorted:{k}
PEXPIRE sorted:{k} {near}
BLMOVE list:{k} moved:{k} LEFT RIGHT 0.001
DEL moved:{k}"""
SETS = """SADD set:{k} {f} m{f} {v}
SADD ints:{k} {n} {f}
SREM set:{k} m{f} {f}
SPOP set:{k} 2
SPOP set:{k}
SMOVE set:{k} set:{f} m{f}
SINTERSTORE common:{k} set:{k} set:{f}
ZADD zset:{k} {n} m{f} {n}.5 m{n}
ZADD zset:{k} GT CH {n} m{f}
ZINCRBY zset:{k} {n} m{f}
ZREM zset:{k} m{f}
ZPOPMIN zset:{k} 2
ZREMRANGEBYRANK zset:{k} 150 -1
ZRANGESTORE best:{k} zset:{k} 0 3
ZUNIONSTORE union:{k} 2 zset:{k} zset:{f} WEIGHTS 1 2
GEOADD geo:{k} 13.{n} 38.{n} p{f}
GEOSEARCHSTORE near:{k} geo:{k} FROMLONLAT 13 38 BYRADIUS 90 km"""
HASHES = """HSET hash:{k} f{f} {v} f{n} {n}
HSET small:{k} a {v} {f} {n}
HDEL hash:{k} f{f}
HINCRBY hash:{k} number {n}
HINCRBYFLOAT hash:{k} float {n}.5
HSETNX hash:{k} f{f} {v}
HPEXPIRE hash:{k} {near} FIELDS 2 f{f} number
HPEXPIRE small:{k} {near} FIELDS 2 a {f}
HPEXPIRE hash:{k} {far} NX FIELDS 1 f{f}
HEXPIRE small:{k} 1000 FIELDS 1 {f}
HPERSIST hash:{k} FIELDS 1 f{f}
PEXPIRE small:{k} {far}
HGETEX hash:{k} PX {far} FIELDS 1 f{f}
HGETEX hash:{k} PERSIST FIELDS 1 f{f}
HSETEX hash:{k} PX {near} FIELDS 2 f{f} {v} f{n} {v}
HSETEX hash:{k} FNX PX {far} FIELDS 1 f{f} {v}
HSETEX small:{k} KEEPTTL FIELDS 1 {f} {v}
HGETDEL hash:{k} FIELDS 1 f{f}"""
STREAMS = """XADD stream:{k} MAXLEN ~ 120 * a {v} b {n}
XADD stream:{k} NOMKSTREAM MAXLEN 150 * a {v} c {n}
XTRIM stream:{k} MAXLEN 100
XREADGROUP GROUP g c{f} COUNT 3 STREAMS stream:{k} >
XREADGROUP GROUP g noack COUNT 1 NOACK STREAMS stream:{k} >
XREADGROUP GROUP g claimer CLAIM 5 COUNT 2 STREAMS stream:{k} >
XAUTOCLAIM stream:{k} g claimer 0 0 COUNT 3
XGROUP SETID stream:{k} late $
XGROUP CREATECONSUMER stream:{k} g c{f}
XGROUP DELCONSUMER stream:{k} g c{f}
XADD stream:{k} IDMP p{f} i{n} * a {v}
XADD stream:{k} IDMPAUTO auto MAXLEN 140 * a {f}
XCFGSET stream:{k} IDMP-DURATION 300
XADD stream:{k} DELREF MAXLEN 130 * a {v}
XTRIM stream:{k} ACKED MAXLEN 110"""
# Several commands are sent as they are: transactions, other databases.
GROUPS = """MULTI; SET str:{k} {v}; HPEXPIRE hash:{k} {near} FIELDS 1 f{f}; XADD stream:{k} * m {v}; SPOP set:{k}; LPOP list:{k}; EXEC
MULTI; XADD stream:{k} IDMP p{f} i{f} * m {v}; XADD stream:{k} IDMP p{f} i{f} * m {v}; INCR num:{k}; EXEC
MULTI; XREADGROUP GROUP g c{f} COUNT 1 STREAMS stream:{k} >; GETDEL str:{k}; EXEC
SELECT 1; SET str:{k} {v} PX {near}; RPUSH list:{k} {v}; LTRIM list:{k} 0 9; MOVE str:{k} 2; SELECT 0
SELECT 5; SET str:{k} {v}; FLUSHDB; SELECT 0
SWAPDB 2 3
PUBLISH channel {v}
MSETEX 2 str:{k} {v} num:{k} {n} PX {far}
SET str:{k} {v} IFEQ {v}
DELEX str:{k}
BITOP DIFF bits:{f} bits:{k} bits:{f}
FCALL moves_add 2 num:{k} list:{k} {n}
LMOVEM list:{k} list:{f} LEFT RIGHT COUNT 2
INCREX num:{k} BYINT {n} PX {far}"""
SCRIPTS = [("EVAL", SCRIPT, 3, "str:{k}", "hash:{k}", "set:{k}"), ("EVAL", ACKNOWLEDGE, 1, "stream:{k}"), ("EVAL", CLAIM, 1, "stream:{k}")]
# Errors that depend on what the other writers did.
MAY_FAIL = (b"-ERR no such key", b"-READONLY", b"-EXECABORT")


def templates():
    """Each is a list of commands, which are lists of words."""
    lines = "\n".join((STRINGS, LISTS, SETS, HASHES, STREAMS, GROUPS)).split("\n")
    return [[command.split() for command in line.split("; ")] for line in lines] + [[list(words)] for words in SCRIPTS]


def filled(words, r, numbers):
    values = dict(numbers, v="".join(r.choices(string.ascii_lowercase, k=r.choice((3, 10, 10, 70)))), near=r.randint(50, 3000),
                  far=r.randint(10**6, 10**8))
    return [word if word in (SCRIPT, ACKNOWLEDGE, CLAIM) or not isinstance(word, str) else word.format(**values) for word in words]


def commands(template, r):
    numbers = {"k": r.randrange(KEYS), "f": r.randrange(70), "n": r.randrange(400)}
    return [filled(words, r, numbers) for words in template]


def errors_in(reply):
    if isinstance(reply, list):
        return [error for item in reply for error in errors_in(item)]
    return [reply[6:]] if isinstance(reply, str) else []


def known_to(client, template):
    """Whether the server has the commands and their options."""
    allowed = tuple(text.decode()[1:] for text in MAY_FAIL)
    errors = [error for words in commands(template, random.Random(1)) for error in errors_in(client(*words)) if not error.startswith(allowed)]
    refused = ("unknown", "syntax", "wrong number", "unsupported", "invalid", "without multi", "discarded")
    for error in errors:
        if not any(word in error.lower() for word in refused):
            raise RuntimeError(f"{template}: {error}")
    return not errors


def prepare(client, base):
    """Streams with their groups, a library, and `base` keys that do not change."""
    client.many([("XADD", f"stream:{k}", "1-1", "first", "entry") for k in range(KEYS)])
    client.many([("XGROUP", "CREATE", f"stream:{k}", g, "0") for k in range(KEYS) for g in ("g", "late")])
    client("FUNCTION", "LOAD", "REPLACE", LIBRARY)
    for start in range(0, base, 1000):
        client.many([("SET", f"base:{i}", "x" * (i % 100)) for i in range(start, min(base, start + 1000))])
    far = 4102444800000
    client.many([("HSET", f"timed:{i}", *[w for f in range(20 + i % 90) for w in (f"f{f}", "v" * (f % 80))]) for i in range(200)])
    client.many([("HPEXPIREAT", f"timed:{i}", far + i * 1000 + f, "FIELDS", 1, f"f{f}") for i in range(200) for f in range(i % 19)])


def write(number, ports, known, seed, rate, over, shared):
    """A writer: sends pipelines at `rate` commands a second to the port of `ports` that takes writes. shared: commands that were replied to, the
    acknowledged value of the counter, and whether an unexpected error came."""
    r = random.Random(seed * 1000 + number)
    batches = []
    for _ in range(BATCHES):
        batch = []
        while len(batch) < BATCH:
            batch += commands(r.choice(known), r)
        batches.append((len(batch), b"".join(encode(*words) for words in batch) + encode("INCR", f"count:{number}") + encode("ECHO", "end-of-batch")))
    client, at, due = None, 0, time.monotonic()
    while not over.value:
        count, bytes_out = r.choice(batches)
        try:
            client = client or Client(ports[at])
            client.sock.sendall(bytes_out)
            reply = b""
            while not reply.endswith(b"end-of-batch\r\n"):
                part = client.sock.recv(1 << 20)
                if not part:
                    raise ConnectionError("closed")
                reply += part
            errors = [line for line in reply.split(b"\r\n") if line.startswith(b"-")]
            errors = [line for line in errors if not line[1:].isdigit()]
            unexpected = [line for line in errors if not line.startswith(MAY_FAIL)]
            if unexpected:
                shared["error"].value = unexpected[0][:200]
            counter = reply.rsplit(b"\r\n", 4)[1]
            if counter.startswith(b":"):
                shared["acked"].value = int(counter[1:])
                shared["sent"].value += count
            if any(b"READONLY" in line for line in errors):
                raise ConnectionError("a replica")
        except OSError:
            if client:
                client.close()
            client, at = None, 1 - at
        due = max(due, time.monotonic() - 1) + count / rate
        time.sleep(max(0, due - time.monotonic()))
    if client:
        client.close()


class Writers:
    """Processes that write until end()."""

    def __init__(self, ports, known, seed, rate, count=2):
        self.over = multiprocessing.Value("b", 0)
        self.shared = [{"acked": multiprocessing.Value("q", 0), "sent": multiprocessing.Value("q", 0),
                        "error": multiprocessing.Array("c", 256)} for _ in range(count)]
        self.begun = time.monotonic()
        self.processes = [multiprocessing.Process(target=write, args=(i, ports, known, seed, rate / count, self.over, self.shared[i]), daemon=True)
                          for i in range(count)]
        for process in self.processes:
            process.start()

    def sent(self):
        return sum(one["sent"].value for one in self.shared)

    def acked(self):
        return [one["acked"].value for one in self.shared]

    def errors(self):
        return [one["error"].value.decode() for one in self.shared if one["error"].value]

    def end(self):
        self.over.value = 1
        for process in self.processes:
            process.join()
        return self.sent() / (time.monotonic() - self.begun)

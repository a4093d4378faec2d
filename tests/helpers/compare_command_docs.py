#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what two servers say of the commands both know: COMMAND INFO, DOCS, LIST, GETKEYS and
GETKEYSANDFLAGS, in RESP2 and RESP3, wire types included, order left out where it has no meaning.

  compare_command_docs.py OURS_HOST:PORT PEER_HOST:PORT

Ours runs with `extended-commands no`. Exit code 0 when all is equal, or when the peer does not answer (said so); 1 otherwise."""

import socket
import sys

REQUESTS = """
get k|get|set k v|set k v GET|set k v EX 10 get|set k v NX|set k|del a b c|del|exists a b|ping|client id
client|client nope|config get x|nope a|mget a b|mset a 1 b 2|mset a 1 b|msetnx a 1|msetex 2 a 1 b 2|msetex 3 a 1
blpop a b 0|bzpopmin a 0|lmove a b left right|blmove a b left right 0|lmpop 2 a b left|lmpop x a left
lmpop 0 a left|lmpop 3 a left|blmpop 0 2 a b left|eval x 2 a b c|eval x 0|eval x 3 a|eval x y a|eval x -1 a
evalsha x 1 a|eval_ro x 1 a|fcall f 1 a|fcall_ro f 1 a|zunionstore d 2 a b|zunionstore d 3 a b|zunionstore d 0 a
zinterstore d 1 a|zunion 2 a b|zdiff 2 a b|sintercard 1 a|sinterstore d a b|sort k|sort k by w* get x* store d
sort k store d STORE e|sort k limit store d store e|sort k store|sort_ro k by x|georadius k 1 2 3 km
georadius k 1 2 3 km store d|georadius k 1 2 3 km storedist d store e|georadiusbymember k m 1 km store d
bitfield k|bitfield k get u8 0|bitfield k set u8 0 1|bitfield k get u8 0 incrby u8 0 1|bitfield k overflow wrap
migrate h 1 k 0 10|migrate h 1 key 0 10 keys a b|migrate h 1 k 0 10 auth x|xread streams a b 1 2
xread count 1 streams a b 1 2|xread streams a b 1|xread count 1 streams|xreadgroup group streams c streams a >
xreadgroup group g c count 1 block 1 noack streams a b > >|xgroup create a g $|xinfo stream a|xinfo help
object encoding k|object|object encoding|memory usage k|pfcount a b|pfmerge d a|pfadd a b|getex k ex 1|getdel k
xadd k * a b|copy a b|rename a b|bitop and d a b|subscribe a|ssubscribe a|spublish a b|publish a b|watch a b
hset k f v|hsetex k fields 1 f v|hgetex k fields 1 f|hexpire k 1 fields 1 f|restore k 0 x|touch a b|unlink a b
lcs a b|lpush a 1|zadd a 1 m|zrangestore a b 0 1|geosearchstore d s frommember m byradius 1 m|delifeq a b
"""
LISTS = ["", "FILTERBY ACLCAT fast", "FILTERBY aclcat STRING", "FILTERBY ACLCAT nope", "FILTERBY MODULE nope",
         "FILTERBY PATTERN *e?", "FILTERBY PATTERN C*|[gs]*", "FILTERBY PATTERN", "FILTERBY x y", "x"]


class Server:
    """Replies as (type byte, value): bytes, number, or a list of replies; maps are flat lists."""

    def __init__(self, address, proto):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.file = self.socket.makefile("rb")
        if proto == 3:
            self.ask("HELLO", "3")

    def ask(self, *words):
        words = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = chr(line[0]), line[1:-2]
        if kind == "$" and rest != b"-1":
            return kind, self.file.read(int(rest) + 2)[:-2]
        if kind in "*~%" and rest != b"-1":
            count = int(rest) * (2 if kind == "%" else 1)
            return kind, [self.read() for _ in range(count)]
        return kind, rest


def name_of(reply):
    """The full name of a subcommand that a reply is, or begins with; None otherwise."""
    kind, value = reply
    if kind in "*~%" and value:
        return name_of(value[0])
    return value.decode() if kind == "$" and b"|" in value else None


def tidy(reply, known):
    """The reply without subcommands that not both know, what has no order sorted."""
    kind, value = reply
    if kind not in "*~%":
        return reply
    if kind == "%" or (value and value[0][0] == "$" and name_of(value[0]) and len(value) > 1 and value[1][0] in "*%"):
        pairs = [(value[i], tidy(value[i + 1], known)) for i in range(0, len(value), 2)]
        pairs = [pair for pair in pairs if name_of(pair[0]) is None or name_of(pair[0]) in known]
        return kind, [item for pair in sorted(pairs, key=repr) for item in pair]
    items = [tidy(item, known) for item in value
             if not (item[0] == "*" and name_of(item) and name_of(item) not in known)]
    unordered = kind == "~" or all(item[0] == "+" for item in items) or any(name_of(item) for item in items)
    return kind, sorted(items, key=repr) if unordered else items


def questions(known):
    """Each a list of words."""
    for name in sorted(known):
        yield ["COMMAND", "INFO", name]
        yield ["COMMAND", "DOCS", name]
    yield ["COMMAND", "INFO", "nope", "get|x", "client|nope", "client|id|x", "GeT"]
    yield ["COMMAND", "DOCS", "nope", "get|x"]
    for request in REQUESTS.replace("\n", "|").split("|"):
        words = request.split()
        if words and (words[0] in known or words[0] == "nope"):
            yield ["COMMAND", "GETKEYS"] + words
            yield ["COMMAND", "GETKEYSANDFLAGS"] + words


def names_listed(reply, known):
    kind, value = reply
    return (kind, sorted(n for _, n in value if n.decode() in known)) if kind == "*" else reply


def compare(ours, theirs, proto):
    """Prints the differences; returns how many there are."""
    listed = [{value.decode() for _, value in server.ask("COMMAND", "LIST")[1]} for server in (ours, theirs)]
    known = listed[0] & listed[1]
    for name in sorted(listed[0] - listed[1]):
        print(f"RESP{proto}: only ours has {name}")
    differences = len(listed[0] - listed[1])
    pairs = [(words, tidy(ours.ask(*words), known), tidy(theirs.ask(*words), known))
             for words in questions(known)]
    words = ["COMMAND", "HELP"]
    pairs.append((words, ours.ask(*words), theirs.ask(*words)))
    for words in LISTS:
        words = ["COMMAND", "LIST"] + words.split()
        pairs.append((words, names_listed(ours.ask(*words), known), names_listed(theirs.ask(*words), known)))
    for words, our_reply, their_reply in pairs:
        if our_reply != their_reply:
            print(f"RESP{proto} {' '.join(words)}\n  ours  {our_reply}\n  peer  {their_reply}")
            differences += 1
    print(f"RESP{proto}: {len(known)} commands, {len(pairs)} questions, {differences} differences")
    return differences


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        Server(sys.argv[2], 2)
    except OSError as error:
        print(f"skipped: no peer at {sys.argv[2]} ({error})")
        return 0
    differences = sum(compare(Server(sys.argv[1], proto), Server(sys.argv[2], proto), proto) for proto in (2, 3))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

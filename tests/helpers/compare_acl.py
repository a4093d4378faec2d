#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what two servers allow: for one or more requests of every command, what ACL DRYRUN says about users that lack
the command, all keys, reading, writing, channels, the database, or one of the keys; and that the request itself is
refused with the error that belongs to it.

  compare_acl.py OURS_HOST:PORT PEER_HOST:PORT            prints differences
  compare_acl.py --record FILE PEER_HOST:PORT             writes what the real server says

The recorded file is tests/assets/acl_verdicts.txt; tests/unit/acl_verdicts.tcl compares a server with it. A line is the
request, a tab, and verdicts in the order of CASES, then one for each key with other keys allowed: `.` allowed, `c` the
command, `k` and `h` a key and a channel with its name, `d` a database with what the error names, `e` another error."""

import sys

from compare_command_docs import Server

# Requests of commands whose keys depend on more than the number of arguments; others are made from the specification.
MORE = """
set k1 v|set k1 v get|set k1 v ex 1 get|bitfield k1 get u8 0|bitfield k1 set u8 0 1|bitfield k1|bitop and k1 k2 k3
georadius k1 0 0 1 m|georadius k1 0 0 1 m store k2|georadius k1 0 0 1 m store k2 storedist k3
georadiusbymember k1 a 1 m|georadiusbymember k1 a 1 m storedist k2|sort k1|sort k1 store k2|sort k1 by nosort store k2
sort_ro k1|copy k1 k2|copy k1 k2 db 1|copy k1 k2 db 1 replace db 2|move k1 1|select 1|swapdb 0 1|flushall|flushdb
xread streams k1 k2 0 0|xread count 1 block 1 streams k1 0|xreadgroup group g c streams k1 k2 > >
lmpop 2 k1 k2 left|blmpop 0 2 k1 k2 left|zmpop 2 k1 k2 min|bzmpop 0 2 k1 k2 min|sintercard 2 k1 k2|zintercard 2 k1 k2
zunionstore k1 2 k2 k3|zinterstore k1 2 k2 k3|zdiffstore k1 2 k2 k3|zunion 2 k1 k2|zinter 2 k1 k2|zdiff 2 k1 k2
eval s 2 k1 k2 a|eval s 0|eval s -1 k1|evalsha s 1 k1|eval_ro s 1 k1|evalsha_ro s 1 k1|fcall f 1 k1|fcall_ro f 1 k1
mset k1 1 k2 2|msetnx k1 1 k2 2|msetex 2 k1 1 k2 2|mget k1 k2|del k1 k2|unlink k1 k2|exists k1 k2|touch k1 k2
watch k1 k2|pfcount k1 k2|pfmerge k1 k2 k3|sunionstore k1 k2 k3|sinterstore k1 k2 k3|sdiffstore k1 k2 k3
blpop k1 k2 0|brpop k1 k2 0|bzpopmin k1 k2 0|bzpopmax k1 k2 0|zadd k1 1 a|xadd k1 * a b|xgroup create k1 g 0
migrate h 1 k1 0 10|migrate h 1  0 10 keys k1 k2|migrate h 1  0 10 auth keys keys k1 k2|object encoding k1
memory usage k1|zrangestore k1 k2 0 1|lmove k1 k2 left left|blmove k1 k2 left left 0|smove k1 k2 a|rename k1 k2
geosearchstore k1 k2 frommember a byradius 1 m|publish h1 m|spublish h1 m|subscribe h1 h2|ssubscribe h1 h2
psubscribe h1 h2|unsubscribe h1|punsubscribe h1|sunsubscribe h1|pubsub numsub h1|pubsub channels h1|lcs k1 k2
getex k1 ex 1|getex k1|hgetex k1 ex 1 fields 1 f|hgetdel k1 fields 1 f|xinfo stream k1|xpending k1 g|xautoclaim k1 g c 1 0
xclaim k1 g c 1 0-1|zadd k1 incr 1 a|restore k1 0 x|dump k1|sscan k1 0|hscan k1 0|zscan k1 0|scan 0|keys *
"""
# Commands for which this server requires the right to read, because the reply has data; the recorded file has the real
# server's verdict, and the test knows the same list.
STRICTER = ("xclaim", "xautoclaim", "zadd k1 incr")
# name, rules
CASES = [("command", None), ("keys", "+@all &*"), ("read", "+@all &* %W~*"), ("write", "+@all &* %R~*"),
         ("channels", "+@all ~*"), ("database", "+@all ~* &* db=9")]


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def made_request(info):
    """A request from COMMAND INFO: keys k1, k2..., other arguments a1, a2..."""
    name, arity, specs = text(info[0][1]), int(info[1][1]), info[8][1]
    words = name.split("|")
    words += ["a%d" % i for i in range(1, abs(arity) - len(words) + 1)]
    if arity < 0:
        words.append("a9")
    keys = 0
    for spec in specs:
        fields = {text(spec[1][i][1]): spec[1][i + 1] for i in range(0, len(spec[1]), 2)}
        if "not_key" in [text(flag[1]) for flag in fields["flags"][1]]:
            continue
        begin = {text(fields["begin_search"][1][i][1]): fields["begin_search"][1][i + 1][1] for i in (0, 2)}
        find = {text(fields["find_keys"][1][i][1]): fields["find_keys"][1][i + 1][1] for i in (0, 2)}
        if text(begin["type"]) != "index" or text(find["type"]) != "range":
            return None
        at = int(text(begin["spec"][1][1]))
        last, step = int(text(find["spec"][1][1])), int(text(find["spec"][3][1]))
        end = at + last if last >= 0 else len(words) + last
        for i in range(at, min(end, len(words) - 1) + 1, max(step, 1)):
            keys += 1
            words[i] = "k%d" % keys
    return " ".join(words)


def requests_of(server):
    """The written requests, then one for every other command."""
    written = [r for line in MORE.strip().splitlines() for r in line.split("|")]
    known = {(r.split(" ")[0]) for r in written} | {"|".join(r.split(" ")[:2]) for r in written}
    found = []

    def add(info):
        if info[9][1]:
            for sub in info[9][1]:
                add(sub[1])
        elif text(info[0][1]) not in known:
            request = made_request(info)
            if request:
                found.append(request)

    for info in server.ask("COMMAND")[1]:
        add(info[1])
    return written + sorted(found)


def code(reply):
    kind, value = reply
    said = text(value)
    if kind == "+":
        return "."
    if kind == "-":
        return "e"
    for words, letter in ((" to run the '", "c"), (" access database ", "d"), (" access the '", "")):
        if words not in said:
            continue
        rest = said.split(words)[1]
        if letter == "c":
            return "c"
        if letter == "d":
            return "d:" + rest
        return ("k:" if rest.endswith("key") else "h:") + rest.split("'")[0]
    return "?"


def name_of_command(server, words):
    full = "|".join(words[:2])
    info = server.ask("COMMAND", "INFO", full)[1][0][1]
    return full if isinstance(info, list) else words[0]


def verdicts(server, request):
    words = request.split(" ")
    name = name_of_command(server, words)
    keys = [w for w in words if w[0:1] == "k" and w[1:].isdigit()]
    rules = [("+@all ~* &* -" + name) if c[1] is None else c[1] for c in CASES]
    for key in keys:
        rules.append("+@all &* " + " ".join("~" + k for k in keys if k != key))
    out = []
    for rule in rules:
        kind, value = server.ask("ACL", "SETUSER", "tested", "reset", "on", "nopass", *[w for w in rule.split(" ") if w])
        assert kind == "+", (rule, value)
        out.append(code(server.ask("ACL", "DRYRUN", "tested", *words)))
    return out


def executed(server, address, request):
    """Runs the request as users that lack something; returns the error replies. A request that is allowed is not run."""
    words = request.split(" ")
    name = name_of_command(server, words)
    out = []
    for rule in ("+@all ~* &* -" + name, "+@all &*", "+@all ~*", "+@all ~* &* db=9"):
        server.ask("ACL", "SETUSER", "tested", "reset", "on", "nopass", *rule.split(" "))
        if code(server.ask("ACL", "DRYRUN", "tested", *words)) in (".", "e"):
            continue
        client = Server(address, 2)
        client.ask("AUTH", "tested", "x")
        kind, value = client.ask(*words)
        client.socket.close()
        out.append("%s with %s: %s %s" % (request, rule, kind, text(value)))
    return out


def record(path, address):
    server = Server(address, 2)
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Written by tests/helpers/compare_acl.py from a real server; see there for the format.\n")
        for request in requests_of(server):
            f.write(request + "\t" + " ".join(verdicts(server, request)) + "\n")


def compare(ours_address, peer_address):
    ours, peer = Server(ours_address, 2), Server(peer_address, 2)
    compared = missing = stricter = 0
    bad = []
    for request in requests_of(peer):
        words = request.split(" ")
        if text(ours.ask("ACL", "DRYRUN", "default", *words)[1]).endswith("not found"):
            missing += 1
            continue
        a, b = verdicts(ours, request), verdicts(peer, request)
        compared += len(a)
        if a != b and request.startswith(STRICTER):
            stricter += 1
        elif a != b:
            bad.append("%s: ours %s, peer %s" % (request, a, b))
        a, b = executed(ours, ours_address, request), executed(peer, peer_address, request)
        compared += len(a)
        bad += sorted(set(a) ^ set(b))
    print("\n".join(bad))
    print("%d verdicts compared, %d differ, %d requests stricter, %d of commands that do not exist here"
          % (compared, len(bad), stricter, missing))
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--record":
        record(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        sys.exit(compare(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(__doc__)

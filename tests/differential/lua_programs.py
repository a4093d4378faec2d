#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs generated Lua programs on two servers and prints where their replies differ.

  lua_programs.py OURS PEER [--seed 1] [--count 20000] [--area NAME ...]
  lua_programs.py OURS PEER --show SEED           prints one program and both replies
  lua_programs.py OURS PEER --record FILE --count 500    writes programs with the replies of PEER, if ours are equal

OURS and PEER are binaries of servers; they are started here and stopped at the end. A program is decided by its seed alone.
The programs of a round are sent in one pipeline to both servers, so a difference is tried again by itself, and then shrunk:
lines and then words are removed as long as the replies differ. Equal kinds of differences are counted, not repeated.

What is not compared: addresses of tables and functions, and what a program may not depend on (times, memory)."""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import lua_data
import lua_libraries
from lua_choices import Choices
from lua_core import Core

# R holds the results, P adds values as one text, G bounds what a program does. On one line, so that the program begins on
# the second. Keys are sorted: the order of a table is compared by the area `orders` only.
PREAMBLE = (
    "local R,N,g={},0,0 local ty,fm,nx,st,cat,ts,sort,er=type,string.format,next,select,table.concat,tostring,table.sort,error "
    "local function S(v,d) local t=ty(v) if t=='string' then return '\"'..v..'\"' elseif t=='number' then "
    "return v~=v and 'nan' or fm('%.17g',v) elseif t=='table' then if d>4 then return '{...}' end local o,k,x={},nx(v) "
    "while k~=nil do o[#o+1]=S(k,d+1)..'='..S(x,d+1) k,x=nx(v,k) end sort(o) return '{'..cat(o,' ')..'}' "
    "elseif t=='function' or t=='thread' then return t else return ts(v) end end "
    "local function P(...) local o={} for i=1,st('#',...) do o[i]=S((st(i,...)),0) end N=N+1 R[N]=cat(o,' ') end "
    "local function G() g=g+1 if g>400 then er('guard') end end\n")
AREAS = (  # name, weight, generator, needs data
    ("core", 22, lambda c: Core(c).program(), False), ("patterns", 14, lua_libraries.patterns, False),
    ("formats", 7, lua_libraries.formats, False), ("strings", 4, lua_libraries.strings, False),
    ("numbers", 4, lua_libraries.numbers, False), ("bits", 3, lua_libraries.bits, False),
    ("tables", 5, lua_libraries.tables, False), ("orders", 2, lua_libraries.orders, False),
    ("base", 3, lua_libraries.base, False), ("loading", 4, lua_libraries.loading, False),
    ("sandbox", 4, lua_libraries.sandbox, False), ("json", 10, lua_data.json, False),
    ("msgpack", 7, lua_data.msgpack, False), ("structs", 7, lua_data.structs, False),
    ("commands", 7, lua_data.commands, True), ("api", 2, lua_data.apis, False), ("replies", 5, lua_data.replies, False),
    ("mutated", 4, None, False), ("headers", 1, lua_data.headers, True), ("functions", 2, lua_data.function_library, True))
PLAIN = ("replies", "headers", "functions")  # areas without the preamble
MUTABLE = ("core", "patterns", "tables", "base", "strings")
PIPELINE = 500
PATIENCE, PATIENCE_SHRINKING, SHRINKING_MAX = 20, 2, 15  # seconds
DID_NOT_END = b"the program did not end"
ADDRESS = re.compile(rb"(table|function|thread|userdata): (?:builtin#\d+|0x[0-9a-f]+)|function: builtin: [0-9a-f]+")
DIGEST = re.compile(rb"f_[0-9a-f]{40}|(?<=script: )[0-9a-f]{40}")


class Program:
    def __init__(self, seed, areas):
        c = Choices(seed)
        self.seed = seed
        total = sum(area[1] for area in areas)
        at = c.random() * total
        for area in areas:
            at -= area[1]
            if at < 0:
                break
        self.area, _, make, self.needs_data = area
        if make is None:
            other = [one for one in AREAS if one[0] in MUTABLE]
            self.lines = lua_libraries.mutate(c, c.pick(other)[2](c))
        else:
            self.lines = make(c)
        self.proto = 3 if c.chance(35) else 2
        self.keys = ["k1", "k2"][:c.pick((0, 0, 0, 1, 2))]
        self.args = c.several(("a", "", "1", "x y", "\0", "-5"), 0, 2)

    def text(self, lines=None):
        lines = self.lines if lines is None else lines
        if self.area in PLAIN:
            return "\n".join(lines)
        return PREAMBLE + "\n".join(lines) + "\nreturn R"

    def requests(self, lines=None):
        """The commands of this program; the replies of all are compared."""
        text = self.text(lines)
        tail = [str(len(self.keys))] + self.keys + self.args
        if self.area == "functions":
            return [["FLUSHALL"], ["FUNCTION", "FLUSH"], ["FUNCTION", "LOAD", text], ["FCALL", "f"] + tail,
                    ["FCALL_RO", "f"] + tail]
        request = [["EVAL", text] + tail]
        return [["FLUSHALL"]] + request if self.needs_data else request


def encoded(requests):
    out = []
    for request in requests:
        out.append(b"*%d\r\n" % len(request))
        for arg in request:
            data = arg.encode("latin-1", "replace")
            out.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(out)


class Closed(Exception):
    pass


class Connection:
    def __init__(self, path, proto):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(PATIENCE)
        self.data, self.at = b"", 0
        self.socket.sendall(b"HELLO %d\r\n" % proto)
        self.reply()

    def more(self):
        got = self.socket.recv(1 << 18)
        if not got:
            raise Closed()
        self.data = self.data[self.at:] + got
        self.at = 0

    def line(self):
        while True:
            end = self.data.find(b"\r\n", self.at)
            if end >= 0:
                line = self.data[self.at:end]
                self.at = end + 2
                return line
            self.more()

    def reply(self):
        """One reply as (bytes)."""
        parts = []
        left = 1
        while left:
            left -= 1
            line = self.line()
            parts.append(line)
            kind = line[:1]
            if kind in b"$=!":
                size = int(line[1:])
                if size >= 0:
                    while len(self.data) - self.at < size + 2:
                        self.more()
                    parts.append(self.data[self.at:self.at + size])
                    self.at += size + 2
            elif kind in b"*~>":
                left += max(0, int(line[1:]))
            elif kind in b"%|":
                left += 2 * int(line[1:]) + (kind == b"|")
        return b"\r\n".join(parts)


class Server:
    """A server of ours or of the peer, with a connection of each protocol."""

    def __init__(self, binary, folder, name):
        self.binary, self.path, self.folder = binary, os.path.join(folder, name + ".sock"), folder
        self.log = open(os.path.join(folder, name + ".log"), "ab")
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "--port", "0", "--unixsocket", self.path, "--save", "", "--dir", self.folder, "--lua-time-limit", "300",
             "--enable-debug-command", "yes"], stdout=self.log, stderr=self.log)
        self.connect()

    def connect(self):
        until = time.monotonic() + 20
        while True:
            try:
                self.links = {proto: Connection(self.path, proto) for proto in (2, 3)}
                return
            except (OSError, Closed):
                if time.monotonic() > until:
                    sys.exit("%s does not start; see %s" % (self.binary, self.log.name))
                time.sleep(0.02)

    def stop(self):
        self.process.kill()  # it may be in a program that does not end
        self.process.wait()

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def send(self, proto, data):
        self.links[proto].socket.sendall(data)

    def receive(self, proto, count):
        return [self.links[proto].reply() for _ in range(count)]

    def ask(self, program, lines=None, patience=PATIENCE):
        """The replies of one program, or what happened instead."""
        requests = program.requests(lines)
        try:
            self.links[program.proto].socket.settimeout(patience)
            self.send(program.proto, encoded(requests))
            return self.receive(program.proto, len(requests))
        except (Closed, ConnectionError):
            self.restart()
            return [b"the server ended"]
        except TimeoutError:
            self.restart()
            return [DID_NOT_END]


SIZE = re.compile(rb"(?:^|(?<=\r\n))\$\d+(?=\r\n)")


def plain(replies):
    """Replies without what may differ: addresses, and with them the lengths of strings."""
    text = b"\r\n\r\n".join(replies)
    text = ADDRESS.sub(lambda m: (m.group(1) or b"function") + b": ADDRESS", text)
    if os.environ.get("LOOSE"):
        text = re.sub(rb"user_script:\d+: ", b"", text)
        text = re.sub(rb" to '[^']*' \(", b" to 'x' (", text)
        text = re.sub(rb"-nan|nan", b"nan", text)
    return SIZE.sub(b"$", text)


def differ(ours, theirs):
    return ours != theirs and plain(ours) != plain(theirs)


# ------------------------------------------------------------------ shrinking

LOOP = re.compile(r"\b(?:while|for|repeat)\b")
WORD = re.compile(r"\s+|\w+|\"(?:[^\"\\]|\\.)*\"|\\.|.", re.S)


def remove_parts(parts, still, limit):
    """Removes parts as long as still(parts)."""
    size = max(1, len(parts) // 2)
    while size and limit[0] > 0:
        i, removed = 0, False
        while i < len(parts) and limit[0] > 0:
            limit[0] -= 1
            fewer = parts[:i] + parts[i + size:]
            if still(fewer):
                parts, removed = fewer, True
            else:
                i += size
        if not removed or size > 1:
            size //= 2
    return parts


def shrunk(program, servers):
    first = kind_of(*[plain(server.ask(program)) for server in servers])
    until = time.monotonic() + SHRINKING_MAX

    def still(lines):
        # Without its guard a loop may have no end.
        text = "\n".join(lines)
        if time.monotonic() > until or text.count("G()") < len(LOOP.findall(text)):
            return False
        replies = [server.ask(program, lines, PATIENCE_SHRINKING) for server in servers]
        return [DID_NOT_END] not in replies and differ(*replies) and kind_of(*[plain(one) for one in replies]) == first

    limit = [250]
    lines = remove_parts(program.lines, still, limit)
    limit = [400]
    words = remove_parts(WORD.findall("\n".join(lines)), lambda w: still("".join(w).split("\n")), limit)
    return "".join(words).split("\n")


def first_difference(ours, theirs):
    """The lines of both replies where they begin to differ."""
    i = 0
    while i < min(len(ours), len(theirs)) and ours[i] == theirs[i]:
        i += 1
    start = ours.rfind(b"\r\n", 0, i)
    start = start + 2 if start >= 0 else 0
    return tuple(text[max(start, i - 60):i + 120].split(b"\r\n")[0] for text in (ours, theirs))


def general(text):
    """A line without its numbers and strings; texts of errors stay."""
    text = re.sub(rb"'[^']*'|\"[^\"]*\"" if not text.startswith(b"false") else rb"'[^']*'", b"S", text)
    return re.sub(rb"-?\d+(\.\d+)?(e[-+]?\d+)?|[^\x20-\x7e]+", b"N", text)[:60]


def kind_of(ours, theirs):
    """Differences of equal kind have the same texts where they begin, but for numbers and strings."""
    return tuple(general(one) for one in first_difference(ours, theirs))


# ------------------------------------------------------------------ rounds

def run_round(programs, servers):
    """Sends the programs to both servers and yields those whose replies differ."""
    for proto in (2, 3):
        batch = [one for one in programs if one.proto == proto]
        requests = [one.requests() for one in batch]
        data = encoded([request for one in requests for request in one])
        try:
            for server in servers:
                server.send(proto, data)
            replies = [[server.receive(proto, len(one)) for one in requests] for server in servers]
        except (Closed, ConnectionError, TimeoutError):
            # One of them ended, or hangs: the programs one by one.
            for server in servers:
                server.restart()
            for program in batch:
                if differ(*[server.ask(program) for server in servers]):
                    yield program
            continue
        for program, ours, theirs in zip(batch, *replies):
            if differ(ours, theirs):
                yield program


def show(program, lines, replies, out=sys.stdout):
    out.write("seed %d, area %s, RESP%d, keys %s, arguments %s\n" % (
        program.seed, program.area, program.proto, program.keys, program.args))
    out.write("".join("    %s\n" % line for line in "\n".join(lines).encode("unicode_escape").decode().split("\\n")))
    texts = [plain(one) for one in replies]
    for name, text in zip(("ours", "peer"), first_difference(*texts)):
        out.write("  %s: %r\n" % (name, text))
    out.flush()


def compare(options, servers):
    areas = [area for area in AREAS if not options.area or area[0] in options.area]
    kinds, count, started = {}, 0, time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    if options.only:
        with open(options.only, encoding="ascii") as file:
            seeds = [int(line) for line in file]
    listed = open(options.differing, "w", encoding="ascii", buffering=1) if options.differing else None
    for start in range(0, len(seeds), PIPELINE):
        programs = [Program(seed, areas) for seed in seeds[start:start + PIPELINE]]
        count += len(programs)
        for program in run_round(programs, servers):
            replies = [server.ask(program) for server in servers]
            if not differ(*replies):
                print("seed %d, area %s: differs only after others" % (program.seed, program.area), flush=True)
                continue
            kind = (program.area,) + kind_of(*[plain(one) for one in replies])
            if listed:
                listed.write("%d\n" % program.seed)
            kinds.setdefault(kind, []).append(program.seed)
            if len(kinds[kind]) > 1 or len(kinds) > options.kinds:
                continue
            lines = shrunk(program, servers)
            show(program, lines, [server.ask(program, lines) for server in servers])
        if options.progress and count % 20000 < PIPELINE:
            print("%d programs, %d s, %d differ" % (count, time.monotonic() - started, sum(len(same) for same in kinds.values())),
                  flush=True)
    print("\n%d programs in %d s; %d differ, of %d kinds" % (
        count, time.monotonic() - started, sum(len(same) for same in kinds.values()), len(kinds)))
    for kind, same in sorted(kinds.items(), key=lambda one: -len(one[1])):
        print("  %d (seed %d) %s: %r / %r" % ((len(same), same[0]) + kind))
    return 1 if kinds else 0


# ------------------------------------------------------------------ recording

# What a recorded program does not use: libm differs between platforms, libraries need more than one request.
UNRECORDED = re.compile(r"math\.(a?(sin|cos|tan)|exp|log|pow|sqrt)|\^|collectgarbage|[^\n -~]")
TEXT_MAX, REPLY_MAX = 900, 450


def tcl_list(words):
    return "{%s}" % " ".join("{%s}" % word for word in words)


def escaped(data):
    """Printable, for `subst -nocommands -novariables` of Tcl."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else "\\x%02x" % byte for byte in data)


def record(options, servers):
    """Writes programs and the replies of the last server. Those whose replies differ are listed and left out."""
    areas = [area for area in AREAS if area[0] not in ("functions", "orders")]
    seed, written, seen, left_out = options.seed, 0, {}, []
    with open(options.record, "w", encoding="ascii") as out:
        out.write("# Programs with the replies of the released server: tests/differential/lua_programs.py --record; read by\n"
                  "# tests/unit/script_programs.tcl. After the preamble, for each program: a line with its seed, area, protocol,\n"
                  "# whether it needs an empty dataset, keys, arguments and number of lines; its lines; the reply, escaped.\n")
        out.write(PREAMBLE)
        while written < options.count:
            program = Program(seed, areas)
            seed += 1
            text = "\n".join(program.lines)
            if len(text) > TEXT_MAX or UNRECORDED.search(text) or "\0" in "".join(program.args):
                continue
            replies = [server.ask(program)[-1:] for server in servers]
            reply = b"".join(replies[-1])
            if reply[:1] not in b"+-:$*_#,%~=(>!" or ADDRESS.search(reply) or len(reply) > REPLY_MAX:
                continue
            kind = general(reply)
            seen[kind] = seen.get(kind, 0) + 1
            if reply.startswith(b"-") and seen[kind] > 1:
                continue
            if len(servers) > 1 and differ(*replies):
                left_out.append(program)
                continue
            lines = text.split("\n")
            out.write("%d %s %d %d %s %s %d\n%s\n%s\n" % (
                program.seed, program.area, program.proto, program.needs_data, tcl_list(program.keys), tcl_list(program.args),
                len(lines), "\n".join(lines), escaped(reply)))
            written += 1
    for program in left_out:
        show(program, program.lines, [server.ask(program) for server in servers])
    print("%d programs, %d left out" % (written, len(left_out)))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--area", nargs="*", help=" ".join(area[0] for area in AREAS))
    parser.add_argument("--kinds", type=int, default=60, help="kinds of differences that are shrunk and listed")
    parser.add_argument("--differing", metavar="FILE", help="writes the seeds of the programs that differ")
    parser.add_argument("--only", metavar="FILE", help="runs the programs with the seeds of this file")
    parser.add_argument("--show", type=int)
    parser.add_argument("--record")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(binary, folder, "server%d" % i) for i, binary in enumerate(options.binaries)]
        try:
            if options.record:
                return record(options, servers)
            if options.show is not None:
                program = Program(options.show, [area for area in AREAS if not options.area or area[0] in options.area])
                print(program.text())
                for server in servers:
                    print(b"\n".join(server.ask(program)).decode("latin-1"))
                return 0
            return compare(options, servers)
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of docs/migration.md, or of docs/from-redis.md, as they are written, from a peer's programs to ours and back.

    tests/helpers/migration_guide.py PEER_FOLDER [--guide from-redis] [--ours FOLDER] [--only WORD] [--verbose]

PEER_FOLDER has valkey-server and valkey-cli of the peer, or redis-server and redis-cli (each name is used if the other is missing); ours are in src/ unless another folder is given. Each section is run in a folder of its own, against an old server
with data of all types, while a client writes a counter; ports are replaced by free ones. Afterwards the data is compared,
and no acknowledged write may be missing. Ends with "N passed, N failed"."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from ports import reserve_node_port  # noqa: E402

# By guide: section, what is started before it, the port that has the data after it, and whether clients write meanwhile.
SECTIONS = {"migration": (
    ("Before", "server", 6379, False),
    ("Live", "server", 6379, True),
    ("With files", "server", 6379, False),
    ("A cluster, node by node", "cluster", 7000, True),
    ("With Sentinel", "sentinel", 7000, True),
), "from-redis": (
    ("Check", "server", 6379, False),
    ("Live", "server", 6379, True),
    ("With a file", "server", 6379, False),
    ("With an append only file", "server", 6379, False),
    ("Single keys", "server", 6379, False),
)}
FILL = """
for i = 1, 2000 do redis.call('SET', 'string:{t}' .. i, 'value:' .. i) end
for i = 1, 300 do redis.call('RPUSH', 'list:{t}', i) redis.call('SADD', 'set:{t}', 'm' .. i) redis.call('ZADD', 'zset:{t}', i, 'm' .. i)
redis.call('HSET', 'hash:{t}', 'f' .. i, i) redis.call('XADD', 'stream:{t}', '1-' .. i, 'f', i) end
redis.call('PEXPIREAT', 'string:{t}1', '9999999999000') redis.call('HPEXPIREAT', 'hash:{t}', '9999999999000', 'FIELDS', 1, 'f1')
"""
DIGEST = """
local out = {}
local function add(ordered, ...)
    local reply = redis.call(...)
    if type(reply) ~= 'table' then reply = {reply} end
    for i, item in ipairs(reply) do reply[i] = type(item) == 'table' and cjson.encode(item) or tostring(item) end
    if not ordered then table.sort(reply) end
    out[#out + 1] = #reply .. ':' .. table.concat(reply, ',')
end
for i = 1, 2000 do add(true, 'GET', 'string:{t}' .. i) end
add(true, 'LRANGE', 'list:{t}', 0, -1)
add(false, 'SMEMBERS', 'set:{t}')
add(true, 'ZRANGE', 'zset:{t}', 0, -1, 'WITHSCORES')
add(false, 'HGETALL', 'hash:{t}')
add(true, 'XRANGE', 'stream:{t}', '-', '+')
add(true, 'PEXPIRETIME', 'string:{t}1')
add(true, 'HPEXPIRETIME', 'hash:{t}', 'FIELDS', 2, 'f1', 'f2')
return redis.sha1hex(table.concat(out, ';'))
"""


def blocks(guide, title):
    """The commands of a section and of those within it."""
    with open(os.path.join(ROOT, "docs", guide + ".md"), encoding="utf-8") as file:
        text = file.read()
    body = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)[1]
    found = re.findall(r"^( *)```sh\n(.*?)^ *```", body, flags=re.M | re.S)
    return "\n".join(re.sub(rf"^{indent}", "", block, flags=re.M) for indent, block in found)


class Place:
    """A folder with the programs, and free ports for those of the guide."""

    def __init__(self, peer, ours):
        self.dir, self.guards = tempfile.mkdtemp(prefix="migration"), []
        os.symlink(ours, os.path.join(self.dir, "src"))
        shutil.copy(os.path.join(ROOT, "valkey.conf"), self.dir)
        # The peer's programs by either name.
        names = os.path.join(self.dir, "peer")
        os.mkdir(names)
        for program in ("server", "cli"):
            found = next((path for kind in ("valkey-", "redis-") if os.path.exists(path := os.path.join(peer, kind + program))), None)
            if not found:
                raise RuntimeError(f"{peer} has neither valkey-{program} nor redis-{program}")
            for kind in ("valkey-", "redis-"):
                os.symlink(found, os.path.join(names, kind + program))
        self.environment = dict(os.environ, PATH=names + ":" + os.environ["PATH"])
        self.ports = {}
        for port in (6379, 7000, 7001, 7002, 26379):
            self.ports[port], guards = reserve_node_port()
            self.guards += guards

    def run(self, commands, may_fail=False):
        for port, free in self.ports.items():
            commands = re.sub(rf"(?<!\d){port}(?!\d)", str(free), commands)
        done = subprocess.run(["timeout", "300", "bash", "-e", "-o", "pipefail", "-c", commands], cwd=self.dir, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode and not may_fail:
            raise RuntimeError(f"exit code {done.returncode} of:\n{commands}\n{done.stdout[-3000:]}")
        return done.stdout

    def start(self, kind):
        options = {"cluster": "--cluster-enabled yes --cluster-node-timeout 5000"}.get(kind, "")
        self.run(f"valkey-server --port 6379 --daemonize yes {options} --logfile old.log\n"
                 "until valkey-cli -p 6379 ping | grep -q PONG; do sleep 0.1; done")
        if kind == "cluster":
            self.run("valkey-cli -p 6379 cluster addslotsrange 0 16383\n"
                     "until valkey-cli -p 6379 cluster info | grep -q cluster_state:ok; do sleep 0.1; done")
        if kind == "sentinel":
            with open(os.path.join(self.dir, "sentinel.conf"), "w", encoding="utf-8") as file:
                file.write(f"port {self.ports[26379]}\nsentinel monitor mymaster 127.0.0.1 {self.ports[6379]} 1\n")
            self.run("valkey-server sentinel.conf --sentinel --daemonize yes --logfile sentinel.log\n"
                     "until valkey-cli -p 26379 ping | grep -q PONG; do sleep 0.1; done")
        with open(os.path.join(self.dir, "fill.lua"), "w", encoding="utf-8") as file:
            file.write(FILL)
        self.run('valkey-cli -e -p 6379 eval "$(cat fill.lua)" 1 "{t}"')

    def end(self):
        for port in self.ports:
            self.run(f"src/valkey-cli -p {port} shutdown nosave now force", may_fail=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def digest(self, port):
        with open(os.path.join(self.dir, "digest.lua"), "w", encoding="utf-8") as file:
            file.write(DIGEST)
        return self.run(f'src/valkey-cli -p {port} eval "$(cat digest.lua)" 1 "{{t}}"')


class Writer(threading.Thread):
    """Counts in both servers, whichever takes it, over one shell of valkey-cli each; keeps what was acknowledged."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.over, self.highest, self.count = place, False, 0, 0
        self.start()

    def run(self):
        at = 6379
        while not self.over:
            words = self.place.run(f"timeout 3 src/valkey-cli -p {at} incr 'counter:{{t}}'", may_fail=True).strip()
            if words.isdigit():
                self.highest, self.count = max(self.highest, int(words)), self.count + 1
            else:
                at = 7000 if at == 6379 else 6379

    def end(self):
        self.over = True
        self.join()


def run_section(options, title, kind, port, writes):
    place = Place(options.peer, options.ours)
    try:
        place.start(kind)
        before = place.digest(6379)
        writer = Writer(place) if writes else None
        try:
            output = place.run(blocks(options.guide, title))
        finally:
            if writer:
                writer.end()
        after = place.digest(port)
        if before != after or "ERR" in before:
            raise RuntimeError(f"the data differs:\n{before}\n{after}")
        if writer:
            counter = int(place.run(f"src/valkey-cli -p {port} get 'counter:{{t}}'"))
            if counter < writer.highest or not writer.count:
                raise RuntimeError(f"{writer.highest} was acknowledged, the counter is {counter}")
            print(f"        {writer.count} writes were acknowledged, none is missing")
        return output
    finally:
        place.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", type=os.path.abspath)
    parser.add_argument("--ours", type=os.path.abspath, default=os.path.join(ROOT, "src"))
    parser.add_argument("--guide", choices=sorted(SECTIONS), default="migration")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    for title, kind, port, writes in SECTIONS[options.guide]:
        if options.only not in title:
            continue
        begun = time.monotonic()
        try:
            output = run_section(options, title, kind, port, writes)
            passed += 1
            print(f"ok      {title}: {time.monotonic() - begun:.1f} s", flush=True)
            if options.verbose:
                print(output)
        except RuntimeError as problem:
            failed += 1
            print(f"FAILED  {title}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

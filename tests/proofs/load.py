# SPDX-License-Identifier: BSD-3-Clause
"""The load of a cluster: threads that write and read keys of their own through a client that follows
redirects, check every reply, and remember what was acknowledged."""
import binascii
import threading
import time
from collections import Counter

from lab import Client, ReplyError

SLOTS = 16384
EXPECTED = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "UNBLOCKED")


def slot_of(key):
    return binascii.crc_hqx(key.encode(), 0) % SLOTS


class Router:
    """A cluster client of one thread."""

    def __init__(self, lab):
        self.lab = lab
        self.owners = {}
        self.clients = {}

    def drop(self, address):
        client = self.clients.pop(address, None)
        if client:
            client.close()
        self.owners = {s: a for s, a in self.owners.items() if a != address}

    def _client(self, address):
        if address not in self.clients:
            self.clients[address] = Client(address, 0.3)
        return self.clients[address]

    def call(self, slot, commands, attempts=3):
        """OSError: the outcome is not known. ReplyError: refused, so nothing was done."""
        address = self.owners.get(slot)
        for attempt in range(attempts):
            address = address or self.lab.nodes[(slot + attempt) % len(self.lab.nodes)].address
            try:
                return self._client(address).pipeline(commands)
            except OSError:
                self.drop(address)
                raise
            except ReplyError as error:
                words = str(error).split()
                if words[0] not in ("MOVED", "ASK") or attempt + 1 == attempts:
                    self.owners.pop(slot, None)
                    raise
                host, port = words[2].rsplit(":", 1)
                to = (host or address[0], int(port))
                if words[0] == "ASK":
                    return self.ask(to, commands)
                address = self.owners[slot] = to

    def ask(self, address, commands):
        """At a node that takes the slot, and does not own it yet."""
        try:
            return self._client(address).pipeline([("ASKING",), *commands])[1:]
        except OSError:
            self.drop(address)
            raise


class Load(threading.Thread):
    """One thread. `lost`: (when it was acknowledged, key) of each write that is not there any more;
    `wrong`: replies that must not be."""

    def __init__(self, lab, number, keys=None, wait=False):
        super().__init__(daemon=True)
        self.router = Router(lab)
        self.keys = keys or [f"k{number}-{i}" for i in range(60)]
        self.slots = {k: slot_of(k) for k in self.keys}
        self.wait = wait
        self.acked = {}    # key: (number, when)
        self.unknown = {}  # key: numbers whose outcome is not known, after the acknowledged one
        self.lost, self.wrong = [], []
        self.writes = self.reads = self.count = 0
        self.refusals = Counter()  # by the first word of the error, or "no reply"
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            key = self.keys[self.count % len(self.keys)]
            self.count += 1
            try:
                if self.count // len(self.keys) % 2:
                    self.read(key)
                else:
                    self.write(key)
            except OSError:
                self.refusals["no reply"] += 1
                time.sleep(0.01)
            except ReplyError as error:
                self.refusals[str(error).split()[0]] += 1
                if not str(error).startswith(EXPECTED):
                    self.wrong.append(f"{key}: {error}")
                time.sleep(0.01)
            time.sleep(0.001)

    def write(self, key):
        commands = [("SET", key, self.count)] + ([("WAIT", 1, 250)] if self.wait else [])
        begun = time.time()
        self.unknown.setdefault(key, set()).add(self.count)
        replies = self.router.call(self.slots[key], commands)
        if replies[0] != "OK":
            self.wrong.append(f"SET {key}: {replies}")
        elif not self.wait or replies[1] >= 1:
            self.acked[key] = (self.count, begun)
            self.unknown[key] = set()
            self.writes += 1

    def read(self, key):
        value = self.router.call(self.slots[key], [("GET", key)])[0]
        self.reads += 1
        self.check(key, value)

    def check(self, key, value):
        number, when = self.acked.get(key, (None, 0))
        found = int(value) if value else None
        if found == number or found in self.unknown.get(key, ()):
            return
        if found is not None and found > (number or 0):
            self.wrong.append(f"GET {key}: {value}, acknowledged was {number}")
        if number is not None:
            self.lost.append((when, key))
        # From now on what was found is what is there, until the lost write is seen again.
        self.acked[key] = (found, time.time())
        if number is not None:
            self.unknown.setdefault(key, set()).add(number)

    def stop(self):
        self.ended.set()
        self.join()

    def verify(self):
        """After all has healed: every key is read once more."""
        for key in self.keys:
            for attempt in range(20):
                try:
                    self.read(key)
                    break
                except (OSError, ReplyError):
                    time.sleep(0.1)
            else:
                self.wrong.append(f"{key} cannot be read")

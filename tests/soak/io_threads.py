#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of a server whose I/O threads come and go, while clients are killed, paused and do not read.

    tests/soak/io_threads.py [--server BINARY] [--operations N | --seconds S] [--seed N]

Each worker has keys of its own and knows every reply; others wait for lists, subscribe, watch MONITOR, or ask for much
and read it late or never. Meanwhile the number of I/O threads changes, clients are killed and paused, limits of output
and of all clients are set. A reply that is wrong, missing or too much is a fault, and so is a server that ends, reports
an error of a sanitizer, or does not stop in the end."""
import os
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "durability"))
from common import Client, Closed, Reply, Results, Server, Unexpected, encode, field, option_parser  # noqa: E402

WORKERS = 8
BIG = 20000  # elements of the list that slow readers ask for


class Run:
    """What all threads share."""

    def __init__(self, port, options):
        self.port, self.operations = port, options.operations
        self.end = time.monotonic() + options.seconds if options.seconds else None
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.fault = ""
        self.counts = {}

    def fail(self, text):
        with self.lock:
            self.fault = self.fault or text
        self.over.set()

    def count(self, name, n=1):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + n

    def goes_on(self, done):
        """Whether a worker that has done so many operations does more."""
        if self.over.is_set():
            return False
        return time.monotonic() < self.end if self.end else done < self.operations


class Keys:
    """Keys of one connection, and the replies to requests for them. A new connection has new ones, because nobody knows
    which of the last requests of a killed one were executed."""

    def __init__(self, prefix, rng):
        self.prefix, self.rng = prefix, rng
        self.strings, self.lists, self.hashes, self.counter = {}, {}, {}, 0

    def string(self):
        name = f"{self.prefix}:s{self.rng.randrange(20)}"
        if self.rng.random() < 0.5:
            size = self.rng.choice((0, 3, 16, 200, 5000, 40000, 300000))
            self.strings[name] = bytes([97 + self.rng.randrange(26)]) * size
            return encode("SET", name, self.strings[name]), [b"OK"]
        return encode("GET", name), [self.strings.get(name)]

    def list_(self):
        name = f"{self.prefix}:l{self.rng.randrange(5)}"
        elements = self.lists.setdefault(name, [])
        if self.rng.random() < 0.5:
            elements.append(b"%d" % self.rng.randrange(1000))
            return encode("RPUSH", name, elements[-1]), [len(elements)]
        if elements and self.rng.random() < 0.3:
            return encode("BLPOP", name, 0), [[name.encode(), elements.pop(0)]]
        return encode("LRANGE", name, 0, -1), [list(elements)]

    def hash_(self):
        name = f"{self.prefix}:h"
        field_name, value = b"f%d" % self.rng.randrange(30), b"%d" % self.rng.randrange(1000)
        created = field_name not in self.hashes
        self.hashes[field_name] = value
        return encode("HSET", name, field_name, value) + encode("HGET", name, field_name), [int(created), value]

    def transaction(self):
        self.counter += 2
        name = f"{self.prefix}:c"
        return (encode("MULTI") + encode("INCR", name) + encode("INCR", name) + encode("EXEC"),
                [b"OK", b"QUEUED", b"QUEUED", [self.counter - 1, self.counter]])

    def fault(self):
        """Errors, too, have to come at their place."""
        return encode("NOSUCH", self.prefix), [Reply]

    def next(self):
        return self.rng.choice((self.string, self.string, self.list_, self.hash_, self.transaction, self.fault))()


def compare(client, expected):
    for want in expected:
        try:
            got = client.read()
        except Reply as error:
            if want is Reply:
                continue
            raise Unexpected(f"error {error} and not {str(want)[:100]}") from error
        if got != want:
            raise Unexpected(f"reply {str(got)[:100]} and not {str(want)[:100]}")


def worker(run, number, seed):
    rng, done, connections = random.Random(seed), 0, 0
    while run.goes_on(done):
        connections += 1
        keys = Keys(f"w{number}:{connections}", rng)
        try:
            client = Client(run.port, 120)
            while run.goes_on(done):
                data, expected = b"", []
                for _ in range(rng.choice((1, 1, 1, 5, 40, 200))):
                    bytes_of_one, replies = keys.next()
                    data += bytes_of_one
                    expected += replies
                    if len(data) > 1000000:
                        break
                sender = threading.Thread(target=send_quietly, args=(client, data)) if len(data) > 50000 else None
                if sender:
                    sender.start()  # the server does not read on while its replies are not read
                else:
                    client.send(data)
                try:
                    compare(client, expected)
                finally:
                    if sender:
                        sender.join()
                done += len(expected)
                run.count("replies", len(expected))
        except (Closed, OSError):
            run.count("killed")


def send_quietly(client, data):
    try:
        client.send(data)
    except (Closed, OSError):
        pass


def waiter(run, _, seed):
    """Blocks for what another connection pushes; numbers may be lost with a killed client, but keep their order."""
    rng, last, pushed, name = random.Random(seed), 0, 0, f"queue{seed}"
    while not run.over.is_set():
        try:
            consumer, producer = Client(run.port, 120), Client(run.port, 120)
            while not run.over.is_set():
                consumer.send(encode("BLPOP", name, 0))
                for _ in range(rng.choice((1, 3))):
                    pushed += 1
                    producer.ask("RPUSH", name, pushed)
                got = int(consumer.read()[1])
                if got <= last:
                    raise Unexpected(f"element {got} after {last}")
                last = got
                run.count("popped")
        except (Closed, OSError):
            run.count("killed")


def subscriber(run, _, seed):
    name, sent = f"channel{seed}", 0
    while not run.over.is_set():
        try:
            reader, publisher, last = Client(run.port, 120), Client(run.port, 120), sent
            reader.ask("SUBSCRIBE", name)
            while not run.over.is_set():
                sent += 1
                publisher.ask("PUBLISH", name, sent)
                got = int(reader.read()[2])
                if got != last + 1:
                    raise Unexpected(f"message {got} after {last}")
                last = got
                run.count("messages")
        except (Closed, OSError):
            run.count("killed")
            sent += 1  # that of which nobody knows


def slow_reader(run, _, seed):
    rng = random.Random(seed)
    while not run.over.is_set():
        try:
            client = Client(run.port, 120)
            asked = rng.choice((1, 5, 30))
            client.send(encode("LRANGE", "big", 0, -1) * asked)
            run.over.wait(rng.random() / 5)
            for _ in range(rng.randrange(asked + 1)):
                if len(client.read()) != BIG:
                    raise Unexpected("a large reply is too short")
                run.count("large replies")
            client.close()
        except (Closed, OSError):
            run.count("killed")


def monitor(run, _, seed):
    rng = random.Random(seed)
    while not run.over.is_set():
        try:
            client = Client(run.port, 120)
            client.ask("MONITOR")
            for _ in range(rng.randrange(2000)):
                line = client.read()
                if not line[:1].isdigit() and line != b"OK":
                    raise Unexpected(f"MONITOR shows {line[:100]}")
                if run.over.is_set():
                    break
            client.close()
        except (Closed, OSError):
            run.count("killed")


def disturb(run, _, seed):
    """Its own connection is not killed; it is the only one that changes the configuration."""
    rng = random.Random(seed)
    client = Client(run.port, 120)
    client.ask("CLIENT", "NO-EVICT", "ON")
    me = client.ask("CLIENT", "ID")
    settings = (("io-threads", ("1", "2", "3", "5", "8")), ("io-threads-always-active", ("yes", "no")),
                ("maxmemory-clients", ("0", "0", "3mb")),
                ("client-output-buffer-limit", ("normal 0 0 0", "normal 0 0 0", "normal 2mb 0 0")))
    while not run.over.is_set():
        what = rng.randrange(10)
        if what < 5:
            name, values = rng.choice(settings)
            client.ask("CONFIG", "SET", name, rng.choice(values))
        elif what < 7:
            ids = [int(line.split()[0][3:]) for line in client.ask("CLIENT", "LIST").decode().splitlines()]
            for other in rng.sample(ids, min(len(ids), rng.choice((1, 1, 4)))):
                if other != me:
                    client.ask("CLIENT", "KILL", "ID", other)
        elif what == 7:
            client.ask("CLIENT", "PAUSE", rng.choice((1, 20)), rng.choice(("ALL", "WRITE")))
        elif what == 8:
            client.ask("INFO", "everything")
        else:
            client.ask("DBSIZE")
        run.count("disturbances")
        run.over.wait(rng.random() / 50)


def guarded(run, role, number, seed):
    try:
        role(run, number, seed)
    except Exception as error:  # pylint: disable=broad-except
        if run.over.is_set() and isinstance(error, Closed):
            return  # by release()
        run.fail(f"{role.__name__} {number}: {type(error).__name__} {error}")


def soak(options, folder):
    """A fault as text, or an empty one; and what was done."""
    server = Server(options.server, folder, "--appendonly", "no", "--io-threads", "4")
    control = server.connect(120)
    if not control:
        return f"the server does not start: {server.log()[-2000:]}", {}
    for at in range(0, BIG, 1000):
        control.ask("RPUSH", "big", *["element-%d" % i for i in range(at, at + 1000)])
    control.close()
    run = Run(server.port, options)
    roles = [(worker, i) for i in range(WORKERS)]
    others = [(role, i) for role in (waiter, subscriber, slow_reader, monitor) for i in range(2)] + [(disturb, 0)]
    threads = [threading.Thread(target=guarded, args=(run, *one, options.seed * 1000 + i))
               for i, one in enumerate(roles + others)]
    for thread in threads:
        thread.start()
    for thread in threads[:WORKERS]:
        thread.join()
    run.over.set()
    last = release(server.port)
    for thread in threads[WORKERS:]:
        thread.join()
    if server.process.poll() is not None:
        return f"the server has ended: see {server.log_path}", run.counts
    return run.fault or last or ended(server), run.counts


def release(port):
    """Ends the waits of those that are still there, and looks whether the server answers."""
    try:
        client = Client(port, 120)
        client.ask("CLIENT", "KILL", "TYPE", "pubsub")
        client.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        field(client, "connected_clients")
        client.close()
    except (Closed, OSError, Reply) as error:
        return f"the server does not answer: {type(error).__name__} {error}"
    return ""


def ended(server):
    code = server.stop(120)
    for sign in ("Sanitizer", "BUG REPORT", "runtime error"):
        if sign in server.log():
            return f"the log has {sign}: see {server.log_path}"
    return "" if code == 0 else f"the server ended with {code}: see {server.log_path}"


def main():
    parser = option_parser(__doc__)
    parser.add_argument("--operations", type=int, default=3000, help="replies that each worker checks")
    parser.add_argument("--seconds", type=int, default=0, help="instead of operations")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6))
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="soak-")
    results = Results()
    fault, counts = soak(options, folder)
    print(", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
    results.note(f"I/O threads that come and go, seed {options.seed}", fault)
    if not fault:
        shutil.rmtree(folder)
    results.finish()


if __name__ == "__main__":
    main()

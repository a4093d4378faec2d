#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What repl-compression saves and costs: bytes of a full synchronisation and of the stream, and CPU time of both sides.

    repl_compression.py SERVER [--mb 200] [--codecs no,lz4,zstd]

A primary and a replica on this machine; JSON records of some 500 bytes with names, texts, numbers and random ids. The CPU time
of a row less that of the row "no" is the price of compression."""
import argparse, json, os, random, shutil, socket, subprocess, sys, tempfile, time

WORDS = ("account active address amount balance city code country created currency customer delivery discount email first invoice "
         "item last locale name note number order payment phone price product quantity region shipping state status street tax "
         "total updated user value warehouse zip").split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def record(rng, number):
    return json.dumps({
        "id": number, "uuid": "%032x" % rng.getrandbits(128), "created": 1700000000 + number * 7, "active": rng.random() < 0.8,
        "customer": {"first": rng.choice(WORDS).title(), "last": rng.choice(WORDS).title(),
                     "email": f"{rng.choice(WORDS)}.{rng.randrange(10**5)}@example.com", "city": rng.choice(WORDS).title()},
        "items": [{"product": rng.choice(WORDS), "quantity": rng.randrange(1, 9), "price": rng.randrange(10**5) / 100}
                  for _ in range(3)],
        "note": " ".join(rng.choice(WORDS) for _ in range(18))}).encode()


def requests(seed, megabytes):
    """Pipelines of SET in RESP, with the number of requests in each."""
    rng = random.Random(seed)
    size = number = 0
    while size < megabytes * 1_000_000:
        parts = []
        for _ in range(500):
            value = record(rng, number)
            key = b"record:%d" % number
            parts.append(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value))
            size += len(value)
            number += 1
        yield b"".join(parts), len(parts)


class Server:
    def __init__(self, binary, folder, *options):
        os.makedirs(folder)
        self.port = free_port()
        self.process = subprocess.Popen([binary, "--port", str(self.port), "--save", "", "--bind", "127.0.0.1", *options], cwd=folder,
                                        stdout=open(os.path.join(folder, "log"), "w"))
        self.socket = None
        for _ in range(400):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.025)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        line = self.file.readline()
        if line[:1] != b"$":
            return line.strip().decode()
        return self.file.read(int(line[1:]) + 2)[:-2].decode()

    def info(self, field):
        return next((line.split(":", 1)[1].strip() for line in self.ask("INFO", "everything").splitlines()
                     if line.startswith(field + ":")), None)

    def load(self, pipelines):
        for pipeline, count in pipelines:
            self.socket.sendall(pipeline)
            for _ in range(count):
                assert self.file.readline() == b"+OK\r\n"

    def cpu(self):
        """Seconds, those of children that have ended included."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return sum(int(n) for n in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.kill()
        self.process.wait()


def wait_until(what, condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def measure(binary, folder, codec, megabytes, data):
    """A row: bytes and CPU times of both phases."""
    primary = Server(binary, os.path.join(folder, codec, "primary"), "--repl-compression", codec, "--repl-diskless-sync-delay", "0",
                     "--repl-backlog-size", "1gb", "--client-output-buffer-limit", "replica 0 0 0")
    replica = Server(binary, os.path.join(folder, codec, "replica"), "--repl-compression", codec, "--repl-diskless-load", "swapdb")
    try:
        primary.load(data[0])
        phases = []
        for phase in ("sync", "stream"):
            before = primary.cpu(), replica.cpu(), int(primary.info("total_net_repl_output_bytes"))
            if phase == "sync":
                replica.ask("REPLICAOF", "127.0.0.1", str(primary.port))
                wait_until("the link", lambda: replica.info("master_link_status") == "up")
                wait_until("the end of the save", lambda: primary.info("rdb_bgsave_in_progress") == "0")
            else:
                primary.load(data[1])
            wait_until("the offset", lambda: replica.info("slave_repl_offset") == primary.info("master_repl_offset"))
            phases.append((int(primary.info("total_net_repl_output_bytes")) - before[2], primary.cpu() - before[0],
                           replica.cpu() - before[1]))
        assert primary.ask("DBSIZE") == replica.ask("DBSIZE")
        return phases
    finally:
        primary.stop()
        replica.stop()


def main():
    args = argparse.ArgumentParser(usage=__doc__)
    args.add_argument("server")
    args.add_argument("--mb", type=int, default=200)
    args.add_argument("--codecs", default="no,lz4,zstd")
    args = args.parse_args()
    data = [list(requests(seed, args.mb)) for seed in (1, 2)]
    folder = tempfile.mkdtemp(prefix="repl-compression-")
    print(f"{args.mb} MB of JSON records; CPU in seconds")
    print("| repl-compression | full sync, MB | primary | replica | stream, MB | primary | replica |\n|---|---|---|---|---|---|---|")
    try:
        for codec in args.codecs.split(","):
            (sync, sync_primary, sync_replica), (stream, primary, replica) = measure(os.path.abspath(args.server), folder, codec,
                                                                                    args.mb, data)
            print(f"| {codec} | {sync / 1e6:.1f} | {sync_primary:.2f} | {sync_replica:.2f} | {stream / 1e6:.1f} | {primary:.2f} "
                  f"| {replica:.2f} |", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

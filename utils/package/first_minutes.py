#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/first-minutes.md: what a stranger types in the first minutes with a package on a bare system, and what is shown.

    first_minutes.py PACKAGES ROOTS SYSTEM...

PACKAGES: the folder of `make tarball` and `make deb`, of the release build. SYSTEM: a name that debootstrap knows
(bookworm); its root folder is ROOTS/SYSTEM, made by debootstrap --variant=minbase if there is none. The .deb is tried
where its packages exist (DEB_SYSTEMS). Run utils/tested_with.py afterwards: docs/tested-with.md has a link to the page
if there is one. Needs root, debootstrap, unshare, nsenter and ip: each session has a network of its own, so that port
6379 is free. Fails, and writes nothing, if a command fails.
"""

import argparse
import datetime
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/first-minutes.md"
DEB_SYSTEMS = ("bookworm", "trixie")
UBUNTU_SYSTEMS = ("focal", "jammy", "noble")
UBUNTU_MIRROR = ("https://archive.ubuntu.com/ubuntu",)
COLUMNS = 140
# A command, and how many of its last lines are shown; in the folder of the package. Those of apt need the network of the machine.
TARBALL = (
    ("tar -xzf {file}", 20),
    ("cd {name}", 20),
    ("ls", 20),
    ("bin/valkey-server --version", 20),
    ("bin/valkey-server --daemonize yes --logfile server.log", 20),
    ("bin/valkey-cli set greeting hello", 20),
    ("bin/valkey-cli get greeting", 20),
    ("bin/valkey-benchmark -t set,get -P 16 -n 200000 -r 100000 -q", 20),
    ("bin/valkey-cli info keyspace", 20),
    ("bin/valkey-cli memory doctor", 20),
    ("bin/valkey-cli save", 20),
    ("bin/valkey-check-rdb dump.rdb | tail -n 4", 20),
    ("bin/valkey-cli shutdown", 20),
    ("head -n 6 server.log", 20),
)
DEB = (
    ("apt-get install -y ./{file}", 5),
    ("ls -l /etc/valkey", 20),
    ("valkey-server --check-config /etc/valkey/valkey.conf", 20),
    ("su -s /bin/sh valkey -c 'valkey-server /etc/valkey/valkey.conf --dir /var/lib/valkey --daemonize yes'", 20),
    ("valkey-cli set greeting hello", 20),
    ("valkey-cli config set maxmemory 100mb maxmemory-policy allkeys-lru", 20),
    ("valkey-cli config rewrite", 20),
    ("tail -n 3 /etc/valkey/valkey.conf", 20),
    ("valkey-cli latency doctor", 20),
    ("valkey-cli shutdown", 20),
    ("ls /var/lib/valkey", 20),
    ("apt-get purge -y fenwick-server", 3),
)
HEAD = """# The first minutes

What a stranger types who has downloaded a package, and what is shown: on bare systems, as debootstrap makes them, without a compiler and
without systemd. Written by `utils/package/first_minutes.py` on {date}, with packages of version {release} built on Debian 12; a command that
failed would have kept the page from being written. The longer way, with TLS and scripts, is `utils/package/try.sh`.
"""


class Session:
    """Commands in a root folder and in a network of its own."""

    def __init__(self, root):
        self.root = root
        self.folder = "/root"
        self.network = subprocess.Popen(("unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep 3600"), stdout=subprocess.PIPE)
        self.network.stdout.readline()
        if not os.path.exists(f"{root}/proc/self"):
            subprocess.run(("mount", "-t", "proc", "proc", f"{root}/proc"), check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends all that runs in the network: after a failure the server, too."""
        network = os.stat(f"/proc/{self.network.pid}/ns/net").st_ino
        for path in glob.glob("/proc/[0-9]*/ns/net"):
            try:
                if os.stat(path).st_ino == network:
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
            except OSError:
                continue  # it has ended
        self.network.wait()
        subprocess.run(("umount", f"{self.root}/proc"), check=False)

    def run(self, command):
        """The lines of the output."""
        moved = re.fullmatch(r"cd (\S+)", command)
        if moved:
            self.folder = os.path.join(self.folder, moved.group(1))
            return []
        own = () if command.startswith("apt-get") else ("nsenter", f"--net=/proc/{self.network.pid}/ns/net")
        words = (*own, "chroot", self.root, "env", "-i", "LC_ALL=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
                 "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", f"cd {self.folder} && {command}")
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode:
            sys.exit(f"first_minutes: {command} in {self.root}:\n{done.stdout}")
        return [line.rpartition("\r")[2] for line in done.stdout.replace("\r\n", "\n").splitlines()]

    def wait_for_server(self, cli):
        deadline = time.monotonic() + 30
        words = ("nsenter", f"--net=/proc/{self.network.pid}/ns/net", "chroot", self.root, "sh", "-c", f"cd {self.folder} && {cli} ping")
        while subprocess.run(words, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                sys.exit(f"first_minutes: the server in {self.root} does not reply")
            time.sleep(0.05)


def make_root(roots, system):
    root = os.path.abspath(f"{roots}/{system}")
    if not os.path.exists(f"{root}/etc/os-release"):
        mirror = UBUNTU_MIRROR if system in UBUNTU_SYSTEMS else ()
        subprocess.run(("debootstrap", "--variant=minbase", system, root, *mirror), check=True)
    subprocess.run(("chroot", root, "apt-get", "update", "-q"), check=True, stdout=subprocess.DEVNULL)
    with open(f"{root}/etc/os-release", encoding="utf-8") as file:
        return root, re.search(r'^PRETTY_NAME="(.*)"', file.read(), flags=re.M).group(1)


def shown(output, most):
    """The last lines of an output."""
    return (["..."] if len(output) > most else []) + [line[:COLUMNS].rstrip() for line in output[-most:]]


def transcript(root, package, steps):
    """The commands with what they have shown, and the seconds that they took."""
    file = os.path.basename(package)
    shutil.copy(package, f"{root}/root/{file}")
    name = file.removesuffix(".tar.gz")
    if name != file:
        shutil.rmtree(f"{root}/root/{name}", ignore_errors=True)
    else:
        subprocess.run(("chroot", root, "apt-get", "purge", "-y", "-q", "fenwick-server"), stdout=subprocess.DEVNULL, check=False)
    lines, begun = [], time.monotonic()
    with Session(root) as session:
        for text, most in steps:
            command = text.format(file=file, name=name)
            output = session.run(command)
            if "--daemonize" in command:
                session.wait_for_server("bin/valkey-cli" if command.startswith("bin/") else "valkey-cli")
            lines += [f"$ {command}", *shown(output, most)]
    return lines, time.monotonic() - begun


def section(title, lines, seconds):
    text = "\n".join(lines)
    return f"\n## {title}\n\n```text\n{text}\n```\n\n{seconds:.0f} s.\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("packages")
    parser.add_argument("roots")
    parser.add_argument("systems", nargs="+")
    options = parser.parse_args()
    tarball = glob.glob(f"{options.packages}/fenwick-server-*-linux-*.tar.gz")[0]
    deb = glob.glob(f"{options.packages}/fenwick-server_*.deb")[0]
    release = re.search(r"server-([\d.]+)-linux", tarball).group(1)
    page = HEAD.format(date=f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", release=release)
    for system in options.systems:
        root, title = make_root(options.roots, system)
        page += section(f"{title}: the tarball", *transcript(root, tarball, TARBALL))
        if system in DEB_SYSTEMS:
            page += section(f"{title}: the .deb", *transcript(root, deb, DEB))
    with open(f"{ROOT}/{PAGE}", "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()

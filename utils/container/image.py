#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a container image without docker: an archive that docker, podman, skopeo and umoci read.

    image.py STAGE OUTPUT

STAGE was filled by `make install PREFIX=/usr DESTDIR=STAGE`. The image has these programs, the shared libraries of this
machine that they need, a shell with a few tools, and nothing else. The archive is an OCI layout with docker's
manifest.json. The same input gives the same bytes. Prints the path of the archive.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{ROOT}/utils/package")
import contents  # noqa: E402  (its folder is known only here)

USER = 999
OWNED = ("data", "run/valkey", "etc/valkey")
TOOLS = ("sh", "cat", "cp", "date", "id", "ls", "mkdir", "mv", "sleep")
# glibc loads it for the report of a crash.
LOADED_LATER = ("libgcc_s.so.1",)
TERMINALS = ("dumb", "linux", "screen", "screen-256color", "tmux", "tmux-256color", "vt100", "xterm", "xterm-256color")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build_info(name):
    with open(f"{ROOT}/src/base/build_info.h") as file:
        return re.search(rf'^#define {name} "(.*)"', file.read(), flags=re.M).group(1)


class Tree:
    """The root folder of the image."""

    def __init__(self, folder):
        self.folder = folder
        self.origins = []  # files of this machine
        for name in ("usr/bin", "usr/lib", "usr/lib64", "etc/valkey/conf.d", "data", "run/valkey", "tmp"):
            os.makedirs(f"{folder}/{name}")
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", f"{folder}/{name}")

    def place(self, path):
        return os.path.join(self.folder, re.sub(r"^/(bin|lib|lib64)/", r"usr/\1/", path).lstrip("/"))

    def add(self, path):
        """A file of this machine, at the same place."""
        target = self.place(path)
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)
            os.chmod(target, 0o755)
            self.origins.append(path)

    def add_libraries(self, program):
        for line in output("ldd", program).splitlines():
            found = re.search(r"(/\S+) \(0x", line)
            if found:
                self.add(found.group(1))

    def add_tool(self, name):
        path = shutil.which(name, path="/usr/bin:/bin")
        target = self.place(f"/usr/bin/{name}")
        shutil.copyfile(path, target)
        os.chmod(target, 0o755)
        self.origins.append(os.path.realpath(path))
        self.add_libraries(path)

    def write(self, path, text, mode=0o644):
        target = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as file:
            file.write(text)
        os.chmod(target, mode)


def fill(tree, stage):
    """Puts programs, libraries, tools and settings into the tree."""
    for name in sorted(os.listdir(f"{stage}/usr/bin")):
        source, target = f"{stage}/usr/bin/{name}", f"{tree.folder}/usr/bin/{name}"
        if os.path.islink(source) or name == "valkey-sentinel":
            os.symlink(os.readlink(source) if os.path.islink(source) else "valkey-server", target)
            continue
        output("strip", "--strip-debug", "-o", target, source)
        os.chmod(target, 0o755)
        tree.add_libraries(source)
    for name in TOOLS:
        tree.add_tool(name)
    folder = os.path.dirname(next(path for path in tree.origins if os.path.basename(path) == "libc.so.6"))
    for name in LOADED_LATER:
        tree.add(f"{folder}/{name}")
    for name in TERMINALS:
        for top in ("/lib/terminfo", "/usr/share/terminfo"):
            if os.path.exists(f"{top}/{name[0]}/{name}"):
                tree.add(f"{top}/{name[0]}/{name}")
    for source, target in (("entrypoint.sh", "valkey-entrypoint"), ("health.sh", "valkey-health")):
        shutil.copyfile(f"{HERE}/{source}", f"{tree.folder}/usr/bin/{target}")
        os.chmod(f"{tree.folder}/usr/bin/{target}", 0o755)
    shutil.copyfile(f"{HERE}/container.conf", f"{tree.folder}/etc/valkey/container.conf")
    for name in ("valkey.conf", "sentinel.conf"):
        shutil.copyfile(f"{stage}/usr/share/valkey/{name}", f"{tree.folder}/etc/valkey/{name}")
    tree.write("etc/passwd", f"root:x:0:0:root:/:/bin/sh\nvalkey:x:{USER}:{USER}::/data:/bin/sh\n")
    tree.write("etc/group", f"root:x:0:\nvalkey:x:{USER}:\n")
    tree.write("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")


def describe(tree, name, release):
    """Licences and the list of components, in usr/share/doc/NAME."""
    folder = f"{tree.folder}/usr/share/doc/{name}"
    os.makedirs(folder)
    shutil.copyfile(f"{ROOT}/COPYING", f"{folder}/COPYING")
    if shutil.which("dpkg-query"):
        parts = [contents.library(path) for path in tree.origins]
        contents.copy_licenses(folder, parts)
        contents.write_sbom(folder, name, release, parts)


def layer(tree, epoch):
    """The tree as a compressed layer: its bytes and the digest of what was compressed."""

    def settle(entry):
        owner = USER if any(entry.name == name or entry.name.startswith(f"{name}/") for name in OWNED) else 0
        entry.uid = entry.gid = owner
        entry.uname = entry.gname = ""
        entry.mtime = epoch
        if entry.isdir():
            entry.mode = 0o1777 if entry.name == "tmp" else 0o750 if owner else 0o755
        return entry

    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(os.listdir(tree.folder)):
            archive.add(f"{tree.folder}/{name}", name, filter=settle)
    return gzip.compress(raw.getvalue(), compresslevel=6, mtime=0), hashlib.sha256(raw.getvalue()).hexdigest()


def configuration(name, release, machine, created, diff_digest):
    return {
        "created": created, "architecture": machine, "os": "linux",
        "config": {
            "User": "valkey", "WorkingDir": "/data", "Volumes": {"/data": {}}, "ExposedPorts": {"6379/tcp": {}},
            "Env": ["PATH=/usr/bin", "TERM=xterm"], "Entrypoint": ["valkey-entrypoint"], "Cmd": [], "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": name, "org.opencontainers.image.version": release,
                       "org.opencontainers.image.licenses": "BSD-3-Clause"},
            # Of docker; OCI has none, and other programs pass over it. Times are in nanoseconds.
            "Healthcheck": {"Test": ["CMD", "valkey-health"], "Interval": 10 ** 10, "Timeout": 3 * 10 ** 9, "StartPeriod": 10 ** 10},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_digest}"]},
        "history": [{"created": created, "created_by": "utils/container/image.py"}],
    }


def write_archive(path, blobs, index, docker):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        def add(name, data):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))

        add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add("index.json", json.dumps(index).encode())
        add("manifest.json", json.dumps(docker).encode())
        for digest, data in blobs.items():
            add(f"blobs/sha256/{digest}", data)


def make(tree, output_folder, name, release):
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    created = contents.timestamp(epoch)
    machine = MACHINES.get(os.uname().machine, os.uname().machine)
    blobs = {}

    def blob(kind, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    compressed, diff_digest = layer(tree, epoch)
    layer_entry = blob("layer.v1.tar+gzip", compressed)
    settings = blob("config.v1+json", json.dumps(configuration(name, release, machine, created, diff_digest)).encode())
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": settings, "layers": [layer_entry]}
    entry = blob("manifest.v1+json", json.dumps(manifest).encode())
    tags = [f"{name}:{release}", f"{name}:latest"]
    entries = [{**entry, "annotations": {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"docker.io/library/{tag}"}}
               for tag in tags]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
    in_archive = {part["digest"]: f"blobs/sha256/{part['digest'].partition(':')[2]}" for part in (settings, layer_entry)}
    docker = [{"Config": in_archive[settings["digest"]], "Layers": [in_archive[layer_entry["digest"]]],
               "RepoTags": tags}]
    path = f"{output_folder}/{name}-{release}-image-{machine}.tar"
    write_archive(path, blobs, index, docker)
    return path


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    stage, output_folder = arguments
    name, release = f"{build_info('SERVER_PRODUCT').lower()}-server", build_info("SERVER_RELEASE")
    os.makedirs(output_folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        fill(tree, stage)
        describe(tree, name, release)
        print(make(tree, output_folder, name, release))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

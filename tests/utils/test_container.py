# SPDX-License-Identifier: BSD-3-Clause
"""utils/container: the image is what its digests say, and the scripts in it do what docker calls them for."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTAINER = f"{ROOT}/utils/container"
# Programs of the system in the place of the server's: the image is the same, and small.
PROGRAMS = ("valkey-server", "valkey-sentinel", "valkey-cli")


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def program(self, name, text):
        path = f"{self.folder}/{name}"
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def run_script(self, name, *arguments, **environment):
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run((f"{CONTAINER}/{name}", *arguments), capture_output=True, text=True, check=False,
                              env={"PATH": path, **environment})

    def health(self, reply, **environment):
        self.program("valkey-cli", f'echo "$@" > {self.folder}/called; echo "{reply}"')
        return self.run_script("health.sh", **environment).returncode

    def called(self):
        with open(f"{self.folder}/called") as file:
            return file.read().strip()

    def test_a_reply_is_health_also_an_error_of_rights(self):
        for reply, status in (("PONG", 0), ("(error) NOAUTH Authentication required.", 0), ("(error) NOPERM no", 0),
                              ("(error) LOADING Valkey is loading", 1), ("(error) MASTERDOWN Link", 1), ("Could not connect", 1), ("", 1)):
            self.assertEqual(self.health(reply), status, reply)

    def test_the_check_asks_the_port_or_tls_alone_or_the_socket(self):
        self.health("PONG")
        self.assertEqual(self.called(), "-t 2 -p 6379 ping")
        self.health("PONG", VALKEY_PORT="7000")
        self.assertEqual(self.called(), "-t 2 -p 7000 ping")
        self.health("PONG", VALKEY_TLS_PORT="7001")
        self.assertEqual(self.called(), "-t 2 -p 7001 --tls --insecure ping")
        self.health("PONG", VALKEY_TLS_PORT="7001", VALKEY_TLS_CERT_FILE="/c", VALKEY_TLS_KEY_FILE="/k")
        self.assertEqual(self.called(), "-t 2 -p 7001 --tls --insecure --cert /c --key /k ping")
        subprocess.run(("python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", f"{self.folder}/s"), check=True)
        self.health("PONG", VALKEY_SOCKET=f"{self.folder}/s")
        self.assertEqual(self.called(), f"-t 2 -s {self.folder}/s ping")

    def test_options_start_the_server_and_names_their_program(self):
        for name in ("valkey-server", "valkey-cli"):
            self.program(name, f'echo {name} "$@"')
        for arguments, answer in (((), "valkey-server /etc/valkey/container.conf"),
                                  (("--port", "1"), "valkey-server /etc/valkey/container.conf --port 1"),
                                  (("valkey-cli", "ping"), "valkey-cli ping"), (("valkey-server", "a.conf"), "valkey-server a.conf")):
            self.assertEqual(self.run_script("entrypoint.sh", *arguments).stdout.strip(), answer)

    def test_the_server_accepts_the_file_of_the_image(self):
        done = subprocess.run((f"{ROOT}/src/valkey-server", "--check-config", f"{CONTAINER}/container.conf"), capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 2))
        faults = [line for line in (done.stdout + done.stderr).splitlines() if "container.conf:" in line and "error" in line]
        self.assertEqual([line for line in faults if "/data" not in line and "/run/valkey" not in line], [])


@unittest.skipUnless(shutil.which("ldd") and shutil.which("strip"), "this system has no ldd or no strip")
class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        stage = f"{cls.folder}/stage/usr"
        os.makedirs(f"{stage}/bin")
        os.makedirs(f"{stage}/share/valkey")
        for name in PROGRAMS:
            shutil.copyfile("/bin/true", f"{stage}/bin/{name}")
        os.symlink("valkey-cli", f"{stage}/bin/redis-cli")
        for name in ("valkey.conf", "sentinel.conf"):
            shutil.copyfile(f"{ROOT}/{name}", f"{stage}/share/valkey/{name}")
        paths = []
        for output in ("one", "two"):
            done = subprocess.run((f"{CONTAINER}/image.py", f"{cls.folder}/stage", f"{cls.folder}/{output}"), capture_output=True, text=True,
                                  check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
            paths.append(done.stdout.strip())
        cls.files = []
        for path in paths:
            with tarfile.open(path) as archive:
                cls.files.append({entry.name: archive.extractfile(entry).read() for entry in archive})

    def blob(self, entry):
        data = self.files[0][f"blobs/sha256/{entry['digest'].removeprefix('sha256:')}"]
        self.assertEqual(len(data), entry["size"])
        return data

    def test_the_same_input_gives_the_same_image(self):
        self.assertEqual(self.files[0], self.files[1])

    def test_digests_sizes_and_both_manifests_agree(self):
        for name, data in self.files[0].items():
            if name.startswith("blobs/"):
                self.assertEqual(name, f"blobs/sha256/{hashlib.sha256(data).hexdigest()}")
        index = json.loads(self.files[0]["index.json"])
        manifest = json.loads(self.blob(index["manifests"][0]))
        settings = json.loads(self.blob(manifest["config"]))
        (docker,) = json.loads(self.files[0]["manifest.json"])
        self.assertEqual(docker["Config"], f"blobs/sha256/{manifest['config']['digest'][7:]}")
        self.assertEqual(docker["Layers"], [f"blobs/sha256/{manifest['layers'][0]['digest'][7:]}"])
        tags = [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index["manifests"]]
        self.assertEqual(tags, docker["RepoTags"])
        self.assertIn("fenwick-server:latest", tags)
        self.assertEqual(settings["config"]["Healthcheck"]["Test"], ["CMD", "valkey-health"])
        self.assertEqual(settings["config"]["User"], "valkey")

    def test_the_layer_has_what_the_programs_need(self):
        index = json.loads(self.files[0]["index.json"])
        manifest = json.loads(self.blob(index["manifests"][0]))
        settings = json.loads(self.blob(manifest["config"]))
        with tarfile.open(fileobj=io.BytesIO(self.blob(manifest["layers"][0]))) as layer:
            entries = {entry.name: entry for entry in layer}
            raw = layer.fileobj
            raw.seek(0)
            digest = hashlib.sha256(raw.read()).hexdigest()
        self.assertEqual(settings["rootfs"]["diff_ids"], [f"sha256:{digest}"])
        for name in (*PROGRAMS, "valkey-entrypoint", "valkey-health", "redis-cli", "sh", "cp"):
            self.assertIn(f"usr/bin/{name}", entries)
        names = {os.path.basename(name) for name in entries}
        self.assertTrue({"libc.so.6", "libgcc_s.so.1", "container.conf", "sentinel.conf"} <= names)
        self.assertTrue(any(name.startswith("ld-linux") for name in names))
        self.assertEqual((entries["data"].uid, entries["data"].mode), (999, 0o750))
        self.assertEqual(entries["usr/bin/valkey-server"].uid, 0)
        self.assertEqual({entry.mtime for entry in entries.values()}, {1700000000})


if __name__ == "__main__":
    unittest.main()

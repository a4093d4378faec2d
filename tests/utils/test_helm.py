# SPDX-License-Identifier: BSD-3-Clause
"""utils/helm/fenwick: what a chart says agrees with itself and with the server; the scripts of its pods find the primary."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = f"{ROOT}/utils/helm/fenwick"
ALL = "tls.enabled=true,tls.existingSecret=t,auth.existingSecret=a,backup.enabled=true,metrics.serviceMonitor=true"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def value_names():
    """Paths of values.yaml such as tls.enabled."""
    names, parents = set(), []
    for line in read(f"{CHART}/values.yaml").splitlines():
        found = re.match(r"^( *)([A-Za-z]+):", line)
        if found:
            parents = parents[:len(found.group(1)) // 2] + [found.group(2)]
            names.add(".".join(parents))
    return names


class Chart(unittest.TestCase):
    def test_templates_use_values_and_parts_that_exist(self):
        names, used, included, defined = value_names(), set(), set(), set()
        for name in os.listdir(f"{CHART}/templates"):
            text = read(f"{CHART}/templates/{name}")
            used |= set(re.findall(r"\.Values\.([A-Za-z.]+)", text))
            included |= set(re.findall(r'include "([^"]+)"', text))
            defined |= set(re.findall(r'define "([^"]+)"', text))
            opened = len(re.findall(r"{{-? *(?:if|with|range|define)\b", text))
            self.assertEqual(opened, len(re.findall(r"{{-? *end\b", text)), name)
        self.assertEqual(used - names, set())
        self.assertEqual({name for name in names if not any(one == name or one.startswith(f"{name}.") or name.startswith(f"{one}.")
                                                            for one in used)}, set())
        self.assertEqual(included, defined)

    def test_the_release_is_that_of_the_server(self):
        release = re.search(r'^#define SERVER_RELEASE "(.*)"', read(f"{ROOT}/src/base/build_info.h"), flags=re.M).group(1)
        self.assertIn(f"\nversion: {release}\nappVersion: {release}\n", read(f"{CHART}/Chart.yaml"))

    @unittest.skipUnless(shutil.which("helm"), "this system has no helm")
    def test_helm_renders_each_mode(self):
        for mode in ("one", "sentinel"):
            done = subprocess.run(("helm", "template", "r", CHART, "--set", f"mode={mode},{ALL}"), capture_output=True, text=True, check=True)
            self.assertEqual("name: sentinel\n" in done.stdout, mode == "sentinel")
            self.assertIn("kind: CronJob", done.stdout)


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("valkey-server", "valkey-sentinel"):
            self.program(name, 'echo "$@"')
        # The image has these programs and no other.
        tools = re.search(r"^TOOLS = \((.*)\)", read(f"{ROOT}/utils/container/image.py"), flags=re.M).group(1)
        for name in re.findall(r'"(.*?)"', tools):
            os.symlink(shutil.which(name), f"{self.folder}/{name}")
        self.sentinels({})

    def program(self, name, text):
        path = f"{self.folder}/{name}"
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def sentinels(self, answers):
        """Host -> what its Sentinel replies; no host, no Sentinel."""
        cases = "".join(f"*' -h {host} '*) printf '%s\\n' {answer} ;;\n" for host, answer in answers.items())
        self.program("valkey-cli", f"case \" $* \" in\n{cases}*) echo 'Could not connect' >&2; exit 1 ;;\nesac")

    def start(self, script, host, mode="sentinel", **more):
        environment = {"PATH": self.folder, "HOSTS": "p0 p1 p2", "MY_HOST": host, "MODE": mode, "QUORUM": "2",
                       "RUN": self.folder, "DATA": self.folder, **more}
        return subprocess.run((f"{self.folder}/sh", f"{CHART}/files/{script}"), env=environment, capture_output=True, text=True, check=False)

    def server(self, host, **more):
        done = self.start("server.sh", host, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), f"/etc/valkey/container.conf --include {self.folder}/pod.conf")
        return read(f"{self.folder}/pod.conf").splitlines()

    def test_the_first_pod_is_primary_if_nobody_knows_better(self):
        self.assertEqual(self.server("p0"), ["port 6379", "replica-announce-ip p0"])
        self.assertIn("replicaof p0 6379", self.server("p2"))
        self.assertEqual(self.server("p0", mode="one"), ["port 6379"])

    def test_sentinels_of_other_pods_know_best(self):
        self.sentinels({"p2": "p1 6379", "p0": "p0 6379"})
        self.assertIn("replicaof p1 6379", self.server("p0"))
        self.assertEqual([line for line in self.server("p1", HOSTS="p2 p1 p0") if line.startswith("replicaof")], [])

    def test_an_error_or_nothing_is_no_address(self):
        for answer in ("NOAUTH Authentication required", "''", "p1"):
            self.sentinels({"p1": answer})
            self.assertIn("replicaof p0 6379", self.server("p2"), answer)

    def test_the_file_of_the_sentinel_is_asked_next(self):
        with open(f"{self.folder}/sentinel.conf", "w") as file:
            file.write("port 26379\nsentinel monitor main p2 6379 2\n")
        self.assertIn("replicaof p2 6379", self.server("p0"))
        self.sentinels({"p1": "p1 6379"})
        self.assertIn("replicaof p1 6379", self.server("p0"))

    def test_the_file_of_a_sentinel_is_written_once(self):
        self.sentinels({"p1": "p1 6379"})
        self.assertEqual(self.start("sentinel.sh", "p0", PASSWORD="secret", TLS="yes").stdout.strip(), f"{self.folder}/sentinel.conf")
        text = read(f"{self.folder}/sentinel.conf")
        for line in ("tls-port 26379", "port 0", "sentinel monitor main p1 6379 2", "sentinel auth-pass main secret", "sentinel announce-ip p0"):
            self.assertIn(f"{line}\n", text)
        self.start("sentinel.sh", "p0")
        self.assertEqual(read(f"{self.folder}/sentinel.conf"), text)

    def test_passwords_and_tls_reach_the_server(self):
        lines = self.server("p0", PASSWORD="a.b-c", TLS="yes")
        for line in ("port 0", "tls-port 6379", "requirepass a.b-c", "primaryauth a.b-c", "tls-replication yes"):
            self.assertIn(line, lines)
        for password in ("two words", 'a"b', "a\nrequirepass x"):
            done = self.start("server.sh", "p0", PASSWORD=password)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("other characters", done.stderr)

    def test_the_server_knows_the_lines(self):
        lines = self.server("p1", PASSWORD="a", TLS="yes") + ["min-replicas-to-write 1", "metrics-port 9121"]
        with open(f"{self.folder}/check.conf", "w") as file:
            file.write("\n".join(line for line in lines if not line.startswith("tls-")) + "\n")
        done = subprocess.run((f"{ROOT}/src/valkey-server", "--check-config", f"{self.folder}/check.conf"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

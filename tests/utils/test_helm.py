# SPDX-License-Identifier: BSD-3-Clause
"""utils/helm/fenwick: what a chart says agrees with itself and with the server; the scripts of its pods find the primary, and make
a cluster."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/tests/support")
from ports import reserve_node_port  # noqa: E402

try:
    import yaml
    from chart_template import Chart as Rendered
except ImportError:
    yaml = None
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

    def test_the_config_map_has_all_files(self):
        listed = re.search(r"range \$name := list (.*?) }}", read(f"{CHART}/templates/configmap.yaml")).group(1)
        self.assertEqual(sorted(re.findall(r'"(.*?)"', listed)), sorted(os.listdir(f"{CHART}/files")))

    @unittest.skipUnless(shutil.which("helm"), "this system has no helm")
    def test_helm_renders_each_mode(self):
        for mode in ("one", "sentinel", "cluster"):
            done = subprocess.run(("helm", "template", "r", CHART, "--set", f"mode={mode},{ALL}"), capture_output=True, text=True, check=True)
            self.assertEqual("name: sentinel\n" in done.stdout, mode == "sentinel")
            self.assertEqual("kind: Job" in done.stdout, mode == "cluster")
            self.assertEqual("  replicas: 6\n" in done.stdout, mode == "cluster")
            self.assertIn("kind: CronJob", done.stdout)


@unittest.skipUnless(yaml, "this system has no PyYAML")
class Objects(unittest.TestCase):
    """What the chart makes, as rendered by chart_template.py."""

    MODES = ("one", "sentinel", "cluster")

    def objects(self, mode, **more):
        chart = Rendered(CHART, {"mode": mode, **{name.replace("__", "."): value for name, value in more.items()}})
        self.assertTrue(chart.render("NOTES.txt").strip())
        made = [one for name in chart.trees if name.endswith(".yaml") for one in yaml.safe_load_all(chart.render(name)) if one]
        return {(one["kind"], one["metadata"]["name"]): one for one in made}

    def all_objects(self, mode):
        return self.objects(mode, tls__enabled=True, tls__existingSecret="t", auth__existingSecret="a", auth__busKey="b",
                            backup__enabled=True, metrics__serviceMonitor=True, cluster__gatewayPort=6380, image__pullSecrets=[{"name": "p"}],
                            nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}])

    def pods(self, objects):
        """Name -> template of each object that makes pods."""
        found = {}
        for (kind, name), one in objects.items():
            spec = one["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else one.get("spec", {})
            if "template" in spec:
                found[f"{kind} {name}"] = spec["template"]
        return found

    def test_each_mode_has_its_objects(self):
        for mode in self.MODES:
            kinds = sorted(kind for kind, _ in self.objects(mode))
            more = {"one": [], "sentinel": ["PodDisruptionBudget"], "cluster": ["Job", "PodDisruptionBudget"]}[mode]
            self.assertEqual(kinds, sorted(["ConfigMap", "Service", "Service", "StatefulSet", *more]))
            self.assertEqual(len(self.all_objects(mode)), len(kinds) + 3)
            self.assertEqual(self.objects(mode)["StatefulSet", "r-fenwick"]["spec"]["replicas"], {"one": 1, "sentinel": 3, "cluster": 6}[mode])

    def test_services_select_the_pods_of_servers_alone_and_name_their_ports(self):
        for mode in self.MODES:
            objects = self.all_objects(mode)
            pods = self.pods(objects)
            servers = pods["StatefulSet r-fenwick"]
            ports = {port["name"] for container in servers["spec"]["containers"] for port in container["ports"]}
            for (kind, _), one in objects.items():
                if kind == "Service":
                    chosen = [name for name, pod in pods.items()
                              if one["spec"]["selector"].items() <= pod.get("metadata", {}).get("labels", {}).items()]
                    self.assertEqual(chosen, ["StatefulSet r-fenwick"])
                    self.assertLessEqual({port["targetPort"] for port in one["spec"]["ports"]}, ports)

    def test_what_is_mounted_and_run_is_there(self):
        for mode in self.MODES:
            for objects in (self.objects(mode), self.all_objects(mode)):
                files = objects["ConfigMap", "r-fenwick"]["data"]
                for name, pod in self.pods(objects).items():
                    spec = pod["spec"]
                    volumes = {volume["name"] for volume in spec["volumes"]} | ({"data"} if name.startswith("StatefulSet") else set())
                    mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
                    self.assertEqual(mounted, volumes, name)
                    for container in spec["containers"]:
                        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                        probes = [container[probe]["exec"]["command"] for probe in container if probe.endswith("Probe")]
                        for command in (container["command"], *probes):
                            if command[0] == "sh":
                                self.assertIn(os.path.basename(command[1]), files)

    def test_scripts_get_their_variables(self):
        needed = {"server.sh": {"MODE", "MY_HOST"}, "sentinel.sh": {"MY_HOST", "HOSTS", "QUORUM"},
                  "form.sh": {"HOSTS", "SHARDS", "REPLICAS_PER_SHARD"}}
        for mode in self.MODES:
            for pod in self.pods(self.all_objects(mode)).values():
                for container in pod["spec"]["containers"]:
                    given = {variable["name"] for variable in container.get("env", ())}
                    self.assertLessEqual(needed.get(os.path.basename(container["command"][-1]), set()), given)

    def test_servers_of_a_cluster_do_not_restart_when_shards_are_added(self):
        few, many = (self.objects("cluster", cluster__shards=shards)["StatefulSet", "r-fenwick"]["spec"] for shards in (3, 5))
        self.assertEqual((few["replicas"], many["replicas"]), (6, 10))
        self.assertEqual(few["template"], many["template"])

    def test_the_configuration_is_valid(self):
        for mode in self.MODES:
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                file.write(self.all_objects(mode)["ConfigMap", "r-fenwick"]["data"]["chart.conf"] + "\ncluster-enabled yes\n" * (mode == "cluster"))
                file.flush()
                done = subprocess.run((f"{ROOT}/src/valkey-server", "--check-config", file.name), capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


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
        self.assertEqual((done.returncode, done.stderr), (0, ""))
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

    def test_a_node_of_a_cluster_announces_its_name(self):
        lines = self.server("p1", mode="cluster", MY_ADDRESS="10.0.0.7", BUS_SECRET="b.c", PASSWORD="a")
        self.assertEqual(lines, ["port 6379", "requirepass a", "primaryauth a", "cluster-enabled yes", "cluster-announce-hostname p1",
                                 "shutdown-on-sigterm failover", "cluster-announce-ip 10.0.0.7", "cluster-bus-secret b.c"])
        lines = self.server("p1", mode="cluster", TLS="yes")
        self.assertIn("tls-cluster yes", lines)
        self.assertIn("cluster-preferred-endpoint-type hostname", lines)
        self.assertEqual(self.start("server.sh", "p1", mode="cluster", BUS_SECRET="two words").returncode, 1)

    def test_a_replica_without_its_primary_is_not_ready(self):
        for role, link, healthy, code in (("master", "", True, 0), ("slave", "up", True, 0), ("slave", "down", True, 1), ("master", "", False, 1)):
            self.program("valkey-health", f"exit {0 if healthy else 1}")
            self.program("valkey-cli", f"printf 'role:{role}\\r\\nmaster_link_status:{link}\\r\\n'")
            self.assertEqual(self.start("ready.sh", "p1").returncode, code, (role, link, healthy))

    def test_the_server_knows_the_lines(self):
        lines = self.server("p1", PASSWORD="a", TLS="yes") + ["min-replicas-to-write 1", "metrics-port 9121"]
        lines += [line for line in self.server("p1", mode="cluster", BUS_SECRET="b", MY_ADDRESS="10.0.0.7", TLS="yes") if "cluster" in line]
        lines = [line for line in lines if not line.startswith("replicaof")] + ["shutdown-on-sigterm failover", "cluster-gateway-port 6380"]
        with open(f"{self.folder}/check.conf", "w") as file:
            file.write("\n".join(line for line in lines if not line.startswith("tls-")) + "\n")
        done = subprocess.run((f"{ROOT}/src/valkey-server", "--check-config", f"{self.folder}/check.conf"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Cluster(unittest.TestCase):
    """The scripts with servers of this tree, one at each address of the loopback interface, like pods."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.port, guards = reserve_node_port()
        for guard in guards:
            self.addCleanup(guard.close)
        self.servers = {}
        self.addCleanup(self.stop_all)

    def environment(self, host, **more):
        return {"PATH": f"{ROOT}/src:{os.environ['PATH']}", "MODE": "cluster", "MY_HOST": host, "MY_ADDRESS": host, "BIND": host,
                "PORT": str(self.port), "PASSWORD": "secret", "BUS_SECRET": "of-the-bus", "RUN": f"{self.folder}/{host}",
                "CONF": f"{self.folder}/{host}/start.conf", "PAUSE": "0.2", **more}

    def start_pod(self, host):
        folder = f"{self.folder}/{host}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/start.conf", "w") as file:
            file.write(f"dir {folder}\nlogfile server.log\nunixsocket {folder}/valkey.sock\ncluster-node-timeout 5000\n")
        self.servers[host] = subprocess.Popen(("sh", f"{CHART}/files/server.sh"), env=self.environment(host), stdout=subprocess.DEVNULL)

    def stop_all(self):
        for server in self.servers.values():
            server.kill()
            server.wait()

    def form(self, hosts, shards):
        return subprocess.run(("sh", f"{CHART}/files/form.sh"), capture_output=True, text=True, check=False, timeout=300,
                              env=self.environment(hosts[0], HOSTS=" ".join(hosts), SHARDS=str(shards), REPLICAS_PER_SHARD="1"))

    def ask(self, host, *words):
        done = subprocess.run((f"{ROOT}/src/valkey-cli", "-h", host, "-p", str(self.port), "-a", "secret", "--no-auth-warning", *words),
                              capture_output=True, text=True, check=True)
        return done.stdout

    def roles(self, host):
        """Of the nodes: (primaries with slots, without, replicas)."""
        lines = [line.split() for line in self.ask(host, "cluster", "nodes").splitlines()]
        primaries = [line for line in lines if "master" in line[2]]
        return len([line for line in primaries if len(line) > 8]), len([line for line in primaries if len(line) == 8]), len(lines) - len(primaries)

    def test_pods_become_a_cluster_that_grows(self):
        hosts = [f"127.0.0.{number}" for number in range(11, 19)]
        for host in hosts[:6]:
            self.start_pod(host)
        done = self.form(hosts[:6], 3)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.roles(hosts[0]), (3, 0, 3))
        self.assertEqual(self.ask(hosts[0], "-c", "set", "greeting", "hello").strip(), "OK")
        # Again: nothing is to be done.
        done = self.form(hosts[:6], 3)
        self.assertEqual((done.returncode, done.stdout), (0, "all pods are in the cluster\n"), done.stderr)
        for host in hosts[6:]:
            self.start_pod(host)
        done = self.form(hosts, 4)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.roles(hosts[7]), (3, 1, 4))
        done = subprocess.run(("sh", f"{CHART}/files/rebalance.sh"), env=self.environment(hosts[2]), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.roles(hosts[2]), (4, 0, 4))
        self.assertEqual(self.ask(hosts[7], "-c", "get", "greeting").strip(), "hello")

    def test_an_interrupted_attempt_is_repeated(self):
        hosts = [f"127.0.0.{number}" for number in range(11, 17)]
        for host in hosts:
            self.start_pod(host)
        for host in hosts:
            deadline = time.monotonic() + 60
            while subprocess.run((f"{ROOT}/src/valkey-cli", "-h", host, "-p", str(self.port), "ping"), capture_output=True, check=False).returncode:
                self.assertLess(time.monotonic(), deadline)
        # Slots are given, two nodes know each other: a cluster that does not work.
        self.ask(hosts[0], "cluster", "addslotsrange", "0", "5460")
        self.ask(hosts[1], "cluster", "addslotsrange", "5461", "10922")
        self.ask(hosts[1], "cluster", "meet", hosts[0], str(self.port))
        environment = self.environment(hosts[0], HOSTS=" ".join(hosts), SHARDS="3", REPLICAS_PER_SHARD="1", TRIES="2")
        done = subprocess.run(("sh", f"{CHART}/files/form.sh"), capture_output=True, text=True, check=False, timeout=300, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.roles(hosts[0]), (3, 0, 3))

    def test_too_many_primaries_are_told(self):
        hosts = ["p0", "p1"]
        with open(f"{self.folder}/valkey-cli", "w") as file:
            file.write("#!/bin/sh\ncase \"$*\" in\n*'cluster info'*) echo cluster_state:ok ;;\n"
                       "*'cluster nodes'*) echo 'a p0 master'; echo 'b p1 myself,master'; echo 'c p2 master,fail' ;;\nesac\n")
        os.chmod(f"{self.folder}/valkey-cli", 0o755)
        for shards, code in ((1, 1), (2, 0)):
            environment = self.environment(hosts[0], HOSTS=" ".join(hosts), SHARDS=str(shards), REPLICAS_PER_SHARD="0", TRIES="2",
                                           PATH=f"{self.folder}:{os.environ['PATH']}")
            done = subprocess.run(("sh", f"{CHART}/files/form.sh"), capture_output=True, text=True, check=False, timeout=300, env=environment)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "all pods are in the cluster\n")

    def test_keys_are_not_taken_from_anybody(self):
        hosts = [f"127.0.0.{number}" for number in range(11, 14)]
        programs = {"cluster info": "cluster_state:fail", "dbsize": "5"}
        cases = "".join(f"*'{words}'*) echo {reply} ;;\n" for words, reply in programs.items())
        with open(f"{self.folder}/valkey-cli", "w") as file:
            file.write(f'#!/bin/sh\necho "$*" >> {self.folder}/asked\ncase "$*" in\n{cases}esac\n')
        os.chmod(f"{self.folder}/valkey-cli", 0o755)
        environment = self.environment(hosts[0], HOSTS=" ".join(hosts), SHARDS="3", REPLICAS_PER_SHARD="0", TRIES="2",
                                       PATH=f"{self.folder}:{os.environ['PATH']}")
        done = subprocess.run(("sh", f"{CHART}/files/form.sh"), capture_output=True, text=True, check=False, timeout=300, env=environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has keys", done.stderr)
        self.assertNotIn("reset", read(f"{self.folder}/asked"))


if __name__ == "__main__":
    unittest.main()

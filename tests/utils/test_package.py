# SPDX-License-Identifier: BSD-3-Clause
"""utils/package/package.sh: a Debian package and a tarball of programs that were installed into a folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/utils/package")
import first_minutes  # noqa: E402
PACKAGE = f"{ROOT}/utils/package/package.sh"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        stage = f"{self.folder}/stage"
        os.makedirs(f"{stage}/usr/bin")
        os.makedirs(f"{stage}/usr/share/valkey")
        for program in ("valkey-server", "valkey-cli"):
            shutil.copy(f"{ROOT}/src/{program}", f"{stage}/usr/bin/{program}")
        os.link(f"{stage}/usr/bin/valkey-server", f"{stage}/usr/bin/valkey-sentinel")
        for name in ("valkey.conf", "sentinel.conf"):
            shutil.copy(f"{ROOT}/{name}", f"{stage}/usr/share/valkey/{name}")
        self.stage = stage

    def build(self, kind):
        return run(PACKAGE, kind, self.stage, f"{self.folder}/out").strip()

    @unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "this system has no dpkg-deb or no dpkg-shlibdeps")
    def test_debian_package(self):
        file = self.build("deb")
        fields = run("dpkg-deb", "--field", file)
        self.assertIn("Package: fenwick-server\n", fields)
        self.assertRegex(fields, r"Version: \d+\.\d+")
        self.assertRegex(fields, r"Depends: .*libc6 \(>= 2\.\d+\)")
        self.assertNotRegex(fields, r"@[A-Z]+@")
        self.assertRegex(fields, r"Maintainer: .+ <.+@.+>\n")
        names = run("dpkg-deb", "--contents", file)
        for name in ("./usr/bin/valkey-server", "./usr/bin/valkey-sentinel", "./etc/valkey/valkey.conf"):
            self.assertIn(f" {name}", names)
        self.assertRegex(names, r"-rw-r----- root/root .* ./etc/valkey/valkey.conf")
        tree = f"{self.folder}/tree"
        run("dpkg-deb", "--raw-extract", file, tree)
        for script in ("postinst", "prerm", "postrm"):
            run("sh", "-n", f"{tree}/DEBIAN/{script}")
        self.assertIn("valkey-cli", run(f"{tree}/usr/bin/valkey-cli", "--version"))


class FirstMinutes(unittest.TestCase):
    @unittest.skipUnless(os.path.exists(f"{ROOT}/{first_minutes.PAGE}"), "the page was not written yet")
    def test_the_page_has_the_commands_of_the_script(self):
        with open(f"{ROOT}/{first_minutes.PAGE}", encoding="utf-8") as page:
            sections = page.read().split("\n## ")[1:]
        self.assertGreater(len(sections), 3)
        for text in sections:
            typed = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            steps = first_minutes.DEB if text.partition("\n")[0].endswith(".deb") else first_minutes.TARBALL
            file = typed[0].split()[-1].removeprefix("./")
            self.assertEqual(typed, [step.format(file=file, name=file.removesuffix(".tar.gz")) for step, _ in steps])

    def test_long_output_is_shortened(self):
        self.assertEqual(first_minutes.shown(["1", "2", "3"], 2), ["...", "2", "3"])
        self.assertEqual(first_minutes.shown(["x" * 200 + "  "], 2), ["x" * first_minutes.COLUMNS])


PROGRAM = r"""
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
unsigned lzf_compress(const void *, unsigned, void *, unsigned);
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1; }
static void *run(void *arg) { return arg; }
int main(int argc, char **argv) {
    struct stat status;
    pthread_t thread;
    timer_t timer;
    char out[200];
    int ok = constructed && stat(argv[0], &status) == 0 && status.st_size > 0;
    ok = ok && pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0;
    ok = ok && timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && dlsym(RTLD_DEFAULT, "malloc");
    ok = ok && pow(argc + 1, 3) == 8 && lzf_compress("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 31, out, sizeof(out));
    fprintf(stdout, "%s\n", ok ? "works" : "fails");
    return !ok;
}
"""


@unittest.skipUnless(shutil.which("dpkg-query"), "this system has no dpkg")
class Tarball(unittest.TestCase):
    """A program in the place of the server's: to link those takes minutes."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = f"{self.folder}/stage/usr/bin"
        os.makedirs(self.bin)
        os.makedirs(f"{self.folder}/stage/usr/share")
        with open(f"{self.folder}/program.c", "w") as file:
            file.write(PROGRAM)

    def link(self, *options):
        run("gcc", "-O1", "-o", f"{self.bin}/valkey-server", f"{self.folder}/program.c", *options, "-llzf", "-lm",
            "-Wl,-rpath,$ORIGIN/../lib")

    def link_for_old_systems(self):
        glibc = f"{self.folder}/glibc"
        run(f"{ROOT}/utils/package/old_glibc.py", glibc, "gcc")
        with open(f"{glibc}/options") as file:
            self.link(f"-L{glibc}", *file.read().split())

    def tarball(self, kind="tarball"):
        library = run("gcc", "-print-file-name=liblzf.so").strip()
        return run(PACKAGE, kind, f"{self.folder}/stage", f"{self.folder}/out", library).strip()

    def test_a_program_for_old_systems_runs_here_and_in_any_folder(self):
        self.link_for_old_systems()
        file = self.tarball()
        run("tar", "-C", self.folder, "-xzf", file)
        tree = f"{self.folder}/{os.path.basename(file).removesuffix('.tar.gz')}"
        self.assertEqual(run(f"{tree}/bin/valkey-server"), "works\n")
        self.assertIn(f"{tree}/bin/../lib/liblzf.so.1", run("ldd", f"{tree}/bin/valkey-server"))

    @unittest.skipUnless(shutil.which("rpmbuild"), "this system has no rpmbuild")
    def test_rpm(self):
        self.link_for_old_systems()
        conf = f"{self.folder}/stage/usr/share/valkey"
        os.makedirs(conf)
        for name in ("valkey.conf", "sentinel.conf"):
            shutil.copy(f"{ROOT}/{name}", conf)
        file = self.tarball("rpm")
        files = run("rpm", "-qplv", file)
        self.assertRegex(files, r"lrwxrwxrwx .* /usr/bin/valkey-server -> ../libexec/fenwick-server/bin/valkey-server\n")
        self.assertRegex(files, r"-rw-r----- +\d+ valkey +valkey .* /etc/valkey/valkey.conf\n")
        self.assertIn(" /usr/libexec/fenwick-server/lib/liblzf.so.1\n", files)
        self.assertIn("libc.so.6(GLIBC_2.28)(64bit)\n", run("rpm", "-qp", "--requires", file))
        self.assertIn("/etc/valkey/valkey.conf", run("rpm", "-qpc", file))
        tree = f"{self.folder}/stage/usr"  # what the package was made of
        self.assertEqual(run(f"{tree}/bin/valkey-server"), "works\n")

    def test_a_program_that_needs_a_new_glibc_is_refused(self):
        self.link()
        check = f"{ROOT}/utils/package/old_glibc.py"
        done = subprocess.run((check, "--check", f"{self.bin}/valkey-server"), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.skipTest("the glibc of this machine is old enough")
        self.assertRegex(done.stderr, r"needs a glibc after 2\.28: .*\(glibc 2\.\d+\)")
        with self.assertRaises(subprocess.CalledProcessError):
            self.tarball()

    def test_documents_licences_components_and_sums(self):
        self.link_for_old_systems()
        file = self.tarball()
        out = os.path.dirname(file)
        run("tar", "-C", self.folder, "-xzf", file)
        tree = f"{self.folder}/{os.path.basename(file).removesuffix('.tar.gz')}"
        links = 0
        for top, _, names in os.walk(tree):
            for name in (name for name in names if name.endswith(".md")):
                with open(f"{top}/{name}") as page:
                    text = re.sub(r"`[^`\n]*`", "", page.read())
                for target in re.findall(r"(?<!\\)\]\(([^()\s#]+)[^()\s]*\)", text):
                    links += 1
                    self.assertTrue(re.match("[a-z]+:", target) or os.path.exists(f"{top}/{target}"), f"{name}: {target}")
        self.assertGreater(links, 50)
        self.assertTrue(os.path.getsize(f"{tree}/licenses/liblzf.txt"))
        with open(f"{tree}/sbom.spdx.json") as sbom:
            document = json.load(sbom)
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual([package["name"] for package in document["packages"]], ["fenwick-server", "liblzf"])
        self.assertEqual([relation["relationshipType"] for relation in document["relationships"]], ["DESCRIBES", "DYNAMIC_LINK"])
        sums = run("sha256sum", "--check", "SHA256SUMS", cwd=out)
        self.assertEqual(sums.count(": OK"), 2)


if __name__ == "__main__":
    unittest.main()

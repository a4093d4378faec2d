# SPDX-License-Identifier: BSD-3-Clause
"""utils/package/package.sh: a Debian package and a tarball of programs that were installed into a folder."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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

    @unittest.skipUnless(shutil.which("patchelf"), "this system has no patchelf")
    def test_tarball_has_its_libraries(self):
        file = self.build("tarball")
        tree = f"{self.folder}/tree"
        os.makedirs(tree)
        run("tar", "-C", tree, "-xzf", file)
        (name,) = os.listdir(tree)
        for program in ("valkey-server", "valkey-sentinel", "valkey-cli"):
            linked = run("ldd", f"{tree}/{name}/bin/{program}")
            self.assertNotIn("not found", linked)
            for line in linked.splitlines():
                if "=>" in line and not any(system in line for system in ("libc.so", "libm.so", "libdl.so", "libpthread.so")):
                    self.assertIn(f"{tree}/{name}/bin/../lib/", line)
        self.assertIn("Valkey server", run(f"{tree}/{name}/bin/valkey-server", "--version"))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_docs.py finds broken links and code blocks; the flags' stamp does not depend on the tree's path."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
import check_docs  # noqa: E402

OPTIONS, TARGETS = {"port", "maxmemory"}, {"run", "test"}


class CheckDocs(unittest.TestCase):
    def links(self, text):
        return list(check_docs.link_faults("docs/tour.md", text, set()))

    def block(self, language, content):
        return list(check_docs.block_faults(language, content, OPTIONS, TARGETS))

    def test_links_to_files_and_headings_that_exist_are_valid(self):
        self.assertEqual([], self.links("[a](memory.md) [b](memory.md#when-it-is-full) [c](https://example.org/x) `[d](none)`"))

    def test_a_link_to_a_missing_file_or_heading_is_found(self):
        self.assertEqual(["docs/tour.md:2: no such file: none.md"], self.links("\n[a](none.md)"))
        self.assertEqual(["docs/tour.md:1: no such heading: memory.md#none"], self.links("[a](memory.md#none)"))

    def test_an_address_that_is_not_complete_is_found(self):
        for address in ("https://example", "http://example.org/", "https://example.org/a|b", "ftp://example.org/"):
            self.assertEqual([f"docs/tour.md:1: not a complete https address: {address}"], self.links(f"[a]({address})"))
        self.assertEqual([], self.links("[a](https://www.example.org/a/b-c.md?x=1#part) [b](mailto:a.b@example.org)"))

    def test_a_wide_line_of_text_is_found(self):
        wide = "word " * 41
        self.assertEqual(["docs/tour.md:2: 205 columns, 200 at most"], list(check_docs.width_faults("docs/tour.md", "\n" + wide)))
        self.assertEqual([], list(check_docs.width_faults("docs/tour.md", f"| {wide} |\n```text\n{wide}\n```\n")))

    def test_a_block_that_is_not_closed_is_found(self):
        self.assertEqual([(1, "sh", "a\n"), (4, "", None)], list(check_docs.blocks("```sh\na\n```\n```\nb")))

    def test_shell_that_is_valid_has_no_fault(self):
        self.assertEqual([], self.block("sh", "make run ARGS=x   # words\nsrc/valkey-server --port 7000 --maxmemory 1gb\nutils/check.sh\n"))

    def test_faults_of_shell_are_found(self):
        self.assertIn("not shell", self.block("sh", "if\n")[0])
        self.assertEqual(["make has no target fly"], self.block("sh", "make fly\n"))
        self.assertEqual(["no such file: utils/none.sh"], self.block("sh", "utils/none.sh\n"))
        self.assertEqual(["valkey-server has no option --prot"], self.block("sh", "valkey-server --prot 1\n"))

    def test_directives_that_do_not_exist_are_found(self):
        self.assertEqual(["no such directive: prot"], self.block("conf", "# words\nport 1\nprot 2\n"))

    def test_unknown_languages_are_found(self):
        self.assertIn("the language shell is none of", self.block("shell", "")[0])


class MovedTree(unittest.TestCase):
    def test_a_tree_that_was_moved_is_not_built_anew(self):
        """The stamp that all objects depend on keeps its time, unless flags have changed."""
        with tempfile.TemporaryDirectory() as folder:
            old, new = os.path.join(folder, "old"), os.path.join(folder, "new")
            for name in ("Makefile", "deps/deps.txt", "deps/probe.sh", "src/layers.txt"):
                os.makedirs(os.path.dirname(os.path.join(old, name)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, name), os.path.join(old, name))
            self.make(old)
            stamp = os.stat(os.path.join(old, "build/debug/flags")).st_mtime_ns
            os.rename(old, new)
            self.make(new)
            self.assertEqual(stamp, os.stat(os.path.join(new, "build/debug/flags")).st_mtime_ns)
            self.make(new, "CFLAGS=-DX")
            self.assertNotEqual(stamp, os.stat(os.path.join(new, "build/debug/flags")).st_mtime_ns)

    def make(self, folder, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        subprocess.run(["make", "-s", "BUILD=debug", *words, "build/debug/flags"], cwd=folder, env=environment, check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)


if __name__ == "__main__":
    unittest.main()

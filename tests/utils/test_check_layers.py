# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_layers.py finds what a pure folder may not do."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = "base : \nio : base\nbus : base\npublic base : *\npublic io : *\npure bus : base\n"
HEADERS = {"src/base/clock.h": "int clockNow(void);\nstatic inline int clockTicks(void) { return 1; }\n",
           "src/base/clock.c": '#include "base/clock.h"\nint clockNow(void) { return 1; }\n',
           "src/base/str.h": "int strLen(void);\n", "src/base/str.c": "int strLen(void) { return 0; }\n"}


class Pure(unittest.TestCase):
    def found(self, source, table=TABLE, more=()):
        """The lines about purity for src/bus/bus.c with this text."""
        with tempfile.TemporaryDirectory() as tree:
            files = {**HEADERS, "src/layers.txt": table, "src/bus/bus.c": source, **dict(more)}
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            for path in files:
                if path.endswith(".c"):
                    out = os.path.join(tree, "build", path[4:-2] + ".o")
                    os.makedirs(os.path.dirname(out), exist_ok=True)
                    subprocess.run(["gcc", "-O0", "-Isrc", "-c", "-o", out, path], cwd=tree, check=True)
            result = subprocess.run([sys.executable, os.path.join(ROOT, "utils/check_layers.py"), "--objects", "build"],
                                    cwd=tree, capture_output=True, text=True, check=False)
            return [line for line in result.stdout.split("\n") if "pure" in line or "header lines" in line]

    def test_what_depends_on_arguments_alone_is_pure(self):
        self.assertEqual([], self.found('#include "base/str.h"\n#include <string.h>\nstatic const char *const names[] = {"a"};\n'
                                        "size_t f(const char *s) { return strlen(s) + strLen() + (s == names[0]); }\n"))

    def test_clocks_calls_of_the_system_and_data_are_found(self):
        self.assertIn("it uses clockNow of base/clock", "".join(self.found(
            "int clockNow(void);\nint f(void) { int (*g)(void) = clockNow; return g(); }\n")))
        self.assertIn("it calls clockTicks()", "".join(self.found('#include "base/clock.h"\nint f(void) { return clockTicks(); }\n')))
        self.assertIn("it uses time of the system", "".join(self.found("#include <time.h>\nlong f(void) { return time(0); }\n")))
        self.assertIn("count is data that is not const", "".join(self.found("static int count;\nint f(void) { return count++; }\n")))

    def test_a_header_that_includes_more_is_found(self):
        more = {"src/io/loop.h": "int x(void);\n", "src/base/all.h": '#include "io/loop.h"\n'}
        self.assertIn("base/all.h > io/loop.h", "".join(self.found('#include "base/all.h"\nint y;\n', more=more.items())))


    def test_header_lines_are_counted_through_headers_once(self):
        more = {"src/base/all.h": '#include "base/str.h"\n\n', "src/base/more.h": '#include "base/str.h"\n#include "base/all.h"\n'}
        for most, failed in ((5, 0), (4, 1)):
            lines = self.found('#include "base/all.h"\n#include "base/more.h"\n', TABLE + f"headers bus : {most}\n", more.items())
            self.assertIn("bus sees 5 header lines at the median, 5 at most", lines[0])
            self.assertEqual(failed, sum("more than 4" in line for line in lines))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The identifiers of the client library that programs name, and that the check notices one that is missing."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client_names  # noqa: E402

INCLUDE = os.path.join(client_names.ROOT, "src/clientlib")


class ClientNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.link = client_names.own_library(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_programs_can_name_everything(self):
        self.assertGreater(client_names.check(INCLUDE, self.link), 300)

    def test_programs_of_cpp_can_name_everything_but_adapters(self):
        if not os.path.exists("/usr/bin/g++"):
            self.skipTest("no compiler of C++")
        headers = [h for h in client_names.read_names() if "/adapters/" not in h[0]]
        client_names.compile_and_link(headers, INCLUDE, self.link, "c++")

    def test_what_is_missing_is_noticed(self):
        for row in (("macro", "VALKEY_NO_SUCH_MACRO", []), ("macro", "VALKEY_OK", ["1"]), ("type", "valkeyReader", ["no"]),
                    ("function", "valkeyNoSuchFunction", []), ("constant", "VALKEY_CONN_NONE", [])):
            with self.assertRaises(RuntimeError):
                client_names.compile_and_link([("valkey/valkey.h", [row])], INCLUDE, self.link)


if __name__ == "__main__":
    unittest.main()

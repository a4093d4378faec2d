# SPDX-License-Identifier: BSD-3-Clause
"""The load generator of tests/bench (load.c) against a server that replies +OK to everything."""

import os
import socket
import subprocess
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "tests/bench/load.c")


class Replier:
    """Counts requests on all connections; `many` is set when there were 50."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.count, self.many, self.lock = self.listener.getsockname()[1], 0, threading.Event(), threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            while True:
                requests = connection.recv(65536).count(b"\r\n$3\r\nGET\r\n")
                if not requests:
                    return
                with self.lock:  # before the replies, after which the load may end
                    self.count += requests
                    if self.count >= 50:
                        self.many.set()
                connection.sendall(b"+OK\r\n" * requests)


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.folder.name, "load")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", cls.program, SOURCE, "-lm"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, replier, *options):
        return subprocess.Popen([self.program, "-c", "2", *options, str(replier.port), "GET key:%r"],
                                stdout=subprocess.PIPE, text=True)

    def test_an_open_load_that_is_terminated_prints_the_figures_so_far(self):
        replier = Replier()
        with replier.listener, self.start(replier, "-R", "500", "-S", "1", "-K", "-W", "-n", "1000000") as load:
            self.assertTrue(replier.many.wait(60))
            load.terminate()
            row = load.communicate(timeout=60)[0].strip().split("|")
        self.assertEqual(0, load.returncode)
        self.assertEqual(10, len(row))
        self.assertLessEqual(float(row[1]), float(row[4]))
        self.assertLessEqual(float(row[4]), float(row[5]))

    def test_a_load_that_is_not_terminated_sends_all_of_its_requests(self):
        replier = Replier()
        with replier.listener, self.start(replier, "-R", "2000", "-S", "2", "-K", "-W", "-n", "100") as load:
            row = load.communicate(timeout=60)[0].split("|")
        self.assertEqual((0, 10), (load.returncode, len(row)))
        self.assertEqual(100, replier.count)


if __name__ == "__main__":
    unittest.main()

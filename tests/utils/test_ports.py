# SPDX-License-Identifier: BSD-3-Clause
"""tests/support/ports.py."""

import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import guard_port, reserve_node_port  # noqa: E402


def listener(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen()
    return s


class Ports(unittest.TestCase):
    def test_servers_can_listen_at_the_ports_of_a_node(self):
        port, guards = reserve_node_port()
        for at in (port, port + 10000):
            listener(at).close()
        for guard in guards:
            guard.close()

    def test_a_client_does_not_get_a_guarded_port(self):
        port, guards = reserve_node_port()
        with socket.socket() as client, self.assertRaises(OSError):
            client.bind(("127.0.0.1", port + 10000))
        for guard in guards:
            guard.close()

    def test_a_port_where_somebody_listens_is_not_guarded(self):
        port, guards = reserve_node_port()
        with listener(port), self.assertRaises(OSError):
            guard_port(port)
        for guard in guards:
            guard.close()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""Ports for the servers of tests and benchmarks."""
import random
import socket


def reserve_port():
    """A port where nothing listens, above those of the Tcl suite (support/server.tcl) and below those that the kernel gives
    to clients; and a UDP socket bound to it, which keeps it from other users of this function, also in other processes,
    until it is closed."""
    while True:
        port = random.randrange(31000, 32700)
        guard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            guard.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            return port, guard
        except OSError:
            guard.close()


def guard_port(port):
    """A TCP socket that is bound to the port and does not listen: until it is closed the kernel does not give the port to
    clients, and a server, which sets SO_REUSEADDR, can listen there. Raises OSError if the port is taken."""
    guard = socket.socket()
    guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        guard.bind(("127.0.0.1", port))
    except OSError:
        guard.close()
        raise
    return guard


def reserve_node_port():
    """Like reserve_port(), for a node of a cluster: its bus port, 10,000 more, is one of those that the kernel gives to
    clients. Returns the port and two guards."""
    while True:
        port, guard = reserve_port()
        try:
            return port, [guard, guard_port(port + 10000)]
        except OSError:
            guard.close()

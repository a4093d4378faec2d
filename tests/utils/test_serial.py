#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tests/support/serial.py: histories that have an order, and some that have none."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from serial import Op, fault_of  # noqa: E402

A = frozenset({b"a"})
AB = frozenset({b"a", b"b"})


def op(begin, end, reply, *words):
    return Op(words, reply, begin, end)


class Histories(unittest.TestCase):
    def test_one_client(self):
        ops = [op(0, 1, b"1", "SADD", "s1", b"a"), op(2, 3, [b"a"], "SMEMBERS", "s1"), op(4, 5, b"1", "DEL", "s1")]
        self.assertEqual(fault_of([ops], {}, {}), "")
        self.assertIn("more than 1 of 3", fault_of([[ops[0], op(2, 3, [], "SMEMBERS", "s1"), ops[2]]], {}))
        self.assertIn("another dataset", fault_of([ops], {}, {"s1": A}))

    def test_operations_at_the_same_time_have_any_order(self):
        write = op(0, 10, b"1", "SADD", "s1", b"b")
        for reply in ([b"a"], [b"b", b"a"]):
            self.assertEqual(fault_of([[write], [op(5, 20, reply, "SMEMBERS", "s1")]], {"s1": A}, {"s1": AB}), "")

    def test_real_time_counts(self):
        write = op(0, 10, b"1", "SADD", "s1", b"b")
        self.assertNotEqual(fault_of([[write], [op(11, 20, [b"a"], "SMEMBERS", "s1")]], {"s1": A}), "")

    def test_a_reply_of_two_moments(self):
        """SUNION sees one key before a transaction and the other after it."""
        both = [op(0, 10, [b"1", b"1"], "EXEC", ("SADD", "s1", b"x"), ("SADD", "s2", b"y"))]
        for reply, right in (([b"a"], True), ([b"a", b"x", b"y"], True), ([b"a", b"y"], False)):
            read = [op(0, 10, reply, "SUNION", "s1", "s2")]
            self.assertEqual(fault_of([both, read], {"s1": A, "s2": A}) == "", right, reply)

    def test_a_store_computed_from_an_older_moment_than_its_effect(self):
        """A read between sees the source changed and the destination not yet there: no order, if the result lacks the change."""
        store = op(0, 30, b"1", "SUNIONSTORE", "s3", "s1", "s2")
        other = [op(5, 8, b"1", "SADD", "s1", b"b"), op(10, 12, b"0", "SCARD", "s3")]
        self.assertNotEqual(fault_of([[store], other], {"s1": A}), "")
        whole = op(0, 30, b"2", "SUNIONSTORE", "s3", "s1", "s2")
        self.assertEqual(fault_of([[whole], other], {"s1": A}, {"s1": AB, "s3": AB}), "")

    def test_each_command_of_the_model(self):
        two = frozenset({(b"a", 1.0), (b"b", 2.0)})
        cases = (
            (("HSET", "h1", b"a", b"1"), {}, b"1", {"h1": frozenset({(b"a", b"1")})}),
            (("HDEL", "h1", b"a"), {"h1": frozenset({(b"a", b"1")})}, b"1", {}),
            (("HGETALL", "h1"), {"h1": frozenset({(b"a", b"1")})}, [b"a", b"1"], None),
            (("RPUSH", "l1", b"2"), {"l1": (b"1",)}, b"2", {"l1": (b"1", b"2")}),
            (("LPOP", "l1"), {"l1": (b"1", b"2")}, b"1", {"l1": (b"2",)}),
            (("LPOP", "l1"), {}, None, {}),
            (("LREM", "l1", 0, b"1"), {"l1": (b"1", b"2", b"1")}, b"2", {"l1": (b"2",)}),
            (("LINSERT", "l1", "BEFORE", b"2", b"3"), {"l1": (b"1", b"2")}, b"3", {"l1": (b"1", b"3", b"2")}),
            (("LTRIM", "l1", 1, -1), {"l1": (b"1", b"2", b"3")}, b"OK", {"l1": (b"2", b"3")}),
            (("SORT", "l1"), {"l1": (b"10", b"9")}, [b"9", b"10"], None),
            (("ZADD", "z1", 2, b"b"), {"z1": frozenset({(b"a", 1.0)})}, b"1", {"z1": two}),
            (("ZREM", "z1", b"b"), {"z1": two}, b"1", {"z1": frozenset({(b"a", 1.0)})}),
            (("ZRANGE", "z1", 0, -1, "WITHSCORES"), {"z1": two}, [[b"a", b"1"], [b"b", b"2"]], None),
            (("ZREMRANGEBYRANK", "z1", 0, 0), {"z1": two}, b"1", {"z1": frozenset({(b"b", 2.0)})}),
            (("ZRANGESTORE", "z2", "z1", 0, 0), {"z1": two}, b"1", {"z1": two, "z2": frozenset({(b"a", 1.0)})}),
            (("ZINTERSTORE", "z3", 2, "z1", "z2"), {"z1": two, "z2": two}, b"2",
             {"z1": two, "z2": two, "z3": frozenset({(b"a", 2.0), (b"b", 4.0)})}),
            (("SDIFFSTORE", "s3", "s1", "s2"), {"s1": A, "s2": AB, "s3": A}, b"0", {"s1": A, "s2": AB}),
            (("SPOP", "s1", 1), {"s1": AB}, [b"b"], {"s1": A}),
            (("COPY", "s1", "s2", "REPLACE"), {"s1": A}, b"1", {"s1": A, "s2": A}),
            (("RENAME", "s1", "s2"), {"s1": A, "s2": AB}, b"OK", {"s2": A}),
            (("KEYS", "*"), {"s1": A}, [b"s1"], None),
        )
        for words, before, reply, after in cases:
            self.assertEqual(fault_of([[op(0, 1, reply, *words)]], before, before if after is None else after), "", words)
            wrong = b"OK" if reply == b"1" else b"7" if isinstance(reply, bytes) or reply is None else [b"zz"]
            if isinstance(reply, list) and len(reply) == 2 and words[0] == "ZRANGE":
                wrong = [[b"zz", b"1"]]
            if words[0] == "HGETALL":
                wrong = [b"zz", b"1"]
            self.assertNotEqual(fault_of([[op(0, 1, wrong, *words)]], before), "", words)


if __name__ == "__main__":
    unittest.main()

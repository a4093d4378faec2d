# SPDX-License-Identifier: BSD-3-Clause
"""tests/durability/histories.py."""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../durability"))
from histories import UNKNOWN, Op, counter_fault, register_fault  # noqa: E402


def is_linearizable(history):
    """By trying all orders."""

    def after(state, op):
        """The next state, or no state if the reply cannot be."""
        if op.kind == "write":
            return (op.value,)
        if op.kind == "increment":
            return ((state or 0) + 1,) if op.end == UNKNOWN or op.value == (state or 0) + 1 else ()
        return (state,) if op.value == state else ()

    def search(state, left):
        if all(op.end == UNKNOWN for op in left):
            return True
        bound = min(op.end for op in left)
        for i, op in enumerate(left):
            if op.begin <= bound:
                for then in after(state, op):
                    if search(then, left[:i] + left[i + 1:]):
                        return True
        return False

    return search(None, history)


def random_history(rng, kind):
    """Operations of a real register or counter with random intervals around them; a few are then changed."""
    history, state = [], None
    for at in range(rng.randrange(1, 8)):
        begin, end = at - rng.choice((0, 0.4, 1.4, 2.4)), at + rng.choice((0.1, 0.5, 1.5, 2.5))
        done = True
        if rng.random() < 0.5:
            op = Op("read", state, begin, end)
        else:
            done = rng.random() < 0.8
            value = f"v{at}" if kind == "write" else (state or 0) + 1
            op = Op(kind, value, begin, end if done and rng.random() < 0.8 else UNKNOWN)
            if done:
                state = value
        history.append(op)
    for op in history:
        if rng.random() < 0.15 and op.kind == "read":
            op.value = rng.choice(history).value
        if rng.random() < 0.15:
            op.end = op.begin + 0.05 if op.end != UNKNOWN else UNKNOWN
        if rng.random() < 0.15:
            op.begin, op.end = op.begin + 1.5, op.end + 1.5
    history.sort(key=lambda op: op.begin)
    return history


class Histories(unittest.TestCase):
    def compare(self, kind, fault_of):
        rng = random.Random(7)
        verdicts = [0, 0]
        for _ in range(4000):
            history = random_history(rng, kind)
            expected = is_linearizable(history)
            fault = fault_of(history)
            self.assertEqual(expected, fault == "", "\n".join(map(str, history)) + "\n" + fault)
            verdicts[expected] += 1
        self.assertGreater(min(verdicts), 300)

    def test_registers_as_by_trying_all_orders(self):
        self.compare("write", register_fault)

    def test_counters_as_by_trying_all_orders(self):
        self.compare("increment", counter_fault)

    def test_a_lost_write_is_found(self):
        self.assertNotEqual("", register_fault([Op("write", "a", 0, 1), Op("read", None, 2, 3)]))
        self.assertNotEqual("", register_fault([
            Op("write", "a", 0, 1), Op("write", "b", 2, 3), Op("read", "a", 4, 5)]))

    def test_a_lost_or_doubled_increment_is_found(self):
        self.assertNotEqual("", counter_fault([Op("increment", 1, 0, 1), Op("increment", 1, 2, 3)]))
        self.assertNotEqual("", counter_fault([Op("increment", 1, 0, 1), Op("increment", 3, 2, 3)]))
        self.assertEqual("", counter_fault([
            Op("increment", 1, 0, 1), Op("increment", None, 0, UNKNOWN), Op("increment", 3, 2, 3)]))


if __name__ == "__main__":
    unittest.main()

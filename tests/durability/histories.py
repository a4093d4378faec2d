# SPDX-License-Identifier: BSD-3-Clause
"""Is a history of one key linearizable?

A history is a list of Op: what a client asked for, what it was told, and the times of its request and of the reply,
both by one monotonic clock. A request without a reply, or with one that does not tell whether it was done, has the end
UNKNOWN: it may take effect at any time after its begin, or never.

register_fault() is for keys that are only set, to values that are all different, and read: the intervals of a value,
its zone, decide (P. B. Gibbons and E. Korach, "Testing Shared Memories", SIAM Journal on Computing 26, 1997).
counter_fault() is for keys that are only incremented and read: the results are the order. Both need O(n log n) steps,
find every fault, and return a text, or "" if there is none."""

from dataclasses import dataclass

UNKNOWN = float("inf")
BEFORE = float("-inf")


@dataclass
class Op:
    kind: str  # "write", "read", "increment"
    value: object  # what was written or read, what the increment replied; None: the key did not exist, or not known
    begin: float
    end: float

    def __str__(self):
        end = "unknown" if self.end == UNKNOWN else f"{self.end:.6f}"
        return f"{self.kind} {self.value} [{self.begin:.6f}, {end}]"


def register_fault(history):
    clusters = {None: [Op("write", None, BEFORE, BEFORE)]}  # the key does not exist at first
    for op in history:
        if op.kind == "write":
            if op.value in clusters:
                raise ValueError(f"{op.value} is written twice")
            clusters[op.value] = [op]
    for op in history:
        if op.kind == "read" and op.end != UNKNOWN:
            if op.value not in clusters:
                return f"nobody wrote what was read: {op}"
            write = clusters[op.value][0]
            if op.end < write.begin:
                return f"read before it was written: {op}, {write}"
            clusters[op.value].append(op)
    forward, backward = [], []
    for ops in clusters.values():
        if len(ops) == 1 and ops[0].end == UNKNOWN:
            continue  # never read: perhaps never done
        first_end = min(ops, key=lambda op: op.end)
        last_begin = max(ops, key=lambda op: op.begin)
        if first_end.end < last_begin.begin:
            forward.append((first_end.end, last_begin.begin, first_end, last_begin))
        else:
            backward.append((last_begin.begin, first_end.end, last_begin, first_end))
    forward.sort(key=lambda zone: zone[:2])
    for one, other in zip(forward, forward[1:]):
        if other[0] < one[1]:
            return f"two values at the same time: {one[2]}, {one[3]}; {other[2]}, {other[3]}"
    return within_fault(forward, backward)


def within_fault(forward, backward):
    """A value that can only have been there while another one was. The zones of `forward` do not overlap."""
    at = 0
    for begin, end, first, last in sorted(backward, key=lambda zone: zone[:2]):
        while at < len(forward) and forward[at][1] <= begin:
            at += 1
        if at < len(forward) and forward[at][0] < begin and end < forward[at][1]:
            return f"while another value was there: {first}, {last}; {forward[at][2]}, {forward[at][3]}"
    return ""


def counter_fault(history):
    values, unknown = {}, []
    for op in history:
        if op.kind == "increment" and op.end == UNKNOWN:
            unknown.append(op.begin)
            continue
        if op.end == UNKNOWN:
            continue
        value = int(op.value or 0)
        ops = values.setdefault(value, [])
        if op.kind == "increment":
            for other in ops:
                if other.kind == "increment":
                    return f"the same result twice: {other}, {op}"
        ops.append(op)
    return order_fault(values) or missing_fault(values, sorted(unknown))


def order_fault(values):
    """A value that was seen before its increment began, or before something with a lesser value did."""
    earliest = None  # end of an operation with this value or a greater one
    for value in sorted(values, reverse=True):
        ended = min(values[value], key=lambda op: op.end)
        least = earliest if earliest and earliest.end <= ended.end else ended
        for op in values[value]:
            bound = least if op.kind == "increment" else earliest
            if bound and bound.end < op.begin:
                return f"a lesser value later: {bound}; {op}"
        earliest = least
    return ""


def missing_fault(values, unknown):
    """A value is reached by increments; those without a known result must be requests without a known end, each of
    which began before anybody saw that value or a greater one."""
    if not values:
        return ""
    earliest, bounds = UNKNOWN, []
    for value in range(max(values), 0, -1):
        ops = values.get(value, [])
        earliest = min([earliest, *(op.end for op in ops)])
        if not any(op.kind == "increment" for op in ops):
            bounds.append((earliest, value))
    used = 0
    for bound, value in reversed(bounds):  # from the first one on, whose bound is the earliest
        if used == len(unknown) or unknown[used] > bound:
            return f"nobody can have incremented it to {value}"
        used += 1
    return ""

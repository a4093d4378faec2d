#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the worst request of each command (src/cmd/spec/README.md) with command-slice-us 0 and 1, and compares the replies
and the datasets after them. With 1 the commands whose spec says `slices` must have run as jobs, the others must not.

    worst_cases.py PORT|SOCKET [--protocol 2|3] [--only REGEX] [--elements N]

Prints the differences, and the number of commands; exit status 1 if there are any. Empties all databases, needs DEBUG."""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from worst_cases import Client, ReplyError, cases  # noqa: E402

# Their effects contain the time at which they run: the datasets are not compared.
TIMED = re.compile(r"EXPIRE$|SETEX$|^XREADGROUP|^XCLAIM|^XAUTOCLAIM|^XNACK")
# Their replies do, or what the server has done before.
CHANGING_REPLIES = {"XINFO STREAM", "LATENCY HISTOGRAM"}


def comparable(case, reply):
    """What must be the same in both replies: all, all but the order, or the size."""
    tips = case.command.tips
    if case.name in CHANGING_REPLIES:
        return type(reply)
    if "nondeterministic_output" in tips and not case.name.endswith("SCAN"):
        return len(reply) if isinstance(reply, list) else type(reply)
    if "nondeterministic_output" in tips or "nondeterministic_output_order" in tips:
        return sorted_reply(reply)
    return reply


def sorted_reply(reply):
    return sorted(map(sorted_reply, reply), key=repr) if isinstance(reply, list) else reply


def run(client, case, n, slice_us):
    """What the reply must agree on, the digest of the dataset, how many jobs have ended."""
    client.ask("FLUSHALL")
    client.ask("CONFIG", "SET", "command-slice-us", 0)
    case.prepare(client, n)
    words = case.request(client, n)
    client.ask("CONFIG", "SET", "command-slice-us", slice_us)
    before = client.info("jobs_done")
    try:
        reply = comparable(case, client.ask(*words))
    except ReplyError as error:
        raise SystemExit(f"{case.name}: its worst request is refused: {error}") from None
    jobs = client.info("jobs_done") - before
    client.ask("CONFIG", "SET", "command-slice-us", 0)
    client.ask("UNWATCH")
    keeps = "nondeterministic_output" in case.command.tips or TIMED.search(case.name)
    return reply, None if case.writes and keeps else client.ask("DEBUG", "DIGEST"), jobs


def short(value):
    text = repr(value)
    return text if len(text) < 200 else text[:200] + "..."


def faults_of(client, case, n):
    whole, sliced = (run(client, case, n, us) for us in (0, 1))
    if whole[0] != sliced[0]:
        yield f"{case.name}: replies differ:\n  in one piece {short(whole[0])}\n  in slices    {short(sliced[0])}"
    if whole[1] != sliced[1]:
        yield f"{case.name}: datasets differ: {whole[1]} in one piece, {sliced[1]} in slices"
    if whole[2]:
        yield f"{case.name}: ran as a job with command-slice-us 0"
    if sliced[2] != (case.what == "slices"):
        yield f"{case.name}: its spec says '{case.what}', and {sliced[2]} jobs have run"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", metavar="PORT|SOCKET")
    parser.add_argument("--protocol", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--elements", type=int, default=600)
    options = parser.parse_args()
    client = Client(options.server, options.protocol)
    count = bad = 0
    for case in cases():
        if not re.search(options.only, case.name):
            continue
        count += 1
        for fault in faults_of(client, case, options.elements):
            print(fault)
            bad += 1
    print(f"{count} commands, {bad} faults")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())

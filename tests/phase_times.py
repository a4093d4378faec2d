#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what the phases of the last run took into the table of tests/README.md, from build/phases/ended.

  phase_times.py [--print]     --print: the rows only, without a change of the page

Run it after `.ci/run` on a machine that has nothing else to do. A phase without a row in the table is printed: give it one."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "README.md")
ENDED = os.path.join(os.path.dirname(HERE), "build", "phases", "ended")


def read_times(text):
    """{phase: (seconds, seconds of CPU)}; of phases that ran more than once, the sums."""
    times = {}
    for line in text.splitlines():
        cells = line.split("|")
        before = times.get(cells[0], (0, 0))
        times[cells[0]] = (before[0] + int(cells[4]), before[1] + int(cells[7]))
    return times


def fill(page, times):
    """(the page with the times in the last two cells of each phase's row, the phases without a row)"""
    left = dict(times)
    lines = []
    for line in page.splitlines():
        cells = line.split("|")
        name = cells[1].strip() if len(cells) == 7 else None
        if name in times:
            left.pop(name, None)
            line = "|".join([*cells[:4], f" {times[name][0]} ", f" {times[name][1]} ", ""])
        lines.append(line)
    return "\n".join(lines) + "\n", sorted(left)


def main():
    with open(ENDED, encoding="utf-8") as file:
        times = read_times(file.read())
    if "--print" in sys.argv:
        for name, (seconds, cpu) in times.items():
            print(f"| {name} | {seconds} | {cpu} |")
        return
    with open(PAGE, encoding="utf-8") as file:
        page, without_row = fill(file.read(), times)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
    for name in without_row:
        print(f"no row in tests/README.md: {name}")


if __name__ == "__main__":
    main()

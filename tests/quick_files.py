#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the Tcl files that a change touches, one a line: support/quick_files.txt has the rows.

  quick_files.py CHANGED_FILE...     names in the tree, such as src/cmd/set.c

Without a changed file the files of the last row are printed, which are a part of each kind."""

import fnmatch
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = ("unit", "integration", "cluster", "sentinel")


def read_rows():
    """[(patterns of source files, patterns of Tcl files)]; the second is empty where the row has "-"."""
    rows = []
    with open(os.path.join(HERE, "support", "quick_files.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            sources, tests = line.split("|")
            rows.append((sources.split(), [] if tests.strip() == "-" else tests.split()))
    return rows


def tcl_files():
    found = []
    for group in GROUPS:
        for folder, _, names in os.walk(os.path.join(HERE, group)):
            found += [os.path.relpath(os.path.join(folder, name), HERE)[:-4] for name in names if name.endswith(".tcl")]
    return sorted(found)


def matching(names, patterns):
    return {name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}


def select(changed, rows, files):
    """The Tcl files for these changed files. A file that is neither source, test nor harness selects nothing."""
    smoke = matching(files, rows[-1][1])
    if not changed:
        return smoke
    chosen = set()
    for path in changed:
        folder, _, name = path.partition("/")
        if folder == "src":
            patterns = next(tests for sources, tests in rows if matching([name], sources))
            chosen |= matching(files, patterns)
        elif folder == "tests" and name.endswith(".tcl"):
            own = {name[:-4]} & set(files)
            chosen |= own or smoke  # a part of the harness, or a file that was removed
    return chosen


if __name__ == "__main__":
    for chosen_file in sorted(select(sys.argv[1:], read_rows(), tcl_files())):
        print(chosen_file)

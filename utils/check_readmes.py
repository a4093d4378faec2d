#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the README.md of each folder of src/ with the folder.

A folder with sources has a README.md with a section "Files". It names every .c file of the folder, and each file
that it names exists; names are in backticks. Lines have 100 columns at most, and src/README.md, the architecture, has
200 lines at most. Links to files lead somewhere. Folders of specs have none: cmd/spec/README.md describes all; nor has a
folder generated/, whose files its parent names.
"""
import os
import re
import sys

LINES_MAX, COLUMNS_MAX = 200, 100
NAME = re.compile(r"`((?:generated/)?[\w.]+\.[ch])`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def check_folder(folder, names, name):
    """Yields the faults of the README.md of one folder with the files `names`; `name` is how to print it."""
    sources = {n for n in names if n.endswith((".c", ".h"))}
    path = os.path.join(folder, "README.md")
    if "README.md" not in names:
        if sources:
            yield f"{name}: missing: what the folder is, its invariants, its files in reading order"
        return
    text = open(path).read()
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield f"{name}:{number}: {len(line)} columns, {COLUMNS_MAX} at most"
    for target in LINK.findall(text):
        if not os.path.exists(os.path.join(folder, target)):
            yield f"{name}: no such file: {target}"
    if not sources:
        return
    _, title, files = text.partition("\n## Files\n")
    if not title:
        yield f"{name}: no section \"Files\""
        return
    named = set(NAME.findall(files))
    for missing in sorted(n for n in sources - named if n.endswith(".c")):
        yield f"{name}: add {missing} to the section \"Files\""
    for extra in sorted(named - sources):
        yield f"{name}: no such file: {extra}"


def check_tree(src):
    """Yields the faults of all README.md files below the folder `src`."""
    for top, folders, names in os.walk(src):
        if "generated" in folders:
            folders.remove("generated")
            names = names + ["generated/" + name for name in os.listdir(os.path.join(top, "generated"))]
        folders.sort()
        path = os.path.normpath(os.path.join(os.path.basename(src), os.path.relpath(top, src), "README.md"))
        yield from check_folder(top, names, path)
        if top == src:
            lines = open(os.path.join(top, "README.md")).read().count("\n") if "README.md" in names else 0
            if not 0 < lines <= LINES_MAX:
                yield f"{path}: {lines} lines, 1 to {LINES_MAX} expected"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    faults = list(check_tree("src"))
    print("\n".join(faults) or "readmes: the folders agree")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

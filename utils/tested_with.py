#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/tested-with.md from docs/tested-with.json, which has the results of runs with programs of others.

    utils/tested_with.py            writes the page
    utils/tested_with.py --check    fails if the page is not that of the results
    utils/tested_with.py --add KIND NAME DATE RESULT REPEAT
                                    adds a result, or replaces that of the same kind and name, and writes the page"""

import argparse
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "docs", "tested-with.json")
PAGE = os.path.join(ROOT, "docs", "tested-with.md")
FIELDS = ("kind", "name", "date", "result", "repeat")
HEAD = """# Tested with

Programs of others that were run with this server, and what came of it. Written by `utils/tested_with.py` from
[tested-with.json](tested-with.json); `--add` adds a result. What has no row was not tried, or nobody wrote it down. A date
without a day means that only the month is known. How the project tests itself is in [how it is tested](how-tested.md), what runs
where in [platforms](platforms.md).
"""


def read_results(path=RESULTS):
    """The rows of the file; ValueError if one is incomplete."""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["results"]
    for row in rows:
        if tuple(row) != FIELDS or not all(row.values()):
            raise ValueError(f"a result needs {', '.join(FIELDS)}: {row}")
        if not re.fullmatch(r"\d{4}-\d\d(-\d\d)?", row["date"]):
            raise ValueError(f"no date: {row}")
        if any("|" in value or "\n" in value for value in row.values()):
            raise ValueError(f"no cell of a table: {row}")
    return rows


def page(rows):
    text = HEAD
    if os.path.exists(os.path.join(ROOT, "docs", "first-minutes.md")):
        text += "What a stranger types on bare systems, and what is shown, is in [the first minutes](first-minutes.md).\n"
    for kind in dict.fromkeys(row["kind"] for row in rows):
        text += f"\n## {kind.capitalize()}\n\n| what | date | result | how to repeat |\n|---|---|---|---|\n"
        for row in rows:
            if row["kind"] == kind:
                text += f"| {row['name']} | {row['date']} | {row['result']} | {row['repeat']} |\n"
    return text


def add(rows, values):
    """The rows with this one in the place of that of the same name, or at the end."""
    row = dict(zip(FIELDS, values))
    same = [(old["kind"], old["name"]) == (row["kind"], row["name"]) for old in rows]
    return [row if is_same else old for old, is_same in zip(rows, same)] + ([] if any(same) else [row])


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--add", nargs=len(FIELDS))
    arguments = parser.parse_args()
    rows = read_results()
    if arguments.check:
        with open(PAGE, encoding="utf-8") as file:
            if file.read() == page(rows):
                return 0
        print("docs/tested-with.md is not that of its results: run utils/tested_with.py")
        return 1
    if arguments.add:
        lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in add(rows, arguments.add))
        write(RESULTS, '{\n  "results": [\n' + lines + "\n  ]\n}\n")
        rows = read_results()
    write(PAGE, page(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

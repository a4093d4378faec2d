#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts what tests the tree has, and writes it between markers of README.md and docs/how-tested.md.

    utils/test_counts.py            writes the pages
    utils/test_counts.py --check    fails if a page claims more than there is, or less than nine tenths of it
    utils/test_counts.py --run [TREE]    keeps the result of the last `make test` or `.ci/run` of this tree, or of the one in the
                                    folder TREE, in docs/test-run.json, and writes the pages. Refuses a run that failed, was not
                                    whole, or was of a tree with changes that no commit has

Counts are rounded down to two digits, so that a page need not be written for each new test."""

import argparse
import datetime
import glob
import importlib.util
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("README.md", "docs/how-tested.md")
PHASES, RUN = "build/phases", "docs/test-run.json"
# Phases that `make quick` and `make test-long` alone do not have together.
WHOLE = {"check", "suite release RESP3", "simulation", "durability"}
BEGIN, END = "<!-- test-counts: begin -->\n", "<!-- test-counts: end -->"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def occurrences(pattern, *paths):
    """How often the pattern is in the files, all of which are searched line by line."""
    files = [path for part in paths for path in glob.glob(part, root_dir=ROOT, recursive=True)]
    return sum(len(re.findall(pattern, read(path), flags=re.M)) for path in files)


def files(*paths):
    return sum(len(glob.glob(part, root_dir=ROOT)) for part in paths)


def simulated_faults():
    """The faults of tests/sim/faults.py; entries with one name in one scenario are one fault."""
    spec = importlib.util.spec_from_file_location("sim_faults", os.path.join(ROOT, "tests", "sim", "faults.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return len(module.NUMBERS)


def simulated_seeds():
    """Runs of the simulation in `make test`: the seeds of the phases of tests/parts.sh."""
    body = re.search(r"^sims\(\) .*?^}", read("tests/parts.sh"), flags=re.M | re.S)[0]
    return sum(int(number) for number in re.findall(r"sim [a-z]+ (\d+)", body))


def read_run(ended):
    """The result of a run from the lines of its phases: name|passed|failed|flaky|seconds|log|exit code|seconds of CPU."""
    rows = [line.split("|") for line in ended.splitlines()]
    failed = [row[0] for row in rows if int(row[2]) or int(row[6])]
    if failed:
        raise ValueError("failed: " + ", ".join(failed))
    missing = WHOLE - {row[0] for row in rows}
    if missing:
        raise ValueError("not a whole run, without: " + ", ".join(sorted(missing)))
    return {"phases": len(rows), "passed": sum(int(row[1]) for row in rows), "flaky": sum(int(row[3]) for row in rows),
            "cpu_seconds": sum(int(row[7]) for row in rows)}


def read_commit(text):
    """The commit that was tested, from what tests/phases.sh wrote when the run began."""
    words = text.split()
    if len(words) != 1:
        raise ValueError("the tree that was tested had changes without a commit" if words else "the commit that was tested is not known")
    return words[0]


def keep_run(tree):
    folder = os.path.join(tree, PHASES)
    run = read_run(read(f"{folder}/ended"))
    run["date"] = f"{datetime.datetime.fromtimestamp(os.path.getmtime(f'{folder}/ended'), datetime.timezone.utc):%Y-%m-%d}"
    run["commit"] = read_commit(read(f"{folder}/commit"))
    with open(os.path.join(ROOT, RUN), "w", encoding="utf-8") as file:
        json.dump(run, file, indent=1)
        file.write("\n")


def run_row():
    """The row of the run that was kept; none if there is no such run."""
    if not os.path.exists(os.path.join(ROOT, RUN)):
        return []
    run = json.loads(read(RUN))
    return [(f"checks that passed in the run of {run['date']} (commit {run['commit']}), in {run['phases']} phases, none failed",
             run["passed"])]


def counts():
    """(what, number) in the order of the table."""
    return run_row() + [
        ("tests against running servers, each in RESP2 and RESP3",
         occurrences(r"^ *test \{", *(f"tests/{part}/**/*.tcl" for part in ("unit", "integration", "cluster", "sentinel")))),
        ("C tests of parts", occurrences(r"cmocka_unit_test", "tests/c/**/*.c")),
        ("cases of write commands whose effects were recorded from a released server",
         occurrences(r"^[A-Z]", "tests/assets/write_matrix/*.txt")),
        ("simulated histories of servers in each `make test`", simulated_seeds()),
        ("faults built into the protocols, all of which the simulation has to find", simulated_faults()),
        ("fuzzed parsers", files("tests/fuzz/fuzz_*.c")),
        ("proofs with killed servers, failing system calls and lost writes", files("tests/durability/*.py") - 3),
        ("kinds of requests and keys with a limit of instructions or bytes", occurrences(r"^[^#\s]", "tests/bench/budgets.txt")),
    ]


def rounded(number):
    """Down to two digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return number // step * step


def table():
    rows = [f"| {what} | {rounded(number):,} |" for what, number in counts()]
    return "\n".join(["| tests | at least |", "|---|---|", *rows]) + "\n"


def section(page):
    before, found, rest = page.partition(BEGIN)
    inside, ends, after = rest.partition(END)
    if not found or not ends:
        raise ValueError("no markers test-counts")
    return before, inside, after


def faults(path, page):
    """What the page claims wrongly."""
    claimed = {what: int(number.replace(",", ""))
               for what, number in re.findall(r"^\| (.+) \| ([\d,]+) \|$", section(page)[1], flags=re.M)}
    for what, number in counts():
        if what not in claimed:
            yield f"{path}: no count of '{what}'; run utils/test_counts.py"
        elif not number * 0.9 <= claimed[what] <= number:
            yield f"{path}: {claimed[what]:,} {what}; there are {number:,}; run utils/test_counts.py"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", metavar="TREE", nargs="?", const=ROOT)
    options = parser.parse_args()
    if options.run:
        try:
            keep_run(os.path.abspath(options.run))
        except (OSError, ValueError) as error:
            sys.exit(f"test_counts: {error}")
    if options.check:
        found = [fault for path in PAGES for fault in faults(path, read(path))]
        print("\n".join(found), end="\n" if found else "")
        return bool(found)
    for path in PAGES:
        before, _, after = section(read(path))
        with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
            file.write(before + BEGIN + table() + END + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())

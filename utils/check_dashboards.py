#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the dashboard and the alert rules in utils/grafana use only metrics that servers have.

    check_dashboards.py < METRICS    METRICS: the text of /metrics of one or more servers (a primary with a replica, a
                                     replica, a node of a cluster with TLS), one after the other; the test suite calls it
    check_dashboards.py --list       prints the names that are used
"""
import json, os, re, sys

FOLDER = os.path.join(os.path.dirname(__file__), "grafana")
NAME = re.compile(r"\bredis_[a-z0-9_]+")


def expressions_of(panels):
    for panel in panels:
        yield from (target["expr"] for target in panel.get("targets", []))
        yield from expressions_of(panel.get("panels", []))


def dashboard(path):
    with open(path, encoding="utf-8") as file:
        board = json.load(file)
    ids = [panel["id"] for panel in board["panels"]]
    if len(ids) != len(set(ids)):
        sys.exit(f"{path}: two panels have the same id")
    queries = [v["query"]["query"] for v in board["templating"]["list"] if isinstance(v["query"], dict)]
    return list(expressions_of(board["panels"])) + queries


def rules(path):
    """The expressions of the rules: a line, or the lines after `expr: >-`, which have a greater indent."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    names, found = [], []
    for i, line in enumerate(lines):
        if line.strip().startswith("- alert:"):
            names.append(line.split(":")[1].strip())
        if not line.strip().startswith("expr:"):
            continue
        text = line.split("expr:", 1)[1].strip()
        if text == ">-":
            indent = len(line) - len(line.lstrip())
            text = ""
            for more in lines[i + 1 :]:
                if len(more) - len(more.lstrip()) <= indent:
                    break
                text += " " + more.strip()
        found.append(text)
    if len(names) != len(set(names)) or len(names) != len(found):
        sys.exit(f"{path}: each alert needs a name of its own and one expression")
    return found


def main():
    used = {}
    for file, read in (("valkey-dashboard.json", dashboard), ("alerts.yml", rules)):
        for expression in read(os.path.join(FOLDER, file)):
            for name in NAME.findall(expression):
                used.setdefault(name, file)
            if expression.count("(") != expression.count(")") or expression.count("{") != expression.count("}"):
                sys.exit(f"{file}: unbalanced brackets: {expression}")
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(used)))
        return
    served = {m.group(0) for m in re.finditer(r"^redis_[a-z0-9_]+", sys.stdin.read(), flags=re.M)}
    missing = [f"{file}: no server has {name}" for name, file in sorted(used.items()) if name not in served]
    print("\n".join(missing) if missing else f"dashboards: {len(used)} metrics")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()

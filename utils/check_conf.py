#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares valkey.conf with the tables of directives (src/*/options*.c).

Every directive is there exactly once, with its default, and nothing else. The marks say who may set
it, older names and the words of enums are explained, and what has no effect is told, here and in docs/compatibility.md.
A server with all of it in force: tests/unit/config.tcl.
"""
import os, re, sys
from collections import defaultdict

from conf_file import PATH, ConfError, read_conf
from option_tables import TableError, memory_of, read_options

MARKS = {"immutable": "start", "protected": "protected", "hidden": "hidden", "sensitive": "secret"}
LINE_MAX = 110
COMPATIBILITY = os.path.join(os.path.dirname(PATH), "docs", "compatibility.md")
# Written in several lines, one for each class of clients.
CLASSES = {"normal": "normal", "replica": "slave", "pubsub": "pubsub"}


def unquoted(value):
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def output_limits(values):
    """The lines of client-output-buffer-limit as CONFIG GET shows them."""
    words = []
    for value in values:
        name, hard, soft, seconds = value.split()
        words += [CLASSES[name], str(memory_of(hard)), str(memory_of(soft)), seconds]
    return " ".join(words)


def shows_default(option, values):
    if option.kind == "file_only" or option.default is None or option.name == "replicaof":
        return True  # an example
    if option.name == "client-output-buffer-limit":
        return output_limits(values) == option.default
    value = unquoted(values[0])
    if option.is_memory():
        return memory_of(value) == int(option.default)
    return value == option.default


def check_block(block, options):
    prose = block.prose()
    for line, name, _ in block.entries:
        option = options.get(name)
        if not option or option.kind == "ignored":
            yield f"valkey.conf:{line}: {name}: no such directive"
            continue
        wanted = {mark for flag, mark in MARKS.items() if flag in option.flags}
        if wanted != block.marks:
            yield (f"valkey.conf:{block.line}: {name} is marked {sorted(block.marks)}, "
                   f"its row says {sorted(wanted)}")
        if option.no_effect and "no effect" not in prose.lower():
            yield f"valkey.conf:{block.line}: {name} has no effect, which is not told"
        if option.alias and option.alias not in prose:
            yield f"valkey.conf:{block.line}: the older name {option.alias} of {name} is not told"
        for word in option.words:
            if word in ("yes", "no") or word[-1].isdigit() or word in prose:
                continue
            yield f"valkey.conf:{block.line}: the value {word} of {name} is not explained"


def check(options, blocks):
    found = defaultdict(list)
    for block in blocks:
        yield from check_block(block, options)
        for line, name, value in block.entries:
            found[name].append((line, value))
    for option in options.values():
        if option.kind == "ignored":
            continue
        lines = found.get(option.name)
        if not lines:
            yield f"valkey.conf: {option.name} is missing"
            continue
        line, values = lines[0][0], [value for _, value in lines]
        if len(values) != (len(CLASSES) if option.name == "client-output-buffer-limit" else 1):
            yield f"valkey.conf:{line}: {option.name} occurs {len(values)} times"
        elif not shows_default(option, values):
            yield f"valkey.conf:{line}: {option.name} {values[0]}: its default is '{option.default}'"


def check_lines(path):
    for number, line in enumerate(open(path), 1):
        if len(line.rstrip("\n")) > LINE_MAX:
            yield f"valkey.conf:{number}: more than {LINE_MAX} columns"


def check_compatibility(options):
    """The table of directives without effect has those whose rows say so, once each."""
    with open(COMPATIBILITY, encoding="utf-8") as file:
        text = file.read()
    rows = re.search(r"\n## Directives without effect\n(.*?)(?=\n## |\Z)", text, flags=re.S)[1]
    named = [name for row in re.findall(r"^\|[^|]*\|(.*)\|$", rows, flags=re.M) for name in re.findall(r"`([a-z][a-z0-9_-]+)`", row)]
    wanted = {option.name for option in options.values() if option.no_effect or option.kind == "ignored"}
    for name in sorted(wanted ^ set(named)):
        yield f"docs/compatibility.md: {name} " + ("has no effect, and is missing" if name in wanted else "has an effect")
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"docs/compatibility.md: {name} is named twice"


def main():
    try:
        options = read_options()
        _, blocks = read_conf()
    except (TableError, ConfError) as problem:
        sys.exit(f"conf: {problem}")
    problems = [*check(options, blocks), *check_lines(PATH), *check_compatibility(options)]
    for problem in problems:
        print(problem)
    if problems:
        sys.exit("conf: valkey.conf and the tables of directives differ; then run utils/gen_docs.py")
    print(f"conf: {len(options)} directives agree")


if __name__ == "__main__":
    main()

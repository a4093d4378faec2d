#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Moves specs written before their commands into src/, and regenerates the command table.

  adopt_specs.py SETEX "CLIENT PAUSE" ...      blocks by command name
  adopt_specs.py --file cmd/hash.json ...      all blocks of files
  adopt_specs.py --to server/x.json SHUTDOWN   into another file of src/<folder>/spec than the one they wait in

utils/specs_ahead/<folder>/<family>.json holds the specs of commands that do not exist yet, in the format of
src/<folder>/spec/<family>.json (see src/cmd/spec/README.md): a spec enters the tree together with its function."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AHEAD = os.path.join(ROOT, "utils/specs_ahead")
SRC = os.path.join(ROOT, "src")
LINE = 94
# The fields of a block, those of a row on one line where they fit.
ROWS = [["summary"], ["since", "complexity"], ["deprecated_since", "replaced_by"], ["group"], ["syntax"],
        ["arg_summaries"], ["keys", "find_keys", "flags", "acl"], ["tips"], ["history"], ["arity", "reply", "proc"]]


def quote(value):
    return json.dumps(value, ensure_ascii=False)


def may_break(before, word):
    """True if a line of syntax may be broken between these two words: a token is not separated from its value."""
    if word == "|":
        return True
    if before == "|" or before.endswith(":"):
        return False
    return not (re.fullmatch(r"[\[(]*[A-Z][A-Z0-9_-]*", before) and (word[0] == "(" or word[0].islower()))


def syntax_lines(syntax):
    if len(syntax) <= LINE - 10:
        return quote(syntax)
    lines, line = [], []
    for word in syntax.split(" "):
        line.append(word)
        if len(" ".join(line)) <= LINE - 10:
            continue
        cut = len(line) - 1
        while cut > 1 and not may_break(line[cut - 1], line[cut]):
            cut -= 1
        lines.append(" ".join(line[:cut]))
        line = line[cut:]
    lines.append(" ".join(line))
    return "[\n" + ",\n".join("      " + quote(part) for part in lines) + "]"


def field(name, value):
    if name == "syntax":
        return '"syntax": ' + syntax_lines(value if isinstance(value, str) else " ".join(value))
    if isinstance(value, list):
        return quote(name) + ": [\n" + ",\n".join("      " + quote(item) for item in value) + "]"
    return quote(name) + ": " + quote(value)


def block_text(block):
    lines = []
    for row in ROWS:
        line = ""
        for name in row:
            if name not in block:
                continue
            text = field(name, block[name])
            if line and (len(line) + 2 + len(text) > LINE or "\n" in line):
                lines.append(line)
                line = text
            else:
                line = line + ", " + text if line else text
        if line:
            lines.append(line)
    return "{\n" + ",\n".join("    " + line for line in lines) + "\n  }"


def load(path):
    if not os.path.exists(path):
        return None, {}
    with open(path, encoding="utf-8") as f:
        blocks = json.load(f)
    return blocks.pop("group", None), blocks


def save(path, group, blocks):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write('{\n  "group": ' + quote(group))
        for name in sorted(blocks):
            f.write(",\n\n  " + quote(name) + ": " + block_text(blocks[name]))
        f.write("\n}\n")


def adopt(path, names, target):
    """Moves the blocks of these names (None: all) out of their file in utils/specs_ahead."""
    group, waiting = load(path)
    into = target or os.path.relpath(path, AHEAD)
    folder, name = os.path.split(into)
    into = os.path.join(SRC, folder, "spec", name)
    into_group, there = load(into)
    for command in sorted(waiting) if names is None else names:
        block = waiting.pop(command)
        if into_group and into_group != group:
            block.setdefault("group", group)
        there[command] = block
        print(command, "->", os.path.relpath(into, ROOT))
    save(into, into_group or group, there)
    if waiting:
        save(path, group, waiting)
    else:
        os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="store_true", help="the words are files below utils/specs_ahead")
    parser.add_argument("--to", metavar="FOLDER/FILE", help="where the blocks go instead")
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    for word in options.words:
        if options.file:
            adopt(os.path.join(AHEAD, word), None, options.to)
            continue
        for path in sorted(glob.glob(os.path.join(AHEAD, "*/*.json"))):
            if word.upper() in load(path)[1]:
                adopt(path, [word.upper()], options.to)
                break
        else:
            sys.exit("no spec of %s in utils/specs_ahead" % word.upper())
    sys.exit(subprocess.run([sys.executable, os.path.join(ROOT, "utils/gen_commands.py")], check=False).returncode)


main()

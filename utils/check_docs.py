#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the pages for users: README.md, docs/ and the other *.md files of the tree.

Links lead to files and headings that exist, or have a complete https address; every page of docs/ can be reached from
README.md, which has 150 lines at most. Code blocks are closed; those marked `sh` are shell, call programs, scripts and
targets of make that exist, and give servers options that exist; those marked `conf` have directives that exist. A line of
text has 200 columns at most: rows of tables and code are exempt.
"""
import os
import re
import subprocess
import sys

from option_tables import read_options

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
README_LINES_MAX = 150
COLUMNS_MAX = 200
LANGUAGES = ("", "text", "sh", "c", "conf", "tcl", "json", "python")
LINK = re.compile(r"(?<!\\)\]\(([^()\s]+)\)")
WEB = re.compile(r"https://([a-z0-9-]+\.)+[a-z]{2,}(/[\w.~%/+=&?:@-]*(#[\w.-]+)?)?|mailto:[\w.+-]+@[\w.-]+\.[a-z]+")
PROGRAMS = ("valkey-server", "valkey-sentinel", "valkey-cli", "valkey-benchmark", "valkey-check-rdb", "valkey-check-aof")
SWITCHES = {"check-config", "print-config", "migrate-config", "check-system", "test-memory", "sentinel", "version", "help", "strict"}
FILE_WORDS = {"include", "loadmodule", "user", "role", "sentinel", "rename-command"}


def pages():
    """Paths of all pages, relative to the root."""
    found = []
    for top, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", "tmp", "nodes") and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(top, name), ROOT) for name in names if name.endswith(".md")]
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def without_code(text):
    """The text without fenced blocks and code spans, lines kept."""
    text = re.sub(r"^ *```.*?^ *```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchor(heading):
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return words.strip().replace(" ", "-")


def anchors(text):
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S), flags=re.M)
    return {anchor(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)) for heading in headings}


def link_faults(path, text, reached):
    """Faults of the links of a page; adds the pages that they lead to."""
    for number, line in enumerate(without_code(text).split("\n"), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                if not WEB.fullmatch(target):
                    yield f"{path}:{number}: not a complete https address: {target}"
                continue
            name, _, heading = target.partition("#")
            where = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(os.path.join(ROOT, where)):
                yield f"{path}:{number}: no such file: {target}"
                continue
            reached.add(where)
            if heading and where.endswith(".md") and heading not in anchors(read(where)):
                yield f"{path}:{number}: no such heading: {target}"


def width_faults(path, text):
    """Faults of lines of text that are too wide; rows of tables and code are exempt."""
    for number, line in enumerate(without_code(text).split("\n"), 1):
        if len(line) > COLUMNS_MAX and not line.startswith("|"):
            yield f"{path}:{number}: {len(line)} columns, {COLUMNS_MAX} at most"


def blocks(text):
    """Yields (line, language, content) of fenced blocks; content None: not closed."""
    start, language, content = 0, "", []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("```"):
            content.append(line)
        elif start:
            yield start, language, "\n".join(content) + "\n"
            start = 0
        else:
            start, language, content = number, line.strip()[3:].strip(), []
    if start:
        yield start, language, None


def make_targets():
    return set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), flags=re.M))


def command_faults(line, options, targets):
    """Faults of one line of shell."""
    line = re.sub(r"(^|\s)#.*", "", line)
    for script in re.findall(r"(?<![\w./-])((?:src|utils|tests)/[\w./-]+)", line):
        if os.path.basename(script) not in PROGRAMS and not os.path.exists(os.path.join(ROOT, script)):
            yield f"no such file: {script}"
    made = re.match(r"\s*make((?: [^#;&|]*)?)$", line)
    for word in made[1].split() if made else ():
        if re.fullmatch(r"[a-z][a-z-]*", word) and word not in targets:
            yield f"make has no target {word}"
    for arguments in re.findall(r"(?:^|[\s/])valkey-server((?: [^|;&]*)?)", line):
        for name in re.findall(r"(?<=\s)--([a-z][a-z-]+)", arguments):
            if name not in options and name not in SWITCHES and name not in FILE_WORDS:
                yield f"valkey-server has no option --{name}"


def block_faults(language, content, options, targets):
    if language not in LANGUAGES:
        yield f"the language {language} is none of {' '.join(word for word in LANGUAGES if word)}"
    if language == "sh":
        shell = subprocess.run(["bash", "-n"], input=content, stderr=subprocess.PIPE, text=True, check=False)
        if shell.returncode:
            yield f"not shell: {shell.stderr.strip().splitlines()[0]}"
        for line in content.split("\n"):
            yield from command_faults(line, options, targets)
    if language == "conf":
        for line in content.split("\n"):
            word = line.split()[0] if line.split() else "#"
            if not word.startswith("#") and word not in options and word not in FILE_WORDS:
                yield f"no such directive: {word}"


def check():
    options, targets = read_options(), make_targets()
    options = set(options) | {option.alias for option in options.values() if option.alias}
    reached = set()
    for path in pages():
        text = read(path)
        yield from link_faults(path, text, reached)
        yield from width_faults(path, text)
        for number, language, content in blocks(text):
            if content is None:
                yield f"{path}:{number}: the block is not closed"
                continue
            for fault in block_faults(language, content, options, targets):
                yield f"{path}:{number}: {fault}"
    for path in pages():
        if path.startswith("docs/") and path not in reached:
            yield f"{path}: no page has a link to it"
    lines = read("README.md").count("\n")
    if lines > README_LINES_MAX:
        yield f"README.md: {lines} lines, {README_LINES_MAX} at most"


def main():
    faults = list(check())
    print("\n".join(faults) or f"pages: links and code blocks of {len(pages())} pages are valid")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Parses valkey.conf: sections, and in each the blocks that explain directives.

    ################# Section
    <empty line>
    # [mark] Prose, in one paragraph or several.
    #
    # name value          a directive with its default, commented out or not
    # name value          ... further directives explained by the text
    <empty line>

The text before the first section is the introduction.
"""
import os, re

PATH = os.path.join(os.path.dirname(__file__), "..", "valkey.conf")


class Block:
    def __init__(self, section, line):
        self.section, self.line = section, line
        self.marks, self.paragraphs = set(), []
        self.entries = []  # (line number, name, value)

    def prose(self):
        return " ".join(self.paragraphs)


class ConfError(Exception):
    pass


def stripped(line):
    """A comment line without its '#'; other lines unchanged."""
    return re.sub(r"^# ?", "", line)


def read_block(section, first, lines):
    block = Block(section, first)
    texts = [stripped(line) for line in lines]
    split = len(texts)
    while split and re.match(r"[a-z][a-z0-9_-]+( |$)", texts[split - 1]) and texts[split - 1]:
        split -= 1
    if split == 0 or texts[split - 1] != "" or split == len(texts):
        raise ConfError(f"valkey.conf:{first}: a block is prose, a line with '#' alone, and directives")
    block.entries = [(first + split + i, *(text.split(" ", 1) + [""])[:2])
                     for i, text in enumerate(texts[split:])]
    prose = "\n".join(texts[: split - 1])
    while found := re.match(r"\[([a-z]+)\] ", prose):
        block.marks.add(found[1])
        prose = prose[found.end():]
    block.paragraphs = [" ".join(p.split()) for p in prose.split("\n\n")]
    return block


def read_conf(path=PATH):
    """The lines of the introduction, and the blocks."""
    intro, blocks, section, pending = [], [], None, []
    lines = open(path).read().split("\n")
    for number, line in enumerate(lines + [""], 1):
        heading = re.match(r"#{10,} (.+)$", line)
        if line and not heading:
            pending.append(line)
            continue
        if pending and section is None:
            intro += [stripped(p) for p in pending] + [""]
        elif pending:
            blocks.append(read_block(section, number - len(pending), pending))
        pending = []
        if heading:
            section = heading[1]
    return intro, blocks

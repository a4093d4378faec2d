# SPDX-License-Identifier: BSD-3-Clause
"""Command specs (src/*/spec/*.json) are read, checked and completed: properties a block omits are derived
out here (arity, implied flags and ACL categories, key specifications, the old view of key positions).
The fields are documented in src/cmd/spec/README.md."""

import json
import os
import re

from command_syntax import SyntaxLineError, parse_syntax

# In the order in which COMMAND INFO prints them; engine/command.h has the same names (CMD_...).
PRINTED_FLAGS = (
    "write readonly denyoom admin pubsub noscript blocking loading stale skip_monitor skip_commandlog "
    "asking fast no_auth no_mandatory_keys no_async_loading no_multi movablekeys allow_busy").split()
OUR_FLAGS = "may_replicate sentinel only_sentinel protected internal at_once runs_queue stops_batch quick item last_item extended tells_nothing only_frees other_db".split()
DERIVED_FLAGS = ["movablekeys"]
CATEGORIES = (
    "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin fast "
    "slow blocking dangerous connection transaction scripting pathhash").split()
KEY_FLAGS = ("RO RW OW RM access update insert delete not_key incomplete variable_flags").split()
REPLIES = "any status integer bulk array map set double".split()
GROUPS = ("string hash list set sorted-set stream generic bitmap hyperloglog geo pubsub transactions "
          "scripting connection server cluster sentinel pathhash").split()

FIELDS = ("summary since complexity syntax arg_summaries keys find_keys flags acl tips history arity reply "
          "proc deprecated_since replaced_by group worst_case").split()
TEXT_FIELDS = [field for field in FIELDS
               if field not in ("syntax", "arg_summaries", "keys", "history", "arity")]
# What a command does that takes long, in the order of docs/long-commands.md.
WORST_CASES = "slices paced one_piece arguments quick".split()

_WORST_CASE = re.compile(r"(?P<what>[a-z_]+)(?: (?P<request>.+?))?(?:: (?P<why>.+))?")
_KEYS = re.compile(
    r"(?:(?P<unknown>\?)|(?:(?P<keyword>[A-Z]+)@)?(?P<begin>-?\d+)"
    r"(?:(?P<keynum>#)|\.\.(?P<last>-?\d+))?(?:/(?P<step>\d+))?(?:%(?P<limit>\d+))?)"
    r" (?P<flags>[A-Za-z_ ]+?)(?:: (?P<notes>.+))?")


class SpecError(Exception):
    """An invalid spec; the text gives file, command and error."""


class Command:
    """One command or subcommand, complete. `subs` are Commands, sorted by name."""

    def __init__(self, title, block, path, group):
        self.title, self.block, self.path = title, block, path
        self.folder = os.path.abspath(path).split(os.sep)[-3]
        self.name = title.lower().replace(" ", "|")
        self.parent = self.name.split("|")[0] if "|" in self.name else None
        self.word = self.name.split("|")[-1]
        self.subs = []
        if not re.fullmatch(r"[A-Z][A-Z0-9._-]*(?: [A-Z][A-Z0-9_-]*)?", title):
            self.fail("a name is 'COMMAND' or 'CONTAINER SUBCOMMAND', in capitals")
        self._check_fields(group)
        self.args = self._read_syntax()
        self._read_words()
        self.worst_case = self._read_worst_case()
        self.key_specs = self._read_keys()
        self._number_keys(self.args, [0])
        self._check_key_places()
        self._check_numbers()
        self._derive_old_view()

    def fail(self, what):
        raise SpecError(f"{self.path}: {self.title}: {what}")

    # ---- reading a block

    def _check_fields(self, group):
        for field, value in self.block.items():
            if field not in FIELDS:
                self.fail(f"unknown field '{field}'; known are {' '.join(FIELDS)}")
            if field in TEXT_FIELDS and not (isinstance(value, str) and value):
                self.fail(f"'{field}' is a text that says something")
        for field in ("summary", "since"):
            if field not in self.block:
                self.fail(f"'{field}' is missing")
        self.group = self.block.get("group", group)
        if self.group not in GROUPS:
            self.fail(f"no such group '{self.group}'; known are {' '.join(GROUPS)}")
        self.reply = self.block.get("reply", "any")
        if self.reply not in REPLIES:
            self.fail(f"no such reply '{self.reply}'; known are {' '.join(REPLIES)}")
        self.history = self.block.get("history", [])
        for entry in self.history:
            if not (isinstance(entry, list) and len(entry) == 2):
                self.fail("'history' is a list of [version, text]")
        if ("replaced_by" in self.block) and "deprecated_since" not in self.block:
            self.fail("'replaced_by' without 'deprecated_since'")
        self.proc = self.block.get("proc")
        for field in ("proc", "find_keys"):
            if not re.fullmatch(r"[a-z][A-Za-z0-9]*", self.block.get(field, "x")):
                self.fail(f"'{field}' is the name of a C function")

    def _read_syntax(self):
        lines = self.block.get("syntax", [])
        try:
            tree = parse_syntax(lines if isinstance(lines, str) else " ".join(lines))
        except SyntaxLineError as error:
            self.fail(f"syntax: {error}")
        for name, text in self.block.get("arg_summaries", {}).items():
            named = [node for node in _walk(tree) if node["name"] == name]
            if len(named) != 1:
                self.fail(f"arg_summaries: {len(named)} arguments are called '{name}'")
            named[0]["summary"] = text
        return tree

    def _words(self, field, known):
        words = self.block.get(field, "").split()
        for word in words:
            if known is not None and word not in known:
                self.fail(f"{field}: unknown word '{word}'; known are {' '.join(known)}")
            if words.count(word) > 1:
                self.fail(f"{field}: '{word}' twice")
        return words

    def _read_words(self):
        self.flags = self._words("flags", [f for f in PRINTED_FLAGS if f not in DERIVED_FLAGS] + OUR_FLAGS)
        self.tips = self._words("tips", None)
        if "sentinel" in self.flags and "only_sentinel" in self.flags:
            self.fail("flags: 'sentinel' and 'only_sentinel'")
        explicit = self._words("acl", CATEGORIES)
        implied = self._implied_categories(explicit)
        for word in explicit:
            if word in implied:
                self.fail(f"acl: '{word}' is implied by the flags")
        self.categories = [word for word in CATEGORIES if word in explicit or word in implied]
        # Fast commands do work in proportion to their request, except those that block or notify others.
        if "fast" in self.flags and not {"blocking", "pubsub"} & set(self.flags):
            if "quick" in self.flags:
                self.fail("flags: 'quick' follows from 'fast'")
            self.flags.append("quick")

    def _implied_categories(self, explicit):
        implied = {"fast" if "fast" in self.flags else "slow"}
        for flag in ("write", "pubsub", "blocking"):
            if flag in self.flags:
                implied.add(flag)
        # The reads of a script are not known, so EVAL_RO does not imply "read".
        if "readonly" in self.flags and "scripting" not in explicit:
            implied.add("read")
        if "admin" in self.flags:
            implied |= {"admin", "dangerous"}
        return implied

    def _read_worst_case(self):
        """{"what": a word, "request": the words of the longest request or None, "why": a text or None}; None: not given."""
        if "worst_case" not in self.block:
            return None
        match = _WORST_CASE.fullmatch(self.block["worst_case"])
        if not match or match["what"] not in WORST_CASES:
            self.fail(f"'worst_case' is 'WHAT [REQUEST][: WHY]', and WHAT one of {' '.join(WORST_CASES)}")
        case = match.groupdict()
        if case["what"] == "quick" and (case["request"] or case["why"]):
            self.fail("worst_case: 'quick' is the whole text")
        if case["what"] == "slices" and not case["request"]:
            self.fail("worst_case: 'slices' needs a request, which a test runs")
        if case["what"] in ("paced", "one_piece") and not case["why"]:
            self.fail(f"worst_case: '{case['what']}' needs ': ' and why")
        if case["request"]:
            case["request"] = [] if case["request"] == "-" else case["request"].split(" ")
        return case

    # ---- keys

    def _read_keys(self):
        lines = self.block.get("keys", [])
        lines = [lines] if isinstance(lines, str) else lines
        return [self._read_key_line(line) for line in lines]

    def _read_key_line(self, line):
        match = _KEYS.fullmatch(line)
        if not match:
            self.fail(f"keys: '{line}' does not read as 'PLACE FLAGS' or 'PLACE FLAGS: notes'")
        part = match.groupdict()
        flags = part["flags"].split()
        for flag in flags:
            if flag not in KEY_FLAGS:
                self.fail(f"keys: unknown word '{flag}'; known are {' '.join(KEY_FLAGS)}")
        spec = {"flags": [flag for flag in KEY_FLAGS if flag in flags], "notes": part["notes"]}
        if part["unknown"]:
            return {**spec, "begin": {"type": "unknown"}, "find": {"type": "unknown"}}
        begin, step = int(part["begin"]), int(part["step"] or 1)
        if part["keyword"]:
            spec["begin"] = {"type": "keyword", "keyword": part["keyword"], "startfrom": begin}
        else:
            spec["begin"] = {"type": "index", "index": begin}
        if part["keynum"]:
            spec["find"] = {"type": "keynum", "keynumidx": 0, "firstkey": 1, "keystep": step}
            return spec
        last = int(part["last"] or 0)
        if last > 0:
            if part["keyword"] or last <= begin:
                self.fail(f"keys: '{line}': the last key is not after the first")
            last -= begin
        spec["find"] = {"type": "range", "lastkey": last, "keystep": step, "limit": int(part["limit"] or 0)}
        return spec

    def _number_keys(self, nodes, following):
        """Gives each key argument the number of its key specification: the next one, unless given."""
        for node in nodes:
            if node["type"] == "key" and "key_spec_index" not in node:
                node["key_spec_index"] = following[0]
            if "key_spec_index" in node:
                following[0] = max(following[0], node["key_spec_index"] + 1)
                if node["key_spec_index"] >= len(self.key_specs):
                    self.fail(f"syntax: '{node['name']}' needs a key specification more than 'keys' has")
            self._number_keys(node.get("arguments", []), following)

    def _check_key_places(self):
        """Compares the key positions in the syntax, as far as it defines them, with `keys`."""
        place, known = self.first_argument(), True
        for i, node in enumerate(self.args):
            if known:
                self._check_key_place(node, place, self.args[i + 1:], self.args[:i])
            count, fixed = _width(node)
            place, known = place + count, known and fixed

    def _check_key_place(self, node, place, behind, before):
        inner, step = node, 1
        if node["type"] == "block" and "token" not in node and "multiple" in node.get("flags", []):
            inner, step = node["arguments"][0], _block_width(node)
        if inner["type"] != "key" or "token" in inner or "optional" in node.get("flags", []):
            return
        begin, find = (self.key_specs[inner["key_spec_index"]][part] for part in ("begin", "find"))
        expected = {"type": "range", "lastkey": 0, "keystep": step, "limit": 0}
        if "multiple" in node.get("flags", []):
            if before and before[-1]["name"] == "numkeys":
                expected = {"type": "keynum", "keynumidx": 0, "firstkey": 1, "keystep": step}
                place -= 1
            elif all(_width(other)[1] for other in behind):
                expected["lastkey"] = -1 - sum(_width(other)[0] for other in behind)
            else:
                return
        elif find["type"] == "range" and 0 < find["lastkey"] and "index" in begin:
            # Several single keys share a specification.
            if (place - begin["index"]) in range(0, find["lastkey"] + 1, find["keystep"]):
                return
        if begin != {"type": "index", "index": place} or find != expected:
            self.fail(f"keys: the syntax says {expected} from {place}, 'keys' says {find} from {begin}")

    def first_argument(self):
        return 2 if self.parent else 1

    # ---- what follows from the rest

    def _check_numbers(self):
        widths = [_width(node) for node in self.args]
        count = self.first_argument() + sum(width for width, _ in widths)
        self.syntax_arity = count if all(fixed for _, fixed in widths) else -count
        self.arity = self.block.get("arity", self.syntax_arity)
        if not isinstance(self.arity, int) or self.arity == 0:
            self.fail("'arity' is a number, negative for 'at least'")
        for node in self.args:
            if node.get("extended") and "optional" not in node.get("flags", []):
                self.fail(f"syntax: '{node['name']}' is an extension, and so optional")

    def _derive_old_view(self):
        """First key, last key, step: all the ranges together as long as they touch."""
        first = last = step = 0
        movable = False
        for spec in self.key_specs:
            begin, find = spec["begin"], spec["find"]
            if "incomplete" in spec["flags"] or begin["type"] != "index" or find["type"] != "range":
                movable = True
                continue
            ends = find["lastkey"] + (begin["index"] if find["lastkey"] >= 0 else 0)
            if first == 0:
                first, last, step = begin["index"], ends, find["keystep"]
            elif last == begin["index"] - 1 and step == find["keystep"] == 1:
                last = ends
            else:
                movable = True
        self.old_view = (first, last, step)
        if movable:
            self.flags.append("movablekeys")

    def close(self):
        """Called when the subcommands are known."""
        if self.subs and "arity" not in self.block:
            self.arity = -2
        elif "arity" in self.block and self.arity == (-2 if self.subs else self.syntax_arity):
            self.fail("'arity' says what follows anyway")
        if self.proc is None and not self.subs:
            self.fail("'proc' is missing, and it has no subcommands")
        if self.proc is not None and "reply" not in self.block:
            self.fail("'reply' is missing")
        for sub in self.subs:
            if "extended" in self.flags and "extended" not in sub.flags:
                sub.flags.append("extended")
        # The server drops the last ones if it hides extensions.
        self.subs.sort(key=lambda sub: ("extended" in sub.flags, sub.name))


def _walk(nodes):
    for node in nodes:
        yield node
        yield from _walk(node.get("arguments", []))


def _block_width(node):
    return sum(_width(child)[0] for child in node["arguments"])


def _width(node):
    """Minimal number of words of an argument, and whether that is also the maximum."""
    count, fixed = 1 if "token" in node else 0, True
    if node["type"] == "oneof":
        widths = [_width(child) for child in node["arguments"]]
        least = min(width for width, _ in widths)
        count += least
        fixed = all(width == (least, True) for width in widths)
    elif node["type"] == "block":
        widths = [_width(child) for child in node["arguments"]]
        count += _block_width(node)
        fixed = all(width[1] for width in widths)
    elif node["type"] != "pure-token" or "token" not in node:
        count += 1
    flags = node.get("flags", [])
    if "optional" in flags:
        return 0, False
    return count, fixed and "multiple" not in flags


def _refuse_duplicates(pairs):
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"'{name}' twice")
    return dict(pairs)


def _load_file(path):
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file, object_pairs_hook=_refuse_duplicates)
        except (json.JSONDecodeError, SpecError) as error:
            raise SpecError(f"{path}: {error}") from None
    group = content.pop("group", None)
    names = list(content)
    for before, after in zip(names, names[1:]):
        if before > after:
            raise SpecError(f"{path}: {after}: is after {before}; commands must be sorted by name")
    return [Command(title, block, path, group) for title, block in content.items()]


def load_specs(paths):
    """All commands of the spec files, top level only, sorted, subcommands in their containers."""
    everything = {}
    for path in paths:
        for command in _load_file(os.path.relpath(path)):
            if command.name in everything:
                command.fail(f"is in {everything[command.name].path} too")
            everything[command.name] = command
    for command in everything.values():
        if command.parent:
            if command.parent not in everything:
                command.fail(f"its container {command.parent.upper()} has no spec")
            everything[command.parent].subs.append(command)
    for command in everything.values():
        command.close()
    return [everything[name] for name in sorted(everything) if "|" not in name]

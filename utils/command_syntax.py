# SPDX-License-Identifier: BSD-3-Clause
"""The syntax line of a command spec, read into an argument tree.

The grammar is documented in src/cmd/spec/README.md. A node of the tree is a dict with the words COMMAND DOCS
uses: name, type, and where they apply token, display_text, since, deprecated_since, key_spec_index,
flags (a list out of optional, multiple, multiple_token) and arguments (oneof and block); extended, for an
argument that Valkey does not have."""

import re

VALUE_TYPES = ("string", "integer", "double", "key", "pattern", "unix-time", "pure-token")
DEFAULT_TYPES = {"key": "key", "pattern": "pattern"}

_VERSION = r"\d+(?:\.\d+)*"
_SINCE = rf"(?:@(?P<since>{_VERSION})?(?:\.\.(?P<until>{_VERSION}))?)?"
_EXTENDED = r"(?P<extended>!)?"
_TOKEN = r"[A-Z][A-Z0-9_-]*|'[^']*'"
_NAME = r"[a-z0-9][a-z0-9_-]*"
_LEXEMES = [
    ("ellipsis", re.compile(r"\.\.\.")),
    ("mark", re.compile(r"[\[\]()|]")),
    ("label", re.compile(rf"(?P<name>{_NAME}){_SINCE}{_EXTENDED}:(?=\s)")),
    ("named_token", re.compile(rf"(?P<name>{_NAME})=(?P<token>{_TOKEN}){_SINCE}{_EXTENDED}")),
    ("token", re.compile(rf"(?P<token>{_TOKEN}){_SINCE}{_EXTENDED}")),
    ("word", re.compile(rf"(?P<name>{_NAME})(?:'(?P<display>[^']+)')?(?::(?P<type>[a-z-]+))?"
                        rf"{_SINCE}(?:#(?P<key_spec>\d+))?{_EXTENDED}")),
]


class SyntaxLineError(Exception):
    """An invalid syntax line; the text gives the position."""


class _Lexeme:
    def __init__(self, kind, match):
        self.kind = kind
        self.text = match.group(0)
        self.at = match.start()
        self.parts = match.groupdict()


def _lex(line):
    lexemes, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        for kind, pattern in _LEXEMES:
            match = pattern.match(line, at)
            if match:
                break
        else:
            raise SyntaxLineError(f"column {at + 1}: nothing known begins with '{line[at:at + 12]}'")
        lexemes.append(_Lexeme(kind, match))
        at = match.end()
    return lexemes


class _Reader:
    """Recursive descent; one method per rule of the grammar."""

    def __init__(self, line):
        self.lexemes = _lex(line)
        self.at = 0

    def peek(self):
        return self.lexemes[self.at] if self.at < len(self.lexemes) else None

    def next_is(self, *texts):
        lexeme = self.peek()
        return lexeme is not None and lexeme.kind in ("mark", "ellipsis") and lexeme.text in texts

    def take(self, text):
        if not self.next_is(text):
            self.fail(f"expected '{text}'")
        self.at += 1

    def fail(self, what):
        lexeme = self.peek()
        where = f"column {lexeme.at + 1}, before '{lexeme.text}'" if lexeme else "at the end"
        raise SyntaxLineError(f"{where}: {what}")

    def sequence(self):
        items = []
        while self.peek() is not None and not self.next_is("|", ")", "]"):
            items.append(self.item())
        return items

    def item(self):
        if not self.next_is("["):
            return self.repeated(self.argument())
        self.at += 1
        if self.peek() is not None and self.peek().kind == "label":
            node = self.group()
        else:
            node = self.repeated(self.argument())
        self.take("]")
        flags = ["optional"] + node.pop("flags", [])
        if self.next_is("..."):
            if "multiple" in flags:
                self.fail("repeated twice")
            self.at += 1
            flags.append("multiple")
            if "token" in node:
                flags.append("multiple_token")
            elif "arguments" not in node:
                raise SyntaxLineError(f"write [{node['name']}...], not [{node['name']}]...")
        node["flags"] = flags
        return node

    def repeated(self, node):
        if self.next_is("..."):
            self.at += 1
            node["flags"] = ["multiple"]
        return node

    def argument(self):
        lexeme = self.peek()
        if lexeme is None:
            self.fail("an argument is missing")
        if lexeme.kind == "named_token":
            self.at += 1
            return _token_node(lexeme, lexeme.parts["name"])
        if lexeme.kind != "token":
            return self.value()
        self.at += 1
        follower = self.peek()
        if follower is None or not (follower.kind == "word" or self.next_is("(")):
            return _token_node(lexeme, None)
        if lexeme.parts["since"] or lexeme.parts["until"] or lexeme.parts["extended"]:
            self.fail(f"the version of {lexeme.parts['token']} belongs behind its value")
        node = self.value()
        node["token"] = lexeme.parts["token"].strip("'")
        return node

    def value(self):
        lexeme = self.peek()
        if lexeme is not None and lexeme.kind == "word":
            self.at += 1
            return _word_node(lexeme)
        self.take("(")
        node = self.group()
        self.take(")")
        return node

    def group(self):
        label = self.peek()
        if label is None or label.kind != "label":
            self.fail("a group begins with its name: (name: ...)")
        self.at += 1
        alternatives = [self.sequence()]
        while self.next_is("|"):
            self.at += 1
            alternatives.append(self.sequence())
        if len(alternatives) > 1 and any(len(items) != 1 for items in alternatives):
            self.fail("an alternative is one argument; make a (name: ...) of several")
        members = [item for items in alternatives for item in items]
        if len(members) < 2:
            self.fail(f"group '{label.parts['name']}' needs two members or more")
        node = {"name": label.parts["name"], "type": "oneof" if len(alternatives) > 1 else "block"}
        _add_versions(node, label)
        node["arguments"] = members
        return node


def _add_versions(node, lexeme):
    if lexeme.parts["extended"]:
        node["extended"] = True
    if lexeme.parts["since"]:
        node["since"] = lexeme.parts["since"]
    if lexeme.parts["until"]:
        node["deprecated_since"] = lexeme.parts["until"]


def _token_node(lexeme, name):
    token = lexeme.parts["token"].strip("'")
    if name is None and not re.fullmatch(_NAME, token.lower()):
        raise SyntaxLineError(f"the token '{token}' needs a name: name='{token}'")
    node = {"name": name or token.lower(), "type": "pure-token", "token": token}
    _add_versions(node, lexeme)
    return node


def _word_node(lexeme):
    name = lexeme.parts["name"]
    kind = lexeme.parts["type"] or DEFAULT_TYPES.get(name, "string")
    if kind not in VALUE_TYPES:
        raise SyntaxLineError(f"'{lexeme.text}': no such type; known are {' '.join(VALUE_TYPES)}")
    node = {"name": name, "type": kind}
    if lexeme.parts["display"]:
        node["display_text"] = lexeme.parts["display"]
    _add_versions(node, lexeme)
    if lexeme.parts["key_spec"]:
        node["key_spec_index"] = int(lexeme.parts["key_spec"])
    return node


def parse_syntax(line):
    """The argument tree of a syntax line, a list of nodes; raises SyntaxLineError."""
    reader = _Reader(line)
    tree = reader.sequence()
    if reader.peek() is not None:
        reader.fail("nothing was opened here")
    return tree

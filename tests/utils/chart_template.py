# SPDX-License-Identifier: BSD-3-Clause
"""Renders the templates of a Helm chart where there is no helm: the part of Go's text/template, and of the functions that Helm
adds, which utils/helm uses. A value or function that does not exist is an error (KeyError). Needs PyYAML."""

import hashlib
import os
import re

import yaml

ACTION = re.compile(r"({{-? ?.*?-?}})", flags=re.S)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\$?[A-Za-z_][\w.]*|\$?\.[\w.]*|\$|-?\d+|:=|[()|,]')


def to_text(value):
    return {True: "true", False: "false"}.get(value, "") if isinstance(value, bool) or value is None else str(value)


def indent(count, text):
    return "\n".join(" " * count + line for line in text.split("\n"))


FUNCTIONS = {
    "printf": lambda form, *args: re.sub("%d", "%s", form) % tuple(to_text(arg) for arg in args),
    "print": lambda *args: "".join(to_text(arg) for arg in args),
    "quote": lambda value: '"' + to_text(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "default": lambda other, value: value or other,
    "trunc": lambda count, text: text[:count],
    "trimSuffix": lambda end, text: text.removesuffix(end),
    "nindent": lambda count, text: "\n" + indent(count, text),
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False).removesuffix("\n").removesuffix("\n..."),
    "ternary": lambda yes, no, test: yes if test else no,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "list": lambda *args: list(args),
    "until": lambda count: list(range(count)),
    "int": lambda value: int(value or 0),
    "add1": lambda value: int(value) + 1,
    "div": lambda a, b: int(a) // int(b),
    "mul": lambda a, b: int(a) * int(b),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda value: not value,
}


def split(text):
    """Pieces of text and actions, without the blanks that the actions remove."""
    pieces = ACTION.split(text)
    for at in range(1, len(pieces), 2):
        if pieces[at].startswith("{{- "):
            pieces[at - 1] = pieces[at - 1].rstrip()
        if pieces[at].endswith(" -}}") or pieces[at].endswith("/ -}}"):
            pieces[at + 1] = pieces[at + 1].lstrip()
        pieces[at] = re.sub(r"^{{(- )?|( -)?}}$", "", pieces[at]).strip()
    return pieces


class Parser:
    """Makes a tree: lists of ("text", text), ("action", words), ("if", branches), ("with" or "range", words, body, otherwise)."""

    def __init__(self, text, defined):
        self.pieces, self.at, self.defined = split(text), 0, defined

    def body(self):
        """Up to the action that ends it, which is returned, too."""
        nodes = []
        while self.at < len(self.pieces):
            piece, is_action = self.pieces[self.at], self.at % 2 == 1
            self.at += 1
            if not is_action:
                nodes.append(("text", piece))
                continue
            word = piece.partition(" ")[0]
            if word in ("end", "else"):
                return nodes, piece
            if piece.startswith("/*"):
                continue
            if word == "define":
                self.defined[piece.split('"')[1]] = self.body()[0]
            elif word in ("if", "with", "range"):
                nodes.append(self.block(word, piece))
            else:
                nodes.append(("action", TOKEN.findall(piece)))
        return nodes, None

    def block(self, word, piece):
        branches, otherwise = [], []
        body, end = self.body()
        branches.append((TOKEN.findall(piece)[1:], body))
        while end != "end":
            if end == "else":
                otherwise, end = self.body()
            else:
                body, following = self.body()
                branches.append((TOKEN.findall(end)[2:], body))
                end = following
        return (word, branches, otherwise)


class Chart:
    def __init__(self, folder, values, release=("r", "ns")):
        self.folder, self.defined = folder, {}
        with open(f"{folder}/values.yaml", encoding="utf-8") as file:
            self.values = yaml.safe_load(file)
        with open(f"{folder}/Chart.yaml", encoding="utf-8") as file:
            chart = yaml.safe_load(file)
        for path, value in values.items():
            *parents, name = path.split(".")
            place = self.values
            for parent in parents:
                place = place[parent]
            place[name] = value
        self.root = {"Values": self.values, "Release": {"Name": release[0], "Namespace": release[1], "Service": "Helm"},
                     "Chart": {key[0].upper() + key[1:]: value for key, value in chart.items()}, "Template": {"BasePath": "templates"},
                     "Files": {"Get": self.file}}
        self.trees = {name: Parser(self.file(f"templates/{name}"), self.defined).body()[0]
                      for name in sorted(os.listdir(f"{folder}/templates"))}

    def file(self, name):
        with open(f"{self.folder}/{name}", encoding="utf-8") as file:
            return file.read()

    def render(self, name):
        """The text of a file of templates/."""
        return self.run(self.trees[name], self.root, {"$": self.root})

    def include(self, name, dot):
        path, _, file = name.rpartition("/")
        return self.run(self.trees[file] if path else self.defined[name], dot, {"$": dot})

    def run(self, nodes, dot, names):
        return "".join(self.node(node, dot, names) for node in nodes)

    def node(self, node, dot, names):
        kind, content, *rest = node
        if kind == "text":
            return content
        if kind == "action":
            if content[1:2] == [":="]:
                names[content[0]] = self.value(content[2:], dot, names)
                return ""
            return to_text(self.value(content, dot, names))
        if kind == "range":
            words, body = content[0]
            return "".join(self.run(body, item, names | {words[0]: item}) for item in self.value(words[2:], dot, names))
        for words, body in content:
            value = self.value(words, dot, names)
            if value:
                return self.run(body, value if kind == "with" else dot, dict(names))
        return self.run(rest[0], dot, dict(names))

    def value(self, words, dot, names):
        """The value of a pipeline."""
        words = list(words)
        result = self.command(words, dot, names, ())
        while words:
            assert words.pop(0) == "|", words
            result = self.command(words, dot, names, (result,))
        return result

    def command(self, words, dot, names, last):
        """Takes a function with its arguments, or one term, from the words. `last`: what the pipeline passes on."""
        is_call = words[0] in FUNCTIONS or words[0] == "include" or words[0].endswith(".Get")
        head, terms = words[0], []
        if is_call:
            words.pop(0)
        while words and words[0] not in ("|", ")"):
            terms.append(self.term(words, dot, names))
        terms += last
        if not is_call:
            assert len(terms) == 1, terms
            return terms[0]
        if head == "include":
            return self.include(*terms)
        return self.path(head, dot, names)(*terms) if head.endswith(".Get") else FUNCTIONS[head](*terms)

    def term(self, words, dot, names):
        word = words.pop(0)
        if word == "(":
            inner, depth = [], 1
            while depth:
                word = words.pop(0)
                depth += {"(": 1, ")": -1}.get(word, 0)
                inner.append(word)
            return self.value(inner[:-1], dot, names)
        if word.startswith('"'):
            return word[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        return int(word) if re.fullmatch(r"-?\d+", word) else self.path(word, dot, names)

    def path(self, word, dot, names):
        """.A.B from the dot, $.A from the root, $name."""
        head, *parts = word.split(".")
        value = names[head] if head else dot
        for part in filter(None, parts):
            value = value[part]
        return value

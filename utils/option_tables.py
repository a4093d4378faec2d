# SPDX-License-Identifier: BSD-3-Clause
"""Reads the tables of directives (src/*/options*.c), for checks and documentation.

The rows are macros with a fixed shape (src/config/config.h), so they are read as text: no build is needed.
"""
import glob, os, re

SRC = os.path.join(os.path.dirname(__file__), "..", "src")
CONSTANTS = {
    "CONFIG_KB": 1024, "CONFIG_MB": 1024**2, "CONFIG_GB": 1024**3, "CONFIG_PORT_MAX": 65535,
    "INT_MAX": 2**31 - 1, "INT_MIN": -(2**31), "UINT32_MAX": 2**32 - 1,
    "INT64_MAX": 2**63 - 1, "INT64_MIN": -(2**63), "UINT64_MAX": 2**64 - 1,
}
UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3}
# Directives handled by the file reader, which are in no table.
READER_WORDS = ("include",)


class Option:
    """One directive. `default` is as CONFIG GET shows it, None where it depends on the machine."""

    def __init__(self, name, kind, folder):
        self.name, self.kind, self.folder = name, kind, folder
        self.default, self.min, self.max = None, None, None
        self.words, self.flags, self.alias, self.no_effect = [], set(), None, None

    def is_memory(self):
        return self.kind.startswith("memory")


class TableError(Exception):
    pass


def split_arguments(text):
    """The parts of `text` between commas outside of brackets and strings, without outer blanks."""
    parts, depth, start, quoted, place = [], 0, 0, False, 0
    while place < len(text):
        char = text[place]
        if quoted:
            place += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        place += 1
    return parts + [text[start:].strip()]


def closing(text, place):
    """The position of the bracket that closes the one at `place`."""
    depth = 0
    for found in re.compile(r'"(?:\\.|[^"\\])*"|[(){}]').finditer(text, place):
        if found[0] in "({":
            depth += 1
        elif found[0] in ")}":
            depth -= 1
            if depth == 0:
                return found.start()
    raise TableError("a bracket is not closed")


def text_of(literal):
    """The value of a C expression of string literals; None for NULL."""
    if literal == "NULL":
        return None
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literal)).replace('\\"', '"')


def number_of(expression, octal=False):
    try:
        text = re.sub(r"[A-Z][A-Z0-9_]*", lambda m: str(CONSTANTS[m[0]]), expression)
        text = re.sub(r"\b0([0-7]+)\b", r"0o\1", text)
        if not re.fullmatch(r"[-+*() 0-9o]+", text):
            raise ValueError(text)
        return int(eval(text, {"__builtins__": {}}))
    except (KeyError, ValueError, SyntaxError) as problem:
        raise TableError(f"cannot tell the number of '{expression}'") from problem


def memory_of(text):
    """The bytes of a size such as "64mb"; None if it is not one."""
    found = re.fullmatch(r"(-?\d+)([a-z]*)", text.lower())
    return int(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else None


def word_lists(text):
    lists = {}
    for found in re.finditer(r"const configWord (\w+)\[\] = \{", text):
        body = text[found.end() : closing(text, found.end() - 1)]
        rows = [split_arguments(row[1:-1]) for row in split_arguments(body) if row]
        lists[found[1]] = [(text_of(name), value) for name, value in rows if name != "NULL"]
    return lists


def read_row(macro, arguments, folder, lists):
    kind = macro.lower()
    option = Option(text_of(arguments[0]), kind, folder)
    plain = [a for a in arguments[1:] if not a.startswith(".")]
    extra = dict(re.split(r"\s*=\s*", a[1:], maxsplit=1) for a in arguments[1:] if a.startswith("."))
    option.flags = {f.strip()[len("CONFIG_"):].lower() for f in extra.get("flags", "").split("|") if f.strip()}
    option.alias = text_of(extra["alias"]) if "alias" in extra else None
    option.no_effect = text_of(extra["no_effect"]) if "no_effect" in extra else None
    if kind == "bool":
        option.default = {"true": "yes", "false": "no"}[plain[1]]
    elif kind in ("int", "memory"):
        option.default = str(number_of(plain[1]))
        option.min, option.max = number_of(plain[2]), number_of(plain[3])
    elif kind == "octal":
        option.default = f"{number_of(plain[1]):o}"
        option.min, option.max = number_of(plain[2]), number_of(plain[3])
    elif kind == "memory_unsigned":
        option.default, option.min, option.max = str(number_of(plain[1])), 0, CONSTANTS["UINT64_MAX"]
    elif kind == "memory_or_percent":
        option.default, option.min, option.max = str(number_of(plain[1])), 0, CONSTANTS["INT64_MAX"]
    elif kind == "enum":
        option.words = [word for word, _ in lists[plain[1]]]
        option.default = next((word for word, value in lists[plain[1]] if value == plain[2]), None)
        if option.default is None:
            raise TableError(f"{option.name}: no word has the value {plain[2]}")
    elif kind == "string":
        option.default = text_of(plain[1])
    elif kind == "special":
        option.default = text_of(plain[1])
    return option


def read_file(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    lists = word_lists(text)
    folder = os.path.basename(os.path.dirname(path))
    for table in re.finditer(r"const configOption \w+\[\] = \{", text):
        body = text[table.end() : closing(text, table.end() - 1)]
        for row in split_arguments(body):
            found = re.match(r"CONFIG_([A-Z_]+)(?:\(|$)", row)
            if not found:
                if row:
                    raise TableError(f"{path}: no row that is known: {row[:60]}")
            elif found[1] not in ("END", "TABLE"):
                arguments = split_arguments(row[found.end() : closing(row, found.end() - 1)])
                yield read_row(found[1], arguments, folder, lists)


def read_options():
    """All options by name. Those of files only have the kind "file_only", old ones without effect "ignored"."""
    options = {}
    for path in sorted(glob.glob(os.path.join(SRC, "*", "options*.c"))):
        for option in read_file(path):
            options[option.name] = option
    for name in READER_WORDS:
        options[name] = Option(name, "file_only", "engine")
    if len(options) < 200:
        raise TableError(f"only {len(options)} directives found: has the shape of the tables changed?")
    return options


if __name__ == "__main__":
    for option in read_options().values():
        print(option.name, option.kind, repr(option.default), option.min, option.max, option.words,
              sorted(option.flags), option.alias, sep="\t")

# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of docs/limits.md are those of the source and of the tables of directives."""

import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "utils"))
from option_tables import CONSTANTS, read_options  # noqa: E402

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
NUMBERS = dict(CONSTANTS, INT32_MAX=2**31 - 1)
DIRECTIVE = re.compile(r"(?:(\d+) x )?(default|greatest) of `([a-z0-9-]+)`( - 1)?")
CONSTANT = re.compile(r"`(src/[a-z0-9_/.]+)` ([A-Z][A-Z0-9_]+)( - 1)?")


def rows():
    with open(os.path.join(ROOT, "docs", "limits.md"), encoding="utf-8") as file:
        lines = [line.strip().strip("|").split("|") for line in file if line.startswith("| ")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return [row for row in cells if row[0] != "limit" and not row[0].startswith("-")]


def written(text):
    """The number that the page shows, e.g. "64 KB", "2^31 - 1", "85.05112878"."""
    number, _, unit = text.partition(" ")
    if unit in UNITS:
        return int(number) * UNITS[unit]
    power = re.fullmatch(r"2\^(\d+)( - 1)?", text)
    if power:
        return 2 ** int(power[1]) - (1 if power[2] else 0)
    return float(text) if "." in text else int(text.replace(",", ""))


def evaluate(expression):
    """The value of a C expression of numbers, shifts and the limits of types."""
    text = re.sub(r"U?INT64_C\(([0-9]+)\)", r"\1", expression)
    text = re.sub(r"\((?:size_t|u?int\d+_t)\)", "", text)
    text = re.sub(r"[A-Z][A-Z0-9_]+", lambda found: str(NUMBERS[found[0]]), text)
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
    if not re.fullmatch(r"[-+*/()<> 0-9.]+", text):
        raise ValueError(f"not a number: {expression}")
    return eval(text, {"__builtins__": {}})


def constant(path, name):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    found = re.search(rf"#define {name} +(.+)|\b{name} = ([^,;}}]+)", text)
    if not found:
        raise ValueError(f"{path} does not define {name}")
    return evaluate((found[1] or found[2]).strip())


def in_source(where, options):
    """The number that the last column of a row leads to."""
    found = DIRECTIVE.fullmatch(where)
    if found:
        option = options[found[3]]
        value = int(option.default) if found[2] == "default" else option.max
        return value * int(found[1] or 1) - (1 if found[4] else 0)
    found = CONSTANT.fullmatch(where)
    if found:
        return constant(found[1], found[2]) - (1 if found[3] else 0)
    return NUMBERS[where.strip("`")]


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        read = read_options()
        cls.options = read if isinstance(read, dict) else {option.name: option for option in read}

    def test_each_number_is_that_of_the_source(self):
        self.assertGreater(len(rows()), 60)
        for row in rows():
            with self.subTest(limit=row[0]):
                self.assertEqual(5, len(row))
                self.assertEqual(in_source(row[4], self.options), written(row[1]))

    def test_each_row_says_what_happens_and_why(self):
        for row in rows():
            with self.subTest(limit=row[0]):
                self.assertTrue(row[2])
                self.assertTrue(row[3])

    def test_no_limit_has_two_rows(self):
        names = [row[0] for row in rows()]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_a_wrong_number_is_noticed(self):
        self.assertNotEqual(in_source("`src/resp/limits.h` REQUEST_INLINE_MAX", self.options), written("65 KB"))
        self.assertEqual(2**31 - 1, written("2^31 - 1"))
        self.assertEqual(1 << 29, evaluate("(size_t)1 << 29"))
        with self.assertRaises(ValueError):
            constant("src/resp/limits.h", "NO_SUCH_LIMIT")


if __name__ == "__main__":
    unittest.main()

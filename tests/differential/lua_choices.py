# SPDX-License-Identifier: BSD-3-Clause
"""Random choices of one program, and the small pieces of Lua that all generators share: numbers, strings, tables."""

import random

NUMBERS = ("0 1 2 3 -1 -2 10 7 100 255 256 1000 65535 65536 2147483647 2147483648 -2147483648 -2147483649 4294967295 "
           "4294967296 9007199254740991 9007199254740992 9007199254740993 9223372036854775807 9223372036854775808 "
           "-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 1e15 1e16 1e17 1e100 "
           "1e308 1e309 -1e309 1e-308 5e-324 1e-320 0.1 0.5 -0.5 1.5 2.5 -1.5 3.14159265358979 1e14 123456789012345 "
           "1e-5 1e-4 0.0001 0.00001 0/0 1/0 -1/0 -0 0.1+0.2 1/3 2/3 100/3 0x10 0xff 0xFFFFFFFF 0x7fffffff .5 3. "
           "99999999999999 999999999999999 -99999999999999 1e13 9999999999999.5 0.30000000000000004 2^31 2^32 2^53 2^62 "
           "2^63 -2^63 2^64 127 128 -128 -129 32767 32768 -32768 31 32 33 63 64 4.9 -4.9").split()
SMALL = "0 1 2 3 4 5 6 7 8 -1 -2 -3 -4 10 1 2 3 1 2 3".split()
LETTERS = "abcdeABCXYZ0123456789"
# Pieces of string literals in double quotes.
PIECES = ("a b c ab xyz abc 1 12 0 -5 3.7 hello Hello WORLD \\n \\t \\r \\000 \\\\ \\\" \\255 \\128 \\195\\169 \\226\\130\\172 "
          "% %d %s ( ) [ ] { } . , ; : = / * + - ? ^ $ _ # @ ! & | ~ ' \\001 \\031 \\127 0x1F 1e5 nan inf true nil key=value "
          "foo\\000bar \\065 \\010 \\a \\b \\f \\v").split() + [" ", "  ", " x", "x "]


class Choices:
    """What one seed decides. Everything random of a program comes from here."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.names = 0

    def below(self, count):
        return int(self.random() * count)

    def between(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def chance(self, percent):
        return self.random() * 100 < percent

    def pick(self, choices):
        return choices[int(self.random() * len(choices))]

    def several(self, choices, low, high):
        return [self.pick(choices) for _ in range(self.between(low, high))]

    # ------------------------------------------------------------------ literals

    def number(self):
        if self.chance(40):
            return self.pick(SMALL)
        if self.chance(70):
            return self.pick(NUMBERS)
        kind = self.below(5)
        if kind == 0:
            return str(self.between(-1000000, 1000000))
        if kind == 1:
            return repr(self.random() * 10 ** self.between(-20, 20))
        if kind == 2:
            return repr(round(self.random() * 10 ** self.between(0, 14), self.between(0, 6)))
        if kind == 3:
            return str(self.between(-(1 << 64), 1 << 64))
        return "%d/%d" % (self.between(-100, 100), self.between(1, 64))

    def small(self):
        return self.pick(SMALL)

    def string(self, pieces=PIECES, low=0, high=4):
        """A literal in double quotes, at times in another form."""
        body = "".join(self.several(pieces, low, high))
        if "\\" not in body and '"' not in body and self.chance(10):
            if "]" not in body and "[" not in body:
                return self.pick(("[[%s]]", "[=[%s]=]", "[==[%s]==]")) % body
            if "'" not in body:
                return "'%s'" % body
        return '"%s"' % body

    def bytes(self, low=0, high=12):
        """A literal of random bytes."""
        values = [self.pick((0, 1, 127, 128, 255, 10, 13, 32, 65, self.below(256))) for _ in range(self.between(low, high))]
        return '"%s"' % "".join("\\%03d" % value for value in values)

    # ------------------------------------------------------------------ values

    def scalar(self):
        kind = self.below(10)
        if kind < 4:
            return self.number()
        if kind < 8:
            return self.string()
        return self.pick(("nil", "true", "false"))

    def table(self, depth=0):
        """A constructor. At most one key is a string: the order of tables with several depends on how strings are hashed."""
        kind = self.below(6)
        if kind == 0:
            return "{}"
        if kind == 1:
            return "{" + ",".join(self.small() for _ in range(self.between(1, 5))) + "}"
        fields, form = [], self.below(5)
        for i in range(self.between(1, 4)):
            value = self.value(depth + 1)
            if i or form < 2:
                fields.append(value)
            elif form == 2:
                fields.append("%s=%s" % (self.pick(("a", "b", "c", "n", "key")), value))
            elif form == 3:
                fields.append("[%s]=%s" % (self.pick(("10", "20", "-1", "1.5", "2^53", "0", "5", "true", "1e300")), value))
            else:
                fields.append("[ %s ]=%s" % (self.string(low=1), value))
        return "{" + self.pick((",", ";")).join(fields) + self.pick(("", "", ",")) + "}"

    def value(self, depth=0):
        if depth < 3 and self.chance(25):
            return self.table(depth)
        if self.chance(4):
            return self.pick(("function() end", "print_nothing", "cjson.null", "string.len", "coroutine.create(P)",
                              "(function(...) return ... end)"))
        return self.scalar()

    # ------------------------------------------------------------------ names

    def fresh(self, prefix="v"):
        self.names += 1
        return prefix + str(self.names)

# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the language itself: locals that shadow globals, closures, varargs, tail calls, loops, metatables,
coroutines, errors and their positions. A statement is on a line of its own, so that error positions are compared. Every loop
and function counts in G(), which bounds the program."""

import re

# Names of the environment that programs use for their own variables.
SHADOWED = ("error tostring tonumber redis cjson string select next pcall type table math unpack ipairs pairs server "
            "KEYS ARGV setmetatable getmetatable assert load loadstring bit rawget rawset xpcall coroutine").split()
BINARY = "+ - * / % ^ .. == ~= < > <= >= and or".split()
UNARY = ("- ", "not ", "#", "- - ", "- #", "not not ")
EVENTS = ("add sub mul div mod pow unm concat len eq lt le index newindex call tostring metatable mode gc").split()
GUARD = "G()"
GOOD_SOURCES = ("P,1", "('a1b2'):gmatch('%a')", "('k=v,x=y'):gmatch('(%w)=(%w)')", "function(s,i) if i<3 then return i+1,s end end,5,0",
                "function(s,i) if not i then return 1,2,3 end end")


class Core:
    """Generates the body of one program. `scope` holds the names that are visible."""

    def __init__(self, choices):
        self.c = choices
        self.scope = ["u1", "u2"]
        self.lines = []
        self.indent = 0
        self.varargs = True  # a chunk has them
        self.guarded = 0  # functions around the current statement: errors in them are mostly caught
        self.budget = choices.between(5, 22)

    def add(self, text):
        self.lines.append(" " * self.indent + text)

    def program(self):
        c = self.c
        self.add("local u1,u2=%s,%s" % (c.value(), c.value()))
        while self.budget > 0:
            self.statement(0)
        self.show()
        return self.lines

    # ------------------------------------------------------------------ expressions

    def name(self):
        c = self.c
        if c.chance(88) and self.scope:
            # Late names are likelier.
            i = max(c.below(len(self.scope)), c.below(len(self.scope)))
            return self.scope[i]
        return c.pick(SHADOWED)

    def new_name(self):
        return self.c.pick(SHADOWED) if self.c.chance(35) else self.c.fresh()

    def expressions(self, depth, low, high):
        return ",".join(self.expression(depth + 1) for _ in range(self.c.between(low, high)))

    def expression(self, depth=0):
        c = self.c
        if depth > 3:
            return self.name() if c.chance(60) else c.scalar()
        kind = c.below(24)
        if kind < 5:
            return self.name()
        if kind < 9:
            return c.scalar()
        if kind < 12:
            return "%s %s %s" % (self.expression(depth + 1), c.pick(BINARY), self.expression(depth + 1))
        if kind == 12:
            return "%s%s" % (c.pick(UNARY), self.expression(depth + 1))
        if kind == 13:
            return "(%s)" % self.expression(depth + 1)
        if kind < 17:
            return self.call(depth)
        if kind == 17:
            return "%s.%s" % (self.name(), c.pick(("a", "b", "n", "x", "len", "insert")))
        if kind == 18:
            return "%s[ %s ]" % (self.name(), self.expression(depth + 1))
        if kind == 19:
            return c.table(1)
        if kind == 20:
            return self.constructor(depth)
        if kind == 21 and self.varargs:
            return c.pick(("...", "(...)", "select('#',...)", "{...}", "#{...}", "select(2,...)", "select(-1,...)"))
        if kind == 22:
            return self.library(depth)
        return self.closure(depth)

    def constructor(self, depth):
        c = self.c
        last = self.call(depth) if c.chance(50) else "..." if self.varargs else "nil"
        return "{%s,%s}" % (self.expressions(depth + 1, 1, 2), last)

    def call(self, depth):
        c = self.c
        kind = c.below(8)
        args = self.expressions(depth + 1, 0, 3)
        if kind < 5:
            return "%s(%s)" % (self.name(), args)
        if kind == 5:
            return "(%s)(%s)" % (self.closure(depth + 1), args)
        if kind == 6:
            return "%s:%s(%s)" % (self.name(), c.pick(("upper", "len", "f", "reverse", "sub", "byte")), args)
        return "%s%s" % (self.name(), c.pick((c.string(), c.table(2))))

    def library(self, depth):
        """A call of a function of the environment by its name, which a local may have taken."""
        c = self.c
        one = self.expression(depth + 1)
        form = c.pick(("tostring(%s)", "tonumber(%s)", "type(%s)", "pcall(%s)", "pcall(error,%s)", "select('#',%s)",
                       "unpack(%s)", "next(%s)", "pcall(tostring,%s)", "rawget({1,2,a=3},%s)", "string.len(%s)",
                       "tostring(%s)..''", "assert(%s)", "getmetatable(%s)", "select(%s,1,2,3)", "math.floor(%s)",
                       "string.upper(%s)", "table.concat(%s)", "pcall(assert,%s,'m')", "rawequal(1,%s)",
                       "tonumber(%s,16)", "coroutine.status(%s)", "ipairs(%s)", "string.format('%%s',%s)",
                       "setmetatable({},%s)", "xpcall(function() return %s end,function(m) return m end)",
                       "loadstring(%s)", "error(%s)", "redis.sha1hex(%s)", "cjson.encode(%s)", "bit.tobit(%s)"))
        return form % one

    def closure(self, depth):
        """A function on one line."""
        c = self.c
        params = c.pick(("", "a", "a,b", "...", "a,..."))
        outer, had = len(self.scope), self.varargs
        self.varargs = "..." in params
        self.scope += [p for p in params.split(",") if p and p != "..."]
        body = self.expressions(depth + 1, 0, 2)
        del self.scope[outer:]
        self.varargs = had
        return "function(%s) %s return %s end" % (params, GUARD, body)

    # ------------------------------------------------------------------ statements

    def block(self, depth, low=1, high=3):
        outer = len(self.scope)
        self.indent += 1
        for _ in range(self.c.between(low, high)):
            self.statement(depth + 1)
        self.indent -= 1
        return outer

    def leave(self, outer):
        del self.scope[outer:]

    def statement(self, depth):
        c = self.c
        self.budget -= 1
        kind = c.below(30)
        if kind < 6 or depth > 4:
            self.show()
        elif kind < 10:
            self.local_statement()
        elif kind < 13:
            self.assignment()
        elif kind < 16:
            self.function(depth)
        elif kind == 16:
            self.conditional(depth)
        elif kind == 17:
            self.while_loop(depth)
        elif kind == 18:
            self.numeric_loop(depth)
        elif kind == 19:
            self.generic_loop(depth)
        elif kind == 20:
            self.repeat_loop(depth)
        elif kind == 21:
            self.add("do")
            self.leave(self.block(depth))
            self.add("end")
        elif kind < 25:
            self.protected(depth)
        elif kind == 25:
            self.coroutine(depth)
        elif kind == 26:
            self.metatable()
        elif kind == 27:
            self.throw()
        elif kind == 28:
            self.add("P(pcall(%s))" % ",".join([self.own_name()] + [self.safe() for _ in range(c.between(0, 2))]))
        else:
            self.add("P(pcall(function() %s end))" % self.plain(lambda: self.call(1)))

    def show(self):
        """Shows values; mostly so that an error in them ends the statement and not the program."""
        if self.c.chance(40 if self.guarded else 2):
            self.add("P(%s)" % self.expressions(0, 1, 3))
            return
        self.add("P(pcall(function() return %s end))" % self.plain(lambda: self.expressions(0, 1, 3)))

    def plain(self, make):
        """What make() returns, for a function without varargs."""
        had, self.varargs = self.varargs, False
        text = make()
        self.varargs = had
        return text

    def either(self):
        """An expression that can fail in guarded code, and seldom elsewhere."""
        return self.expression(1) if self.c.chance(30 if self.guarded else 2) else self.safe()

    def safe(self):
        """An expression that cannot fail."""
        c = self.c
        kind = c.below(12)
        if kind < 3:
            return self.own_name()
        if kind < 6:
            return c.scalar()
        if kind == 6:
            return c.table(1)
        if kind < 9:
            return self.closure(2)
        if kind == 9:
            return "%s %s %s" % (self.own_name(), c.pick(("and", "or", "==", "~=")), c.scalar())
        return c.pick(("select('#',...)", "(...)", "{...}")) if self.varargs else "{%s}" % self.own_name()

    def own_name(self):
        return self.scope[max(self.c.below(len(self.scope)), self.c.below(len(self.scope)))]

    def local_statement(self):
        c = self.c
        count = c.between(1, 3)
        values = ",".join(self.either() for _ in range(c.between(1, 3)))
        names = [self.new_name() for _ in range(count)]
        self.add("local %s=%s" % (",".join(names), values))
        self.scope += names

    def assignment(self):
        c = self.c
        targets = []
        for _ in range(c.between(1, 2)):
            kind = c.below(4)
            own = self.own_name()
            if kind < 3 or not self.guarded and c.chance(95):
                targets.append(own)
            elif c.chance(50):
                targets.append("%s.%s" % (own, c.pick(("a", "b", "n"))))
            else:
                targets.append("%s[ %s ]" % (own, self.expression(2)))
        self.add("%s=%s" % (",".join(targets), ",".join(self.either() for _ in range(c.between(1, 2)))))

    def function(self, depth):
        c = self.c
        name = self.new_name()
        params = [self.new_name() for _ in range(c.between(0, 3))]
        dots = c.chance(30)
        is_local = c.chance(85)
        if is_local:
            self.scope.append(name)
            self.add("local function %s(%s)" % (name, ",".join(params + (["..."] if dots else []))))
        else:
            name = c.fresh()
            self.scope.append(name)
            self.add("local %s=function(%s)" % (name, ",".join(params + (["..."] if dots else []))))
        had, outer = self.varargs, len(self.scope)
        self.scope += params
        self.varargs = dots
        self.guarded += 1
        self.indent += 1
        self.add(GUARD)
        for _ in range(c.between(0, 3)):
            self.statement(depth + 1)
        if c.chance(85):
            if c.chance(50):
                callee = name if c.chance(30) else self.name()
                self.add("return %s(%s)" % (callee, self.expressions(1, 0, 2)))
            else:
                self.add("return %s" % self.expressions(0, 0, 3))
        self.indent -= 1
        self.leave(outer)
        self.varargs = had
        self.guarded -= 1
        self.add("end")
        if c.chance(80):
            self.add("P(pcall(%s%s))" % (name, "".join("," + self.either() for _ in range(c.between(0, 3)))))

    def conditional(self, depth):
        c = self.c
        self.add("if %s then" % self.either())
        self.leave(self.block(depth, 1, 2))
        if c.chance(40):
            self.add("elseif %s then" % self.either())
            self.leave(self.block(depth, 1, 2))
        if c.chance(40):
            self.add("else")
            self.leave(self.block(depth, 1, 2))
        self.add("end")

    def loop_body(self, depth, names=()):
        outer = len(self.scope)
        self.scope += names
        self.add(" " + GUARD)
        self.block(depth, 1, 2)
        if self.c.chance(30):
            self.add(" if %s then break end" % self.either())
        return outer

    def while_loop(self, depth):
        counter = self.c.fresh("w")
        self.add("local %s=0" % counter)
        self.add("while %s<%d and %s do" % (counter, self.c.between(1, 4), self.safe()))
        self.add(" %s=%s+1" % (counter, counter))
        self.leave(self.loop_body(depth))
        self.add("end")

    def numeric_loop(self, depth):
        c = self.c
        name = self.new_name()
        step = "," + c.pick(("1", "-1", "0", "2", "-0.5", "0.5", "0/0", "1/0", "-1/0", "-0", "'2'", "0.1", "nil", "'x'"))
        bounds = c.pick(("1,3", "3,1", "1,1", "0.5,2", "'1','2'", "1,0", "10,1", "-2,2", "1,1/0", "-1/0,1", "0/0,1",
                         "1,0/0", "1,nil", "'a',2", "2^53,2^53+2", "1,%s" % self.expression(2)))
        if not self.guarded and re.search("nil|'[ax]'|[(=]|#", bounds + step):
            bounds, step = "1,3", ",1"
        counter = c.fresh("w")
        self.add("local %s=0" % counter)
        self.add("for %s=%s%s do" % (name, bounds, step if c.chance(60) else ""))
        self.add(" %s=%s+1 if %s>4 then break end" % (counter, counter, counter))
        self.leave(self.loop_body(depth, [name]))
        self.add("end")
        self.add("P(%s)" % counter)

    def generic_loop(self, depth):
        c = self.c
        names = [self.new_name() for _ in range(c.between(1, 2))]
        source = c.pick(("pairs({%s})" % self.expression(2), "ipairs({%s})" % self.expressions(2, 1, 3),
                         "next,{a=1}", "ipairs(%s)" % self.name(), "pairs(%s)" % self.name(),
                         "('a1b2'):gmatch('%a')", "('k=v,x=y'):gmatch('(%w)=(%w)')", self.expression(1),
                         "function(s,i) if i<3 then return i+1,s end end,%s,0" % self.expression(2),
                         "coroutine.wrap(function() for i=1,3 do coroutine.yield(i,i*i) end end)"))
        if not self.guarded and c.chance(97):
            source = c.pick(GOOD_SOURCES)
        self.add("for %s in %s do" % (",".join(names), source))
        outer = self.loop_body(depth, names)
        self.add(" P(%s)" % ",".join(names))
        self.leave(outer)
        self.add("end")

    def repeat_loop(self, depth):
        counter = self.c.fresh("w")
        self.add("local %s=0" % counter)
        self.add("repeat")
        self.add(" %s=%s+1" % (counter, counter))
        outer = self.loop_body(depth)
        self.add("until %s>3 or %s" % (counter, self.safe()))
        self.leave(outer)

    def protected(self, depth):
        c = self.c
        handler = c.chance(25)
        outer_scope = len(self.scope)
        had, self.varargs = self.varargs, False
        self.guarded += 1
        self.add("P(%s(function()" % ("xpcall" if handler else "pcall"))
        self.indent += 1
        self.add(GUARD)
        self.indent -= 1
        self.block(depth, 1, 3)
        if c.chance(60):
            self.add(" return %s" % self.expressions(0, 0, 3))
        self.leave(outer_scope)
        self.varargs = had
        self.guarded -= 1
        tail = c.pick(("function(m) return m,1 end", "function(m) return tostring(m)..'!' end", "function(m) error(m) end",
                       "nil", "error", "function() end"))
        self.add("end%s))" % ("," + tail if handler else ""))

    def coroutine(self, depth):
        c = self.c
        name = self.new_name()
        outer_scope = len(self.scope)
        had, self.varargs = self.varargs, True
        self.guarded += 1
        wrapped = c.chance(60)
        self.add("local %s=coroutine.%s(function(...)" % (name, "wrap" if wrapped else "create"))
        self.indent += 1
        self.add(GUARD)
        for _ in range(c.between(1, 3)):
            if c.chance(60):
                self.add("P(coroutine.yield(%s))" % self.expressions(1, 0, 3))
            else:
                self.statement(depth + 1)
        if c.chance(60):
            self.add("return %s" % self.either())
        self.indent -= 1
        self.leave(outer_scope)
        self.varargs = had
        self.guarded -= 1
        self.add("end)")
        self.scope.append(name)
        for _ in range(c.between(1, 4)):
            args = "".join("," + self.either() for _ in range(c.between(0, 2)))
            if wrapped:
                self.add("P(pcall(%s%s))" % (name, args))
            else:
                self.add("P(coroutine.resume(%s%s),coroutine.status(%s))" % (name, args, name))
        if c.chance(30):
            self.add("P(pcall(coroutine.%s,%s))" % (c.pick(("status", "resume", "yield", "running", "create", "wrap")),
                                                    self.expression(2)))

    def metatable(self):
        c = self.c
        name = self.new_name()
        fields = []
        for event in set(c.several(EVENTS, 1, 4)):
            kind = c.below(8)
            if event == "mode":
                fields.append("__mode='k'")
            elif kind < 5 or event in ("gc",):
                fields.append("__%s=function(a,b,...) %s P('%s',type(a),type(b)) return %s end" % (
                    event, GUARD, event, c.pick(("a", "b", "1", "'r'", "nil", "true", "false", "b,a", "error(b)", "error('m')"))))
            else:
                fields.append("__%s=%s" % (event, self.either()))
        fields.sort()
        self.add("local %s=setmetatable(%s,{%s})" % (name, c.table(1), ",".join(fields)))
        self.scope.append(name)
        for _ in range(c.between(2, 5)):
            other, value = self.plain(lambda: self.expression(2)), self.plain(lambda: self.expression(2))
            left, right = (name, other) if c.chance(60) else (other, name)
            form = c.below(10)
            if form < 4:
                text = "return (%s) %s (%s)" % (left, c.pick(BINARY), right)
            elif form == 4:
                text = "return %s%s" % (c.pick(UNARY), name)
            elif form == 5:
                text = "return %s[ %s ]" % (name, other)
            elif form == 6:
                text = "%s[ %s ]=%s return rawget(%s,1)" % (name, other, value, name)
            elif form == 7:
                text = "return %s(%s)" % (name, other)
            elif form == 8:
                text = "return tostring(%s)" % name
            else:
                text = "return getmetatable(%s),setmetatable(%s,%s)" % (name, name, c.pick(("nil", "{}", "1")))
            self.add("P(pcall(function() %s end))" % text)

    def throw(self):
        c = self.c
        level = c.pick(("", ",0", ",1", ",2", ",3", ",-1", ",9", ",1.5", ",nil", ",'x'"))
        value = c.pick((c.string(), c.number(), "nil", "{err='E text'}", "{}", "true", self.name(), "{err=1}",
                        "setmetatable({},{__tostring=function() return 'shown' end})"))
        if not self.guarded or c.chance(60):
            self.add("P(pcall(function() error(%s%s) end))" % (value, level))
        else:
            self.add("if %s then error(%s%s) end" % (self.own_name(), value, level))

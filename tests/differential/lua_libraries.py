# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the libraries: string, table, math, bit, cjson, cmsgpack, struct, the base functions and the sandbox. Each
function of this module returns the lines of a program."""

import re

SUBJECTS = ("a b c abc aab XYZ 1 12 123 0 ( ) [ ] % - _ . , ; : = hello world key=val f(a(b)c)d \\0 \\255 \\n \\t "
            "\\\" ^ $ * + ?").split() + [" ", "  "]
ITEMS = ("a b . %a %d %s %w %l %u %p %c %x %z %A %D %S %W %Z [abc] [a-c] [^a] [^%s] [%w_] []] [^]] [%]] [a-] [-a] [%a-z] "
         "[0-9a-f] [a%-z] [^%d.] [%z] [.] %% %. %( %) %[ %] \\0 \\255 [\\0] [a-\\255] [\\128-\\255] x 1 ,").split() + [" "]
WHOLE = ("() ^ $ %b() %b[] %bxx %f[%a] %f[%W] %f[^%z] %1 %2 %9 %0 ( ) [ ] % %b %bx %f %f[ [a [% [^ (( )) (a) (.-) (%a+) "
         "(%d*) (()) ([^=]*)=(.*) ^%s*(.-)%s*$ [a-%%] ^^ $$ a$b %g %n **").split()
SUFFIX = ("", "", "", "", "*", "+", "-", "?")
FLAGS = ("", "", "", "-", "+", " ", "#", "0", "-0", "+ #", "-+ #0", "00000", "000000", "##")
WIDTHS = ("", "", "", "1", "5", "10", "20", "99", "100", "*")
PRECISIONS = ("", "", "", ".", ".0", ".1", ".3", ".10", ".14", ".17", ".20", ".99", ".100", ".-1", ".*")
CONVERSIONS = "ddiuoxXcceEfgGqqsss" + "aAnplhLz%y\\0"
# Functions that count up to an argument, for minutes if it is a large number; numbers are kept short.
COUNTING = ("string.rep", "table.insert", "table.remove", "table.concat", "unpack")
SHORT = re.compile(r"[^0-9]*[0-9]{0,3}[^0-9^eE/]*$")


def pattern(c):
    text = "^" if c.chance(12) else ""
    for _ in range(c.between(1, 4)):
        if c.chance(70):
            item = c.pick(ITEMS) + c.pick(SUFFIX)
            text += "(%s)" % item if c.chance(18) else item
        else:
            text += c.pick(WHOLE)
    return '"%s"' % (text + ("$" if c.chance(10) else ""))


def subject(c):
    return c.string(SUBJECTS, 0, 7)


def odd(c, usual, percent=7):
    """Mostly the usual argument, at times any value."""
    return c.value(1) if c.chance(percent) else usual


def arguments(c, usual):
    """The list of arguments, at times with one too few or too many."""
    args = [odd(c, one) for one in usual]
    if c.chance(6) and args:
        args.pop()
    if c.chance(4):
        args.append(c.value(1))
    return args


def invoke(c, name, args):
    """A call in one of the ways in which it can be written; its position and name are in the error texts."""
    if name in COUNTING:
        args = [args[0] if args else "nil"] + [arg if SHORT.match(arg) else "3" for arg in args[1:]]
    joined = ",".join(args)
    form = c.below(4)
    if form < 2:
        return "P(pcall(%s%s%s))" % (name, "," if args else "", joined)
    if form == 2:
        return "P(pcall(function() return %s(%s) end))" % (name, joined)
    return "P(pcall(function() local x,y,z=%s(%s) return x,y,z end))" % (name, joined)


# ------------------------------------------------------------------ string

def patterns(c):
    lines = []
    for _ in range(c.between(2, 6)):
        text, pat = subject(c), pattern(c)
        kind = c.below(10)
        if kind < 3:
            args = [text, pat] + ([c.small()] if c.chance(30) else []) + ([c.pick(("true", "false"))] if c.chance(10) else [])
            lines.append(invoke(c, "string.find", arguments(c, args)))
        elif kind < 5:
            args = [text, pat] + ([c.small()] if c.chance(30) else [])
            lines.append(invoke(c, "string.match", arguments(c, args)))
        elif kind < 8:
            lines.append(invoke(c, "string.gsub", arguments(c, [text, pat, replacement(c)] + (
                [c.number()] if c.chance(25) else []))))
        elif kind == 8:
            lines.append("P(pcall(function() local o={} for a,b,x in string.%s(%s,%s) do o[#o+1]={a,b,x} "
                         "if #o>9 then break end end return o end))" % (c.pick(("gmatch", "gmatch", "gfind")), text, pat))
        else:
            lines.append("P(pcall(function() return (%s):%s(%s%s) end))" % (
                text, c.pick(("find", "match", "gsub", "gmatch", "upper", "byte", "sub", "len", "format", "nothing")), pat,
                c.pick(("", ",1", ",'%0%0'", ",2,true"))))
    return lines


def replacement(c):
    kind = c.below(10)
    if kind < 4:
        return c.string(("%0", "%1", "%2", "%%", "<", ">", "x", "%", "%a", "\\0", "%9", "-", ""), 0, 3)
    if kind < 6:
        return "{a='A',b=1,abc=false,['1']=true,[1]=2,hello='%%1',[' ']='_'}"
    if kind == 6:
        return "setmetatable({},{__index=function(t,k) return %s end})" % c.pick(("k..k", "#k", "nil", "{}", "error(k)"))
    if kind == 7:
        return c.number()
    return "function(...) return %s end" % c.pick(("...", "nil", "false", "true", "{}", "select('#',...)", "(...)..'!'",
                                                   "error('in gsub')", "1.5", "''", "error({})"))


def formats(c):
    lines = []
    for _ in range(c.between(2, 6)):
        text, args = "", []
        for _ in range(c.between(1, 3)):
            conversion = c.pick(CONVERSIONS) if c.chance(30) else c.pick("dixXcefgGqsss")
            flags, width, precision = c.pick(FLAGS), c.pick(WIDTHS), c.pick(PRECISIONS)
            if c.chance(40):
                flags = width = precision = ""
            text += c.pick(("", "", "<", " ", "%%", "x", "\\0", "\\n")) + "%" + flags + width + precision + conversion
            if conversion in "qs":
                args.append(c.string() if c.chance(60) else c.bytes() if c.chance(50) else c.scalar())
            elif c.chance(93):
                args.append(c.number())
            else:
                args.append(c.pick(("'12'", "'0x10'", "' 5 '", "'x'", "nil", "{}", "true")))
        if c.chance(6):
            text += "%"
        lines.append(invoke(c, "string.format", ['"%s"' % text] + arguments(c, args)))
    return lines


def strings(c):
    table = (("string.byte", lambda: [subject(c)] + c.several((c.small(),), 0, 2)),
             ("string.sub", lambda: [subject(c), c.small()] + ([c.small()] if c.chance(60) else [])),
             ("string.sub", lambda: [subject(c), c.number(), c.number()]),
             ("string.rep", lambda: [subject(c), c.pick(("0", "1", "3", "-1", "10", "1.5", "'2'", "0/0", "-1e300"))]),
             ("string.char", lambda: [c.pick(("65", "0", "255", "256", "-1", "97.6", "'66'", "1e10", "0/0"))
                                      for _ in range(c.between(0, 4))]),
             ("string.upper", lambda: [c.bytes()]), ("string.lower", lambda: [c.string()]),
             ("string.reverse", lambda: [c.string()]), ("string.len", lambda: [c.string()]),
             ("tostring", lambda: [c.number()]), ("tonumber", lambda: [numeral(c)]),
             ("tonumber", lambda: [numeral(c), c.pick(("2", "8", "10", "16", "36", "37", "1", "0", "16.5", "'16'", "-2"))]),
             ("string.byte", lambda: [subject(c), c.number(), c.small()]),
             ("string.dump", lambda: [c.pick(("string.len", "P", "nil"))]))
    lines = []
    for _ in range(c.between(3, 7)):
        name, make = c.pick(table)
        if name == "string.dump":
            lines.append("P(pcall(function() return type(string.dump(%s)) end))" % make()[0])
        else:
            lines.append(invoke(c, name, arguments(c, make())))
    return lines


def numeral(c):
    return c.string(("1", "0", "12", "-", "+", ".", "e", "E5", "0x", "0X", "f", "ff", "inf", "nan", "INF", " ", "\\n",
                     "\\t", "_", "p3", "0x1p4", "1e308", "999999999999999999999", "\\0", "z", "07", "infinity"), 0, 4)


# ------------------------------------------------------------------ numbers

def numbers(c):
    lines = []
    for _ in range(c.between(2, 5)):
        kind = c.below(8)
        left, right = c.number(), c.number()
        if kind < 3:
            lines.append("local x,y=%s,%s P(x%sy,tostring(x%sy),x..'')" % ((left, right) + (c.pick("+-*/%^"),) * 2))
        elif kind == 3:
            lines.append("P(pcall(function() return %s %s %s end))" % (
                odd(c, left, 30), c.pick(("+", "-", "*", "/", "%", "^", "..", "<", "<=", "==", "~=", ">")), odd(c, right, 30)))
        elif kind == 4:
            lines.append("local t={} t[1]=%s t[%s]='k' t[%s]='l' P(t,t[%s],t[%s],#t)" % (
                c.small(), left.replace("0/0", "0/1"), right.replace("0/0", "0/1"), left, right))
        elif kind == 5:
            lines.append("P(-(%s),tostring(-(%s)),#tostring(%s),(%s)..(%s))" % (left, left, right, left, right))
        else:
            name = c.pick("abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min mod modf "
                          "pow rad sin sinh sqrt tan tanh".split())
            lines.append(invoke(c, "math." + name, arguments(c, [left, right] if c.chance(60) else [left])))
    if c.chance(25):
        lines.append("math.randomseed(%s) P(math.random(),math.random(10),math.random(-5,5))" % c.number())
        lines.append(invoke(c, "math.random", arguments(c, c.several(SMALL_RANGE, 0, 3))))
        lines.append(invoke(c, "math.randomseed", arguments(c, [c.number()])))
    return lines


SMALL_RANGE = ("0", "1", "5", "-3", "10", "2147483647", "-2147483648", "1.5", "'7'", "1e10", "4294967296")


def bits(c):
    lines = []
    for _ in range(c.between(3, 8)):
        name = c.pick("arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex".split())
        count = 1 if name in ("bnot", "bswap", "tobit") else c.between(1, 4) if name in ("band", "bor", "bxor") else 2
        args = [c.number() for _ in range(count)]
        if name == "tohex" and c.chance(40):
            args[1] = c.pick(("1", "-1", "8", "-8", "0", "9", "-9", "2^31", "-2^31", "4", "-4", "2.5", "2147483647"))
        lines.append(invoke(c, "bit." + name, arguments(c, args)))
    return lines


# ------------------------------------------------------------------ table and base

def tables(c):
    lines = ["local t=%s" % c.pick(("{1,2,3}", "{}", "{'a','b','c'}", "{5,3,8,1}", "{1,nil,3}", "{[-5]=5}",
                                    "{1,2,3,nil,5,nil}", "{[1]=1,[2]=2,[4]=4}", "setmetatable({1,2},{__index={3}})"))]
    order = ("function(a,b) return a<b end", "function(a,b) return a>b end", "function(a,b) return true end",
             "function(a,b) return tostring(a)<tostring(b) end", "function() error('order') end", "nil", "1", "math.max")
    for _ in range(c.between(2, 6)):
        kind = c.below(17)
        value = c.value(1)
        if kind < 2:
            lines.append(invoke(c, "table.insert", arguments(c, ["t", value])))
        elif kind < 4:
            lines.append(invoke(c, "table.insert", arguments(c, ["t", c.small(), value])))
        elif kind < 6:
            lines.append(invoke(c, "table.remove", arguments(c, ["t"] + ([c.small()] if c.chance(50) else []))))
        elif kind == 6:
            lines.append(invoke(c, "table.concat", arguments(c, ["t", c.string()] + c.several((c.small(), c.number()), 0, 2))))
        elif kind == 7:
            lines.append(invoke(c, "table.sort", arguments(c, ["t"] + ([c.pick(order)] if c.chance(60) else []))))
        elif kind == 8:
            lines.append(invoke(c, c.pick(("table.maxn", "table.getn", "table.setn", "unpack", "next", "ipairs", "pairs")),
                                arguments(c, ["t"] + ([c.small()] if c.chance(40) else []))))
        elif kind == 9:
            lines.append(invoke(c, c.pick(("table.foreach", "table.foreachi")),
                                arguments(c, ["t", c.pick(("P", "function(k,v) return v end", "function() end", "1"))])))
        elif kind == 10:
            lines.append(invoke(c, "unpack", arguments(c, ["t", c.small(), c.small()])))
        elif kind == 11:
            lines.append(invoke(c, c.pick(("rawget", "next", "rawequal")), arguments(c, ["t", odd(c, c.small(), 40)])))
        elif kind == 12:
            lines.append(invoke(c, "rawset", arguments(c, ["t", c.small() if c.chance(60) else c.number(), value])))
        elif kind == 13:
            lines.append("local o={} for k,v in pairs(t) do o[#o+1]=tostring(k):sub(1,5) end P(table.concat(o,' '))")
        elif kind == 14:
            lines.append("t[%s]=%s" % (c.small(), value))
        elif kind == 15:
            lines.append("P(#t,select('#',unpack(t)),(next(t)))")
        else:
            lines.append("table.sort(t,function(a,b) return tostring(a)<tostring(b) end)")
    lines.append("P(t,#t)")
    return lines


def orders(c):
    """The order in which next() visits a table with numbers as keys, after insertions and removals."""
    lines = ["local t=%s" % c.pick(("{}", "{1,2,3}", "{[-1]=1,[1.5]=2}", "{[10]=1,[20]=2,[30]=3,[-4]=4,[2^40]=5}"))]
    for _ in range(c.between(1, 5)):
        kind = c.below(4)
        if kind == 0:
            lines.append("for i=%s,%s do t[i%s]=i end" % (c.small(), c.between(1, 40), c.pick(("", "*2", "/4", "*1e10", "%7"))))
        elif kind == 1:
            lines.append("for i=1,%d do t[%s-i]=i end" % (c.between(1, 30), c.small()))
        elif kind == 2:
            lines.append("t[%s]=%s" % (c.number().replace("0/0", "1"), c.pick(("1", "nil", "'x'"))))
        else:
            lines.append("for k in pairs(t) do if #tostring(k)%%%d==0 then t[k]=nil end end" % c.between(1, 3))
    lines.append("local o={} for k,v in pairs(t) do o[#o+1]=tostring(k) end P(table.concat(o,' '),#t,table.maxn(t))")
    return lines


def base(c):
    lines = []
    for _ in range(c.between(3, 7)):
        value = c.value()
        name, args = c.pick((
            ("select", [c.pick(("1", "2", "-1", "-2", "0", "'#'", "'2'", "9", "-9", "1.9", "{}", "'x'")), value, value]),
            ("assert", [value] + c.several((c.string(), value), 0, 2)), ("type", [value]), ("rawequal", [value, value]),
            ("tostring", ["setmetatable({},{__tostring=function() return %s end})" % c.scalar()]),
            ("error", [value, c.small()]), ("next", [c.table(), odd(c, "nil", 50)]), ("setmetatable", [c.table(), c.table()]),
            ("setmetatable", ["setmetatable({},{__metatable=%s})" % c.scalar(), "{}"]),
            ("getmetatable", ["setmetatable({},{__metatable=%s})" % c.scalar()]), ("getmetatable", [value]),
            ("unpack", [c.table(), c.small(), c.small()]), ("pcall", [value, value]),
            ("xpcall", [c.pick(("error", "function() error('m') end", "function() local x=nil+1 end", value)),
                        c.pick(("tostring", "function(m) return m end", "function(m) return #m end", value))]),
            ("coroutine.create", [value]), ("coroutine.wrap", [value]), ("coroutine.status", [value]),
            ("coroutine.resume", ["coroutine.create(%s)" % c.pick(("error", "P", "tostring", "coroutine.yield")), value, value]),
            ("coroutine.yield", [value]), ("coroutine.running", []), ("ipairs", [value]), ("pairs", [value]),
            ("collectgarbage", [c.pick(("'stop'", "'restart'", "'x'", "'setpause'", "nil", "1"))]),
            ("gcinfo", [])))
        text = invoke(c, name, arguments(c, args))
        if name == "gcinfo" or name == "collectgarbage":
            text = "P((pcall(%s)))" % ",".join([name] + args)
        lines.append(text)
    return lines


# ------------------------------------------------------------------ loading and syntax

def loading(c):
    """Source text that a program loads: correct, wrong, or cut."""
    lines = []
    for _ in range(c.between(2, 5)):
        code = source_text(c)
        literal = '"%s"' % code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        form = c.below(6)
        name = c.pick(("", "", ",'=name'", ",'@file'", ",'text of\\nlines'", ",''", ",'%s'" % ("n" * 90), ",1", ",{}"))
        if form < 3:
            lines.append("P(pcall(function() local f,m=loadstring(%s%s) if not f then return m end return f(1,2) end))" % (
                literal, name))
        elif form == 3:
            lines.append("local i=0 P(pcall(function() local s=%s local f,m=load(function() i=i+1 "
                         "if i>150 then return end return i<=#s and s:sub(i,i) or %s end%s) return f and pcall(f),m end))" % (
                             literal, c.pick(("nil", "''", "false", "1", "{}")), name))
        elif form == 4:
            lines.append("P(pcall(load,%s))" % c.pick(("nil", "'return 1'", "function() error('r') end", "error", "P",
                                                       "function() return {} end", "coroutine.yield")))
        else:
            lines.append(invoke(c, "loadstring", arguments(c, [c.pick((
                "'\\27Lua'", "'\\27LJ'", "'#!x\\nreturn 1'", "'#'", "''", "nil", "1", "'\\0'", literal))])))
    return lines


TOKENS = ("and break do else elseif end false for function if in local nil not or repeat return then true until while "
          "+ - * / % ^ # == ~= <= >= < > = ( ) { } [ ] ; : , . .. ... x y f 1 2 0x 1e 1.5.2 'a' \"b [[c]] [[d [=[ ]] ]=] -- "
          "--[[ e --]] $ @ ! ` \\ ~ & | ? 'a\\n' '\\400' '\\q' 3x 0xg 1..2 goto ::l:: // << >> \\255 1e+ .. 0x1p3 é").split()


def source_text(c):
    if c.chance(35):
        return " ".join(c.several(TOKENS, 1, 6))
    good = c.pick(("return ...", "local a,b=... return b,a", "return 1+1", "x=1", "return y", "local function f(n) if n==0 "
                   "then return 0 end return f(n-1) end return f(5)", "for i=1,2 do P(i) end", "return function() return 1 end",
                   "local t={1,2,x=3} return t.x,#t", "error('loaded')", "error({})", "return ('x'):rep(3)", "local x<const>=1",
                   "break", "return return", "goto l ::l::", "local a a()", "return tostring(redis):sub(1,5)", "return {...}",
                   "local s=[[\nx]] return s", "do return 5 end", "if nil then else return 2 end", "repeat local z=1 until z",
                   "return 'a' .. 1 .. 2", "return -2^2", "return 2^-3^2", "return not nil==true", "a.b:c'd'", "f\n(1)",
                   "return 1,", "local function", "x=", "for i=1 do end", "for a,b do end", "local 1=2", "a+b", "(f)", "f=",
                   "return getfenv", "setfenv(1,{})", "return #arg", "return _G.x", "return '\\z  a'", "return 0x1p4"))
    if c.chance(60):
        return good
    tokens = good.split(" ")
    for _ in range(c.between(1, 2)):
        i = c.below(len(tokens))
        if c.chance(40):
            tokens.insert(i, c.pick(TOKENS))
        elif c.chance(50):
            tokens[i] = c.pick(TOKENS)
        elif len(tokens) > 1:
            del tokens[i]
    return " ".join(tokens)


def mutate(c, lines):
    """Damages a program by its tokens. The lines are those of another generator."""
    text = "\n".join(lines)
    for _ in range(c.between(1, 3)):
        i = c.below(len(text))
        kind = c.below(5)
        if kind == 0:
            text = text[:i] + text[i + c.between(1, 4):]
        elif kind < 3:
            text = text[:i] + " " + c.pick(TOKENS) + " " + text[i:]
        elif kind == 3:
            j = i + c.below(12)
            text = text[:j] + text[i:]
        else:
            text = text[:i]
    return text.split("\n")


# ------------------------------------------------------------------ sandbox

def sandbox(c):
    names = ("redis server string table math cjson cmsgpack struct bit os coroutine _G KEYS ARGV io debug require dofile "
             "loadfile module package print getfenv setfenv newproxy arg _ENV jit ffi unpack nothing __x").split()
    fields = "call len insert x pi encode pack band clock create KEYS LOG_DEBUG __index 1 _VERSION null huge setfenv".split()
    lines = []
    for _ in range(c.between(2, 6)):
        name, field = c.pick(names), c.pick(fields)
        kind = c.below(16)
        if kind == 0:
            text = "return type(%s)" % name
        elif kind == 1:
            text = "%s=%s" % (name, c.scalar())
        elif kind == 2:
            text = "%s.%s=%s" % (name, field, c.scalar())
        elif kind == 3:
            text = "return type(%s.%s)" % (name, field)
        elif kind == 4:
            text = "return rawget(%s,'%s')" % (name, field)
        elif kind == 5:
            text = "return rawset(%s,'%s',%s)" % (name, field, c.scalar())
        elif kind == 6:
            text = "return setmetatable(%s,%s)" % (name, c.pick(("{}", "nil", "getmetatable(%s)" % name)))
        elif kind == 7:
            text = "local m=getmetatable(%s) return type(m)" % name
        elif kind == 8:
            text = "local m=getmetatable(%s) m.%s=%s" % (name, c.pick(("__index", "__newindex", "x")), c.value(2))
        elif kind == 9:
            text = "return setmetatable({},{__index=%s}).%s==%s.%s" % (name, field, name, field)
        elif kind == 10:
            text = "return table.%s(%s%s)" % (c.pick(("insert", "remove", "sort", "concat", "maxn", "getn", "foreachi")), name,
                                              c.pick(("", ",1", ",1,2")))
        elif kind == 11:
            text = "local o={} for k in pairs(%s) do o[#o+1]=tostring(k) end table.sort(o) return #o,o[1]" % name
        elif kind == 12:
            text = "function %s(x) return x end return %s(1)" % (c.pick((name, "newf", name + "." + field)), name)
        elif kind == 13:
            text = "return next(%s)~=nil,#%s" % (name, name)
        elif kind == 14:
            text = "for k,v in ipairs(%s) do return k,v end" % name
        else:
            text = c.pick(("local s='x' return s:%s()" % field, "getmetatable('').__index=nil return ('x'):len()",
                           "getmetatable('').x=1", "return getmetatable('').__index==string", "return #getmetatable('x')",
                           "return rawequal(_G,_G._G)", "_G.x=1", "_G['y']=1", "return _G.KEYS[1]", "return KEYS==_G.KEYS",
                           "KEYS=1 return KEYS", "KEYS[1]='n' return KEYS[1]", "ARGV.x=1 return ARGV.x", "return #KEYS,#ARGV",
                           "return server==redis", "return string==_G.string", "return _VERSION", "string.len=nil",
                           "return unpack(ARGV)", "table.insert(KEYS,'z') return #KEYS", "return tostring(_G):sub(1,6)",
                           "return select('#',...)", "local a=1 a.b.c=2", "local a={} a.b.c=2", "redis.nothing()", "nothing()",
                           "string.nothing()", "local t={} t:nothing()", "return #nil", "return -{}", "return {}..'x'",
                           "return 1<'x'", "return {}<{}", "return nil>1", "local a='x' return a.b.c", "return ('x')()",
                           "return math.huge,-math.huge", "redis.call=nil", "return pcall(redis)", "return _G[nil]",
                           "return rawlen", "x,y=1,2", "local _ENV={} return y"))
        if c.chance(80):
            lines.append("P(pcall(function() %s end))" % text)
        else:
            lines.append(text if not text.startswith("return") and "return" not in text else "P(pcall(function() %s end))" % text)
    return lines

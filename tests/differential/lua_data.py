# SPDX-License-Identifier: BSD-3-Clause
"""Programs of what converts data: cjson, cmsgpack, struct, commands and their replies, values as replies."""

from lua_libraries import arguments, invoke, odd

JSON_SETTINGS = (("encode_sparse_array", "false,2,10"), ("encode_max_depth", "1000"), ("decode_max_depth", "1000"),
                 ("encode_number_precision", "14"), ("encode_keep_buffer", "true"), ("encode_invalid_numbers", "false"),
                 ("decode_invalid_numbers", "true"))
JSON_RESET = " ".join("cjson.%s(%s)" % one for one in JSON_SETTINGS)
JSON_WORDS = ("true false null [] {} [1] {\"a\":1} \"\" \"x\" 0 -1 1.5 1e5 1E-3 -0 01 .5 5. 1e 0x1F 0xg nan NaN inf Infinity -inf "
              "-Infinity nul tru [1,] [,1] {,} {\"a\"} {\"a\":} {1:2} [1 {\"a\":1 \"\\u0041\" \"\\ud83d\\ude00\" \"\\ud83d\" \"\\ude00\" "
              "\"\\ud83dx\" \"\\u00\" \"\\x\" \"\\n\\t\\/\\b\\f\\r\\\\\" \"a \"\\u0000\" \"\\uD800\\u0041\" \"\\u07ff\" \"\\uffff\" 123456789012345678901 "
              "9007199254740993 1e400 -1e400 1e-400 [[1],[2]] {\"a\":{\"b\":[]}} {\"\":0} {\"a\":1,\"a\":2} 'x' +1 --1 1-2 [1]x "
              "[null] {\"x\":null} nulls trues \"\x7f\" 1.7976931348623157e308 0.1 100 1e+5 e5 infinit NAN ]").split()
JSON_PIECES = "[ ] { } : , \" \\ true null 1 -2 3.5 \"k\" \"v\" \"a\": \n \t / // é \x01 0x1 nan e".split(" ") + [" ", "  "]


def quoted(text):
    """A literal of Lua with these characters, one byte each below 256."""
    out = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\' else "\\%03d" % byte)
    return '"%s"' % "".join(out)


def json_text(c, depth=0):
    kind = c.below(10)
    if depth > 2 or kind < 4:
        return c.pick(JSON_WORDS)
    if kind < 6:
        return "[%s]" % ",".join(json_text(c, depth + 1) for _ in range(c.between(0, 4)))
    if kind < 8:
        key = c.pick(("a", "b", "1", "", "k\\u0020", "n"))  # several could be encoded again in another order
        return "{%s}" % ",".join("\"%s\":%s" % (key, json_text(c, depth + 1)) for _ in range(c.between(0, 3)))
    if kind == 8:
        return c.pick((" ", "\n", "\t", "\r", "\x0b", "\f", "\0", "")) + json_text(c, depth + 1) + c.pick((" ", "", "\n", "\0", "x"))
    return "".join(c.several(JSON_PIECES, 1, 7))


def encodable(c, depth=0):
    """A value that cjson and cmsgpack mostly can encode."""
    kind = c.below(14)
    if depth > 3 or kind < 5:
        return c.number() if c.chance(50) else c.string() if c.chance(70) else c.pick(("true", "false", "nil", "cjson.null"))
    if kind < 7:
        return "{%s}" % ",".join(encodable(c, depth + 1) for _ in range(c.between(0, 5)))
    if kind < 9:
        return "{[%s]=%s}" % (odd(c, c.pick((c.number(), c.string(), c.small())), 10).replace("nil", "9").replace("0/0", "8"),
                              encodable(c, depth + 1))
    if kind == 9:
        return "{%s=%s}" % (c.pick(("a", "b", "n")), encodable(c, depth + 1))
    if kind == 10:
        return "{%s,[%s]=%s}" % (encodable(c, depth + 1), c.pick(("2", "3", "5", "12", "25", "1.5", "100", "-1", "0", "'2'")),
                                 encodable(c, depth + 1))
    if kind == 11:
        return c.pick(("{}", "{{}}", "{[1]=1,[2]=2}", "{1,2,nil,4}", "{nil,2}", "{n=1}", "string.len", "coroutine.create(P)",
                       "setmetatable({1,2},{__index=function() return 5 end})", "{[1]=1,[1.0]=2}", "{[3]=1}", "{[2^53]=1}"))
    if kind == 12:
        return c.bytes(0, 40)
    return "nested(%d)" % c.pick((1, 2, 5, 15, 16, 17, 20))


NESTED = "local function nested(n) local t={} for i=1,n do t={t} end return t end"


def json(c):
    lines = [JSON_RESET, NESTED]
    changed = c.chance(35)
    for _ in range(c.between(2, 6)):
        kind = c.below(12)
        if kind < 5:
            lines.append(invoke(c, "cjson.encode", arguments(c, [encodable(c)])))
        elif kind < 9:
            lines.append(invoke(c, "cjson.decode", arguments(c, [quoted(json_text(c))])))
        elif kind == 9:
            lines.append("P(pcall(function() return cjson.decode(cjson.encode(%s)) end))" % encodable(c))
        elif kind == 10:
            lines.append("P(pcall(function() return cjson.encode(cjson.decode(%s)) end))" % quoted(json_text(c)))
        elif changed:
            name = c.pick(JSON_SETTINGS)[0]
            value = c.pick(("", "true", "false", "'on'", "'off'", "'null'", "1", "2", "0", "-1", "14", "15", "3", "nil", "{}",
                            "true,1,5", "true,0", "false,2,3", "'x'", "5", "1.5", "1,2,3,4", "true,2", "false,1,0"))
            lines.append(invoke(c, "cjson." + name, [value] if value else []))
        else:
            lines.append(c.pick(("P(cjson.null==nil,type(cjson.null),tostring(cjson.null))", "P(cjson._NAME,cjson._VERSION)",
                                 "local j=cjson.new() P(pcall(j.encode,{1,{a=2}}),pcall(j.encode_max_depth,1),pcall(j.encode,{{}}))",
                                 "P(pcall(cjson.encode,nested(1001)),pcall(cjson.encode,nested(999)))",
                                 "P(pcall(cjson.decode,('['):rep(1001)..(']'):rep(1001)))",
                                 "P(#cjson.encode(('x'):rep(300)..'\"'))")))
    lines.append(JSON_RESET)
    return lines


# ------------------------------------------------------------------ cmsgpack

def packed_bytes(c):
    """The start of a packed value, or any bytes."""
    heads = (0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc7, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd9, 0xda,
             0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0x80, 0x81, 0x82, 0x90, 0x91, 0x92, 0x93, 0xa0, 0xa1, 0xa3, 0x00, 0x01, 0x7f, 0xff,
             0xe0, 0x41, 0x42)
    values = []
    for _ in range(c.between(0, 9)):
        values.append(c.pick(heads) if c.chance(50) else c.pick((0, 0, 0, 1, 2, 3, 127, 128, 255, c.below(256))))
    return '"%s"' % "".join("\\%03d" % value for value in values)


def msgpack(c):
    lines = [NESTED]
    for _ in range(c.between(2, 6)):
        kind = c.below(12)
        data = packed_bytes(c)
        if kind < 3:
            lines.append(invoke(c, "cmsgpack.pack", arguments(c, [encodable(c) for _ in range(c.between(1, 3))])))
        elif kind < 5:
            lines.append("P(pcall(function() return cmsgpack.unpack(cmsgpack.pack(%s)) end))" % ",".join(
                encodable(c) for _ in range(c.between(1, 3))))
        elif kind < 8:
            lines.append(invoke(c, "cmsgpack.unpack", arguments(c, [data])))
        elif kind == 8:
            lines.append(invoke(c, "cmsgpack.unpack_one", arguments(c, [data] + ([c.small()] if c.chance(70) else []))))
        elif kind == 9:
            lines.append(invoke(c, "cmsgpack.unpack_limit", arguments(c, [data, c.small()] + ([c.small()] if c.chance(50) else []))))
        elif kind == 10:
            lines.append("P(pcall(function() local s=cmsgpack.pack(%s) return cmsgpack.unpack(s:sub(1,%s)) end))" % (
                encodable(c), c.between(1, 12)))
        else:
            lines.append(c.pick(("P(cmsgpack._NAME,cmsgpack._VERSION,cmsgpack._COPYRIGHT,cmsgpack._DESCRIPTION)",
                                 "P(pcall(cmsgpack.pack))", "P(pcall(cmsgpack.unpack,''))", "P(cmsgpack.pack(('x'):rep(%d)):sub(1,8))" % c.pick(
                                     (31, 32, 255, 256, 65535, 65536)),
                                 "local t={} for i=1,%d do t[i]=i end P(#cmsgpack.pack(t),#cmsgpack.unpack(cmsgpack.pack(t)))" % c.pick(
                                     (15, 16, 100)),
                                 "local t={} t[1]=t P(#cmsgpack.pack(t))", "P(#cmsgpack.pack(nested(20)))",
                                 "P(cmsgpack.unpack(cmsgpack.pack(1,2,3)))")))
    return lines


# ------------------------------------------------------------------ struct

def struct_format(c):
    text = ""
    for _ in range(c.between(0, 5)):
        text += c.pick(("b", "B", "h", "H", "l", "L", "T", "f", "d", "s", "x", "i", "I", "c0", "c1", "c5", "i1", "i2", "i3", "i4",
                        "I4", "i8", "I8", "i16", "I32", "i33", "i0", "<", ">", "!", "!1", "!2", "!4", "!8", "!3", "!0", "!16", " ",
                        "c", "z", "=", "q", "5", "i99999999999", "c20", "Bc0", "Hc0", "s", "i7", "I5"))
    return '"%s"' % text


def structs(c):
    lines = []
    for _ in range(c.between(2, 6)):
        kind = c.below(9)
        form = struct_format(c)
        values = [c.number() if c.chance(60) else c.string() if c.chance(60) else c.value(2) for _ in range(c.between(0, 6))]
        if kind < 3:
            lines.append(invoke(c, "struct.pack", [odd(c, form, 2)] + values))
        elif kind < 6:
            data = c.bytes(0, 24)
            lines.append(invoke(c, "struct.unpack", arguments(c, [form, data] + ([c.pick(SMALL_OFFSETS)] if c.chance(30) else []))))
        elif kind == 6:
            lines.append(invoke(c, "struct.size", arguments(c, [form])))
        else:
            pairs = [c.pick((("b", c.number()), ("B", c.number()), ("h", c.number()), ("H", c.number()), ("i4", c.number()),
                             ("I4", c.number()), ("i8", c.number()), ("I8", c.number()), ("l", c.number()), ("L", c.number()),
                             ("f", c.number()), ("d", c.number()), ("s", c.string()), ("c3", c.string(low=2)), ("x", None),
                             ("i3", c.number()), ("I16", c.number()), (">", None), ("<", None), ("!4", None),
                             ("Bc0", "3," + c.string(low=3)))) for _ in range(c.between(1, 5))]
            lines.append("P(pcall(function() local s=struct.pack('%s'%s) return s,struct.unpack('%s',s) end))" % (
                "".join(p[0] for p in pairs), "".join("," + p[1] for p in pairs if p[1] is not None), "".join(p[0] for p in pairs)))
    return lines


SMALL_OFFSETS = ("1", "2", "3", "0", "-1", "100", "2^31", "1.5", "5", "-2^31", "1e300", "'2'")


# ------------------------------------------------------------------ commands

SETUP = (("'set','s','value'",), ("'set','n','12'",), ("'set','f','3.5'",), ("'rpush','l','a','b','c'",), ("'hset','h','f','v','g','1'",),
         ("'hset','h','f','v'",), ("'zadd','z','1','a','2.5','b'",), ("'sadd','i','1','2','3'",), ("'sadd','m','one'",),
         ("'xadd','x','1-1','f','v'",), ("'zadd','z','inf','a'",), ("'setbit','s','7','1'",))
COMMANDS = ("'get','s'|'get','none'|'get','l'|'set','k','v'|'set','k','v','nx'|'set','k','v','get'|'incr','n'|'incr','s'|"
            "'incrby','n',5|'incrby','n',1.5|'incrbyfloat','f',0.1|'incrbyfloat','n',1e20|'append','s',3.0|'strlen','s'|"
            "'lrange','l',0,-1|'lpop','l'|'lpop','none'|'lpop','l',2|'lpos','l','b'|'llen','l'|'lrange','l',0,'x'|'hgetall','h'|"
            "'hget','h','f'|'hmget','h','f','x'|'hkeys','h'|'hlen','h'|'hincrbyfloat','h','g',0.1|'hrandfield','m'|"
            "'zrange','z',0,-1|'zrange','z',0,-1,'withscores'|'zscore','z','a'|'zscore','z','none'|'zmscore','z','a','q'|"
            "'zrank','z','b','withscore'|'zpopmin','z'|'zincrby','z',1.5,'a'|'zincrby','z','nan','a'|'zrangebyscore','z','-inf',2|"
            "'smembers','i'|'smembers','m'|'smembers','none'|'sismember','i',1|'smismember','i',1,9|'scard','i'|'spop','m'|"
            "'xrange','x','-','+'|'xlen','x'|'xinfo','stream','x'|'xread','streams','x','0'|'exists','s','l'|'del','s'|'type','h'|"
            "'type','none'|'ttl','s'|'expire','s',100|'ping'|'ping','hi'|'echo',1.5|'echo',1e15|'echo',1e17|'echo',0.1|'echo',-0.5|"
            "'echo',0/0|'echo',1/0|'echo',2^53|'echo',2^63|'echo',1e300|'echo',3.14159265358979|'nothing'|'nothing','a','b'|'get'|"
            "'get','a','b'|''|'set','k'|'subscribe','c'|'multi'|'exec'|'watch','k'|'eval','return 1',0|'auth','x'|'blpop','none',0|"
            "'brpop','l',0|'wait',0,0|'client','nothing'|'client','id','x'|'config','get','nothing'|'object','encoding','n'|'command','count','x'|"
            "'command','getkeys','get','k'|'debug','protocol','map'|'debug','protocol','set'|'debug','protocol','attrib'|"
            "'debug','protocol','push'|'debug','protocol','verbatim'|'debug','protocol','double'|'debug','protocol','bignum'|"
            "'debug','protocol','null'|'debug','protocol','true'|'debug','protocol','false'|'debug','protocol','array'|"
            "'debug','protocol','string'|'debug','protocol','integer'|'debug','protocol','x'|'geoadd','g',1,2,'m'|'geopos','g','m'|"
            "'geopos','g','q'|'geodist','g','m','m'|'lcs','s','s'|'bitfield','s','get','u8',0|'getrange','s',0,2|'mget','s','l','none'|"
            "'sort','l','alpha'|'sort','l'|'setrange','s',600000000,'x'|'getbit','s',-1|'hello',3|'reset'|'select',1|'select',99|"
            "'GET','s'|'\\0'|'get','s\\0t'|'zadd','z','x','a'|'zadd','z','nx','xx',1,'a'|'function','list'|'fcall','f',0|"
            "'lolwut','version','x'|'dump','none'|'restore','q',0,'x'|'copy','s','s2'|'rename','none','x'|'randomkey','x'|"
            "'object','freq','n'|'object','help'|'xadd','x','1-1','f','v'|'xadd','x','*'|'pfadd','p','a'|'pfcount','p'|'pfcount','s'|"
            "'lpush','s','a'|'hset','s','a','b'|'publish','c','m'|'script','exists','x'|'script','nothing'|'acl','whoami'|"
            "'zrandmember','none'|'srandmember','none',2|'cluster','info'|'slowlog','x'|'memory','usage','none'").split("|")


def command(c, flat=True):
    args = c.pick(COMMANDS)
    if c.chance(6):
        args = c.pick(("nil", "{}", "true", "", "'get',nil", "'get',{}", "'get',true", "'set','k',nil", "1", "1.5", "'get',print_nothing",
                       "'echo','%s'" % ("x" * 50), "'mget',unpack({'s','n'})", "'del',unpack({})", "function() end", "'echo',cjson.null"))
    return args


def commands(c):
    lines = ["redis.call(%s)" % c.pick(SETUP)[0] for _ in range(c.between(1, 4))]
    newest = c.chance(45)
    if newest:
        lines.append("redis.setresp(3)")
    for _ in range(c.between(2, 6)):
        args = command(c)
        kind = c.below(12)
        table = c.pick(("redis", "server"))
        if kind < 5:
            lines.append("P(%s.pcall(%s))" % (table, args))
        elif kind < 9:
            lines.append("P(pcall(%s.call%s))" % (table, "," + args if args else ""))
        elif kind == 9:
            lines.append("P(pcall(function() local r=%s.call(%s) return type(r),r end))" % (table, args))
        elif kind == 10:
            lines.append("P(pcall(function() return %s.pcall(%s).err end))" % (table, args))
        else:
            lines.append(api(c))
    if newest:
        return lines  # maps of several fields would be returned in the order of Lua's table
    if c.chance(30):
        lines.append("do return redis.%s(%s) end" % (c.pick(("call", "pcall", "call")), command(c) or "'get'"))
    elif c.chance(20):
        lines.append("do return {redis.pcall(%s),redis.pcall(%s)} end" % (command(c) or "'ping'", command(c) or "'ping'"))
    return lines


def api(c):
    value = c.value(1)
    text = c.string(("ERR", "WRONGTYPE", "My", " ", "error", "-", "\\r\\n", "\\n", "x", "\\0", "%s", "", "  "), 0, 5)
    name, args = c.pick((("error_reply", [text]), ("error_reply", [text]), ("status_reply", [text]), ("status_reply", [text]),
                         ("sha1hex", [c.string()]),
                         ("sha1hex", [value]), ("setresp", [c.pick(("2", "3", "4", "'3'", "2.5", "nil", "-1", "3.9"))]),
                         ("set_repl", [c.pick(("redis.REPL_ALL", "redis.REPL_NONE", "4", "-1", "redis.REPL_AOF", "'1'", "1.5"))]),
                         ("log", [c.pick(("redis.LOG_DEBUG", "0", "9", "-1", "'1'", "nil")), c.string()]),
                         ("acl_check_cmd", ["'%s'" % c.pick(("get", "set", "nothing", "config")), "'k'"]),
                         ("replicate_commands", []), ("breakpoint", []), ("debug", [value]), ("register_function", ["'f'", "P"]),
                         ("acl_check_cmd", [value])))
    return invoke(c, c.pick(("redis.", "server.")) + name, arguments(c, args))


def apis(c):
    return [api(c) for _ in range(c.between(3, 8))]


# ------------------------------------------------------------------ values as replies

def reply_value(c, depth=0):
    kind = c.below(20)
    if kind < 6 or depth > 3:
        return c.scalar()
    text = c.string(("a", "ERR", " ", "x y", "\\r\\n", "\\n", "\\0", "WRONGTYPE", "-", "1"), 0, 4)
    inner = reply_value(c, depth + 1)
    if kind == 6:
        return "{err=%s}" % c.pick((text, text, "1", "nil", "{}"))
    if kind == 7:
        return "{ok=%s}" % c.pick((text, text, "1", "nil", "true"))
    if kind == 8:
        return "{double=%s}" % c.pick((c.number(), c.number(), text, "'1.5'"))
    if kind == 9:
        return "{map={%s}}" % c.pick(("", "a=%s" % inner, "[1]=%s" % inner, "[true]=%s" % inner, "[1.5]=%s" % inner))
    if kind == 10:
        return "{set={%s}}" % c.pick(("", "a=true", "[1]=%s" % inner, "'x'", "a=false"))
    if kind == 11:
        return "{big_number=%s}" % c.pick((text, "'123456789012345678901234567890'", "1", "'-1\\r\\n2'"))
    if kind == 12:
        return "{verbatim_string={%s}}" % c.pick(("", "format='txt',string=%s" % text, "string='a'", "format='mkdown',string='x'",
                                                  "format='t',string='x'", "format=1,string=2", "format='',string=''"))
    if kind == 13:
        return c.pick(("{map=1}", "{set=%s}" % text, "{verbatim_string='x'}", "{err='E',ok='x'}", "{ok='a',1,2}", "{double=1,map={}}",
                       "{err='a b',ignore_error_stats_update=true}", "{map={},set={}}", "{double=0/0}", "{double=1/0}", "{double=-0}"))
    if kind == 14:
        return c.pick(("function() end", "coroutine.create(P)", "cjson.null", "print_nothing", "redis", "_G", "KEYS", "ARGV",
                       "setmetatable({},{__index=function(t,k) return 'i' end})", "setmetatable({err='x'},{__index=tostring})",
                       "setmetatable({1,2},{__len=function() return 9 end})"))
    return "{%s}" % ",".join(reply_value(c, depth + 1) for _ in range(c.between(0, 4)))


def replies(c):
    """Programs that return a value as it is. An __index that raises an error ends the released server, and so does a
    library that calls redis.log() while it is loaded: both are left out."""
    lines = []
    if c.chance(40):
        lines.append("redis.setresp(%s)" % c.pick(("3", "3", "2")))
    kind = c.below(10)
    value = reply_value(c)
    if kind < 6:
        lines.append("return %s" % value)
    elif kind == 6:
        lines.append("return %s,%s" % (value, reply_value(c)))
    elif kind == 7:
        lines.append("error(%s%s)" % (value, c.pick(("", ",0", ",2"))))
    elif kind == 8:
        lines.append("local function f() %s %s end" % (c.pick(("return", "error")), "(%s)" % value))
        lines.append(c.pick(("return f()", "local x=f() return x", "return {pcall(f)}", "return select(2,pcall(f))")))
    else:
        lines.append("return {%s,%s}" % (c.pick(("KEYS", "ARGV", "KEYS[1]", "ARGV[1]", "#KEYS", "redis.status_reply('S')",
                                                 "redis.error_reply('E x')", "redis.error_reply('single')")), value))
    return lines


HEADERS = ("#!lua", "#!lua flags=no-writes", "#!lua flags=allow-stale,no-writes", "#!lua flags=x", "#!lua name=f", "#!lua flags=",
           "#!lua flags=no-writes flags=allow-oom", "#!nothing", "#!", "#! lua", "#!lua  flags=no-cluster", "#!lua x", "#!LUA",
           "#!lua flags=no-writes,", "#!lua flags=no-writes,no-writes", "#!lua flags", "#!lua flags=allow-cross-slot-keys")


def headers(c):
    """A script with a header, and what it allows."""
    return [c.pick(HEADERS), c.pick(("return redis.call('get','k')", "return redis.call('set','k','v')", "return 1", "error('x')",
                                     "return redis.pcall('set','k',1)", "return x", "redis.call('nothing')", "local x=nil+1",
                                     "return {redis.pcall('del','a','b'),1}", "x=1", "return (", ""))]


def function_library(c):
    """The text of a library; its function `f` is called afterwards."""
    head = "#!lua name=lib" if c.chance(75) else c.pick(("#!lua name=lib", "#!lua name=lib", "#!lua name=lib", "#!lua", "#!lua name=a-b", "#!lua name=", "#!x name=lib", "",
                   "#!lua name=lib engine=x", "#!lua name=lib name=lib2", "#!lua name='lib'"))
    body = c.pick((
        "server.register_function('f',function(keys,args) return {#keys,#args,keys[1],args[1]} end)",
        "redis.register_function('f',function(keys,args) return %s end)" % reply_value(c),
        "redis.register_function{function_name='f',callback=function(keys,args) return redis.call(%s) end,flags={%s}}" % (
            command(c) or "'get'", c.pick(("", "'no-writes'", "'x'", "1", "'allow-oom','no-writes'", "{}"))),
        "redis.register_function{function_name=%s,callback=%s}" % (odd(c, "'f'", 30), odd(c, "function() return 1 end", 30)),
        "redis.register_function(%s)" % c.pick(("", "'f'", "'f',1", "1,P", "{}", "'f',F,1", "{1}", "{x=1}", "'a b',F",
                                                "'',F", "'F_1',F", "{function_name='f'}", "{callback=F}")),
        "local n=0 redis.register_function('f',function() n=n+1 return n end)",
        "redis.register_function('f',function() error(%s) end)" % c.value(1),
        "redis.register_function('f',function() local x=nil+1 end)",
        "local function g() return KEYS end redis.register_function('f',g)",
        "redis.register_function('f',F) redis.register_function('f',F)",
        "redis.register_function('f',function() x=1 end)", "x=1", "return 5", "error('at load')", "local x=nil+1",
        "redis.call('get','k')", "redis.register_function('f',function() return redis.register_function('g',F) end)",
        "redis.register_function('f',function(k,a) return {type(setmetatable),type(print_it)} end)",
        "return redis.x", "string.x=1", "redis.register_function('f',function() return #KEYS end)", "local x = (", "",
        "redis.register_function('f',function(k,a) local t={} for i=1,3 do t[i]=math.floor(i/2) end return t end)",
        "redis.register_function('f',F)", "redis.register_function('f',function() return redis.setresp(3) end)"))
    return [head, "local F=function(keys,args) return #keys+#args end " + body]

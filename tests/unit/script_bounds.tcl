# SPDX-License-Identifier: BSD-3-Clause
#
# Scripts and the bounds of C stack, time and memory.

# Programs that nest calls of functions in C, each in all ways to call back.
proc nesting_programs {} {
    set programs {
        {local function f() return coroutine.wrap(f)() end f()}
        {local function f() return coroutine.resume(coroutine.create(f)) end f()}
        {local t t = setmetatable({}, {__index = function(s, k) return coroutine.wrap(function() return t[k] end)() end}) return t.x}
        {local t = setmetatable({}, {__index = function(s, k) return s[k .. 'x'] end}) return t.x}
        {local t = setmetatable({}, {}) getmetatable(t).__lt = function(a, b) return a < b end return t < setmetatable({}, getmetatable(t))}
        {local t = setmetatable({}, {}) getmetatable(t).__concat = function(a, b) return a .. b end return t .. t}
        {local t = setmetatable({}, {}) getmetatable(t).__eq = function(a, b) return a == b end return t == setmetatable({}, getmetatable(t))}
        {local t = setmetatable({}, {}) getmetatable(t).__add = function(a, b) return a + b end return t + t}
        {local function f() redis.call('ping') return coroutine.wrap(f)() end f()}
        {local function f() redis.call('dump', 'k') return pcall(f) end f()}
        {cjson.encode_max_depth(100000000) local t = {} for i = 1, 100000 do t = {t} end local ok, e = pcall(cjson.encode, t) cjson.encode_max_depth(1000) return e}
        {cjson.decode_max_depth(100000000) local ok, e = pcall(cjson.decode, ('['):rep(100000)) cjson.decode_max_depth(1000) return e}
        {return cmsgpack.unpack(('\145'):rep(200000))}
        {return string.find(('a'):rep(200000), ('a?'):rep(200000))}
        {return string.find(('a'):rep(14000), ('a?'):rep(14000))}
        {return loadstring(('('):rep(150) .. '1' .. (')'):rep(150))}
        {return loadstring(('return function() '):rep(190) .. 'return 1' .. (' end'):rep(190))}
        {local function f(n, ...) if n == 0 then return select('#', ...) end return (f(n - 1, ...)) end return f(15000, unpack({}, 1, 100))}
    }
    # Each way calls `f` once; they are combined.
    set ways {{pcall(f)} {xpcall(f, f)} {string.gsub('x', '.', f)} {string.gsub('x', '.', setmetatable({}, {__index = f}))}
              {table.sort({3, 2, 1}, f)} {table.foreach({1}, f)} {table.foreachi({1}, f)} {tostring(setmetatable({}, {__tostring = f}))}
              {load(once(f))} {coroutine.wrap(f)()} {coroutine.resume(coroutine.create(function() f() end))} {return setmetatable({}, {__index = f}).x}
              {return setmetatable({}, {__call = f})()} {return setmetatable({}, {__add = f}) + 1} {setmetatable({}, {__newindex = f}).x = 1}}
    foreach outer $ways {
        foreach inner $ways {
            lappend programs "local calls = 0 local function once(f) local done return function() if done then return nil end done = true f() return nil end end
                local outer
                local function inner() calls = calls + 1 if calls > 1000 then return nil end local f = function(...) return outer(...) end $inner end
                outer = (function(f) return function() $outer end end)(inner) outer() return calls"
        }
    }
    return $programs
}

proc run_nesting_programs {} {
    set c [connect]
    $c set k [string repeat x 100000]
    foreach program [nesting_programs] {
        catch {$c eval $program 0} reply
        assert_equal PONG [$c ping] $program
    }
    set raw [raw_connect]
    set program {local t = {} for i = 1, 100000 do t = {t} end return t}
    raw_send $raw "*3\r\n\$4\r\neval\r\n\$[string length $program]\r\n$program\r\n\$1\r\n0\r\n*1\r\n\$4\r\nquit\r\n"
    assert_match "*\\*1\r\n-ERR reached lua stack limit\r\n+OK*" [raw_rest $raw]
}

start_server {tags {scripting}} {
    test {nested calls in C end in an error, whatever calls back} {run_nesting_programs}

    test {200 calls in C can be nested, as in Lua 5.1} {
        assert_equal 199 [r eval {local n = 0 local function f() n = n + 1 return pcall(f) end f() return n} 0]
        assert_error "ERR C stack overflow script: *" {r eval {local function f() return (string.gsub('x', 'x', f)) end f()} 0}
        assert_error "*C stack overflow*" {r eval {local function f() return coroutine.wrap(f)() end f()} 0}
    }
}

start_server {tags {scripting} ulimit {-s 1024}} {
    test {with a stack of 1 MB nested calls end in an error, too} {run_nesting_programs} resp:3
}

start_server {tags {scripting}} {
    test {whatever a script does, others are served after busy-reply-threshold, and SCRIPT KILL ends it} {
        r eval {for i = 1, 20000 do redis.call('hset', 'h', i, i) end} 0
        r config set busy-reply-threshold 10
        foreach script {
            {while true do redis.call('hgetall', 'h') end}
            {while true do string.rep('x', 10000000) end}
            {local a = ('x'):rep(10000000) local b = a .. 'y' while true do local c = a < b end}
            {local t = {} for i = 1, 300000 do t[i] = i end while true do table.sort(t) table.concat(t) end}
            {local t = {} for i = 1, 300000 do t[i] = i end for i = 1, 300000 do t[i] = nil end while true do next(t) end}
            {local t = {} for i = 1, 100000 do t[i] = {} end while true do collectgarbage() end}
            {local s = 'local a ' .. ('if a then else end '):rep(60000) while true do loadstring(s) end}
            {local t = {} for i = 1, 40 do t = {t, t} end return t}
            {local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end}
            {local f = coroutine.wrap(function() while true do redis.call('ping') end end) f()}
            {return load(function() return ' ' end)}
            {local function f() return load(f) end return load(f)}
            {return ('a'):rep(30):find(('a?'):rep(30) .. ('a'):rep(30) .. 'b')}
            {while true do table.foreach({1, 2, 3}, type) end}
            {while true do unpack({}, 1, 7900) end}
            {table.insert({1}, -2000000000, 1)}
        } {
            set c [connect]
            $c -send eval $script 0
            wait_for_condition 400 10 {[catch {r ping} e] && [string match BUSY* $e]} else {fail "not busy: $script"}
            assert_equal OK [r script kill]
            assert_error "ERR Script killed by user with SCRIPT KILL.*" {$c -read}
        }
        assert_equal PONG [r ping]
    }

    test {the compiler has a limit of time} {
        r config set busy-reply-threshold 1
        set statement "if a then [string repeat {elseif a then } 20000] end "
        assert_error "*compilation takes too long" {r eval "local a [string repeat $statement 40] return 1" 0}
        r config set busy-reply-threshold 60000
        assert_equal 1 [r eval "local a $statement return 1" 0]
        r config set busy-reply-threshold 5000
    }
}

if {![is_sanitized]} {
    start_server {tags {scripting} ulimit {-v 1500000} overrides {busy-reply-threshold 0 save ""}} {
        test {at the limit of the address space scripts end with an error, the server stays} {
            r eval {for i = 1, 50000 do redis.call('hset', 'h', i, ('y'):rep(100)) end redis.call('set', 'big', ('x'):rep(20000000))} 0
            foreach script {
                {local t = {} for i = 1, 20 do t[i] = ('x'):rep(1000000) end local u = {} for i = 1, 100 do u[i] = t end return u}
                {local r = {} for i = 1, 1e9 do r[i] = redis.call('hgetall', 'h') end}
                {local r = {} for i = 1, 1e9 do r[i] = redis.call('get', 'big') .. i end}
                {local r = {} for i = 1, 1e9 do r[i] = redis.call('dump', 'h') .. i end}
                {local s = ('\1'):rep(100000000) return cjson.encode(s)}
                {local s = ('x'):rep(50000000) local t = {} for i = 1, 100 do t[i] = s end return cmsgpack.pack(t)}
                {local t = {} for i = 1, 1e9 do t[i] = ('x' .. i):rep(10000) end}
                {return ('x'):rep(1000000000)}
            } {
                catch {r eval $script 0} reply
                assert_match "ERR *" $reply $script
                assert_equal PONG [r ping] $script
            }
        } {resp:3 needs:native}
    }
}

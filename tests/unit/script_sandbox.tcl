# SPDX-License-Identifier: BSD-3-Clause
#
# No script changes what another one sees, and none leaves its bounds of stack and time.

proc ev {script args} {return [r eval $script 0 {*}$args]}

# What a script can reach of the server, as Lua: all shared tables, and metatables.
proc shared {} {return {redis server string table math cjson cmsgpack struct bit os coroutine _G getmetatable('') getmetatable(_G)}}

# A user who may run scripts but read only keys with the prefix low:.
proc low_user {} {
    r acl setuser low reset on nopass +eval +eval_ro +fcall +function|load +get +select ~low:* resetchannels
    set c [connect]
    $c auth low x
    return $c
}

# Runs what would give `low` the keys of others, if it worked.
proc poison {command} {
    set c [low_user]
    foreach table [shared] {
        set attack "local t = getmetatable(setmetatable({}, $table)) local f = function(...) return redis.call('set', 'low:1', 'poisoned') end
            for _, name in ipairs{'call', 'pcall', 'rep', 'insert', 'floor', 'encode', 'pack', 'band', 'clock', 'wrap', '__index', '__newindex'} do
                pcall(function() t\[name\] = f end) pcall(rawset, t, name, f) end
            pcall(function() t.__newindex = error end)
            return rawequal(t, $table)"
        assert_equal 1 [$c $command $attack 0] $table
    }
}

start_server {tags {scripting security} overrides {enable-debug-command yes}} {
    foreach command {eval eval_ro} {
        test "$command: a table of the server as a metatable gives nobody the table itself" {
            r set secret:1 value
            poison $command
            assert_equal value [ev {local v = redis.call('get', 'secret:1') local t = {} t[1] = v
                local s = cjson.encode(t) .. string.rep('', 1) .. #cmsgpack.pack(1) return v}]
            assert_equal 0 [r exists low:1]
            assert_equal {a b} [r eval {return {KEYS[1], ARGV[1]}} 1 a b]
            assert_equal PONG [r ping]
        } resp:3
    }

    test {functions: loadstring in a library gives nobody a table of the server} {
        r set secret:1 value
        set c [low_user]
        $c function load "#!lua name=evil\nserver.register_function('evil', function(keys, args)
            local code = 'local f = function() return 1 end for _, t in ipairs{redis, server, string, table, math, cjson, _G} do '
                .. 'local m = getmetatable(setmetatable({}, t)) pcall(function() m.call = f m.__index = f m.__newindex = f end) '
                .. 'pcall(rawset, m, \"call\", f) end return 1'
            return loadstring(code)() end)"
        r function load "#!lua name=good\nserver.register_function('good', function(keys, args) return redis.call('get', keys\[1\]) end)"
        r acl setuser low ~secret:none
        assert_equal 1 [$c fcall evil 0]
        assert_equal value [r fcall good 1 secret:1]
        r function flush
    }

    test {a metatable that is a table of the server works as in Valkey} {
        assert_equal {1 1 1 1} [ev {local t = setmetatable({}, redis)
            return {getmetatable(t) == redis, t.call == nil, getmetatable(setmetatable({}, _G)) == _G, getmetatable(redis) == nil}}]
        assert_equal {1 1 1} [ev {local t = setmetatable({}, getmetatable(''))
            return {t.rep == string.rep, getmetatable(t) == getmetatable(''), getmetatable('').__index == string}}]
        assert_error "ERR user_script:1: Script attempted to access nonexistent global variable 'x' *" {
            ev {return setmetatable({}, getmetatable(_G)).x}
        }
        assert_equal {} [ev {return setmetatable({}, getmetatable(_G)) == nil}]
    }

    test {KEYS and ARGV are set without metamethods} {
        assert_equal {1 2} [r eval {return {KEYS[1], ARGV[1]}} 1 1 2]
        assert_equal {1 0} [list [r eval {return #ARGV} 0 x] [r eval {return #KEYS} 0]]
        set big [string repeat x 200000]
        assert_equal {200000 200000 3} [r eval {return {#KEYS[1], #ARGV[2], #ARGV}} 1 $big a $big b]
    }

    # In builds with checks the server walks all that a script can reach, the result included, after each script.
    test {no function gives away a table of the server, whatever it is called with} {
        set walk {
            local host = {redis, string, table, math, cjson, cmsgpack, struct, bit, os, coroutine, _G, getmetatable(''), getmetatable(_G)}
            local plain = {1, 'x', function(...) return ... end, cjson.null, 'return ...'}
            -- A new table for each call, because functions change them.
            local function thing(i)
                if i <= 13 then return host[i] end
                if i <= 26 then return setmetatable({}, host[i - 13]) end
                if i <= 39 then return setmetatable({}, {__index = host[i - 26], __newindex = host[i - 26], __metatable = host[i - 26]}) end
                if i <= 44 then return plain[i - 39] end
                if i == 45 then return coroutine.create(function(...) return ... end) end
                return {1, 2}
            end
            local count, all = 39, 46
            local skip = {collectgarbage = 1, error = 1, set_repl = 1, log = 1, breakpoint = 1, debug = 1, __server__err__handler = 1, __redis__err__handler = 1}
            local found, calls = {}, 0
            local function keep(ok, ...)
                calls = calls + 1
                for i = 1, select('#', ...) do
                    local v = select(i, ...)
                    if type(v) ~= 'string' and type(v) ~= 'number' and type(v) ~= 'boolean' and v ~= nil then found[v] = true end
                end
            end
            local function each(name, f)
                if skip[name] or type(f) ~= 'function' then return end
                for i = 1, all do
                    keep(pcall(f, thing(i)))
                    for j = 1, all do
                        if i <= count or j <= count then keep(pcall(f, thing(i), thing(j))) end
                        if (i + j) % 7 == tonumber(ARGV[1]) then keep(pcall(f, thing(i), thing(j), thing((i * j) % all + 1))) end
                    end
                end
            end
            for name, value in pairs(_G) do
                each(name, value)
                if type(value) == 'table' and name ~= '_G' and name ~= 'KEYS' and name ~= 'ARGV' then
                    for inner, f in pairs(value) do each(inner, f) end
                end
            end
            if calls < 20000 then return calls end
            return function() return found end
        }
        for {set i 0} {$i < 2} {incr i} {
            assert_equal {} [r eval $walk 0 $i]
            assert_equal 1 [ev {return redis == server and ('x'):rep(2) == 'xx' and 1}]
        }
    }

    test {a coroutine that is kept by a library is walked, and sees no arguments of others} {
        r function load "#!lua name=keeper\nlocal co
            server.register_function('keep', function(keys, args)
                co = co or coroutine.create(function(...) local seen = ... while true do seen = coroutine.yield(seen) end end)
                local ok, v = coroutine.resume(co, redis) return ok and type(v) end)"
        assert_equal {table table} [list [r fcall keep 0] [r fcall keep 0]]
        r function flush
    }
}

# SPDX-License-Identifier: BSD-3-Clause
#
# Scripts behave as in Lua 5.1 and in the libraries that the released server has: what once differed.

proc ev {script args} {return [r eval $script 0 {*}$args]}

start_server {tags {scripting}} {
    test {local functions with the names of global ones return all their values} {
        foreach name {error tostring tonumber select next type assert pairs unpack rawget} {
            assert_equal 2 [ev "local function $name\(m) return nil, m end local function f() return $name\('x') end return select and ({f()})\[2\] == 'x' and 2"] $name
        }
        foreach table {redis cjson string math server} {
            assert_equal {1 2} [ev "local $table = {f = function() return 1, 2 end} local function f() return $table.f() end return {f()}"] $table
        }
    }

    test {a local function is called in the place of its caller, whatever its name} {
        foreach name {next select tostring f} {
            assert_equal 50001 [ev "local n = 0 local function $name\(k) n = n + 1 if k == 0 then return n end return $name\(k - 1) end return $name\(50000)"] $name
        }
    }

    test {a loop with step 0 ends at once} {
        assert_equal none [ev {for i = 1, 10, 0 do return i end return 'none'}]
    }

    test {60,000 branches are loaded} {
        r config set busy-reply-threshold 60000 ;# also where the processor has other work
        assert_equal 1 [ev "local a [string repeat {if a then else end } 60000] return 1"]
        assert_equal 1 [ev "local a if a then [string repeat {elseif a then } 20000] end return 1"]
        r config set busy-reply-threshold 5000
    }

    test {errors are located as by the released server} {
        foreach {script text} {
            {string.gsub('x', 'x', error)} "ERR x script: on =\[C\]:-1."
            {string.gsub('x', 'x', function() error('y') end)} "ERR user_script:1: y script: on @user_script:1."
            {local function f() return error('x') end f()} "ERR user_script:1: x script: on @user_script:1."
            {error()} "ERR nil script: on @user_script:1."
        } {
            catch {ev $script} reply
            assert_equal $text $reply $script
        }
    }

    test {pcall gives what a table of an error has as its text} {
        assert_equal {3 5 z 3} [ev {return {select('#', pcall(error, {})), select(2, pcall(error, {err = 5})) + 0,
            (select(2, pcall(error, setmetatable({}, {__index = {err = 'z'}})))), select('#', pcall(error, {err = false}))}}]
        assert_equal "attempt to call a boolean value" [ev {return (select(2, pcall()))}]
    }

    test {load: reader functions are called as long as the text is valid, their errors are returned} {
        assert_equal {1 (load):1: unexpected symbol near '='} [string map {\{ {} \} {}} [ev {local n = 0
            local f, e = load(function() n = n + 1 return 'x = = ' end) return {n, e}}]]
        assert_equal "\[string \"name\"\]:1: unexpected symbol near 'char(27)'" [ev {return select(2, load(function() return string.char(27) end, 'name'))}]
        assert_equal nil [ev {local p, n = {string.dump(function() return 1 end):byte(1, -1)}, 0
            return tostring((load(function() n = n + 1 return p[n] and string.char(p[n]) end)))}]
        assert_equal 3 [ev {local p, n = {'return', ' 1 +', ' 2'}, 0 return load(function() n = n + 1 return p[n] end)()}]
    }

    test {a NUL ends a pattern} {
        assert_equal {1 8 worldkey} [ev {return {string.find('worldkey=val', "(%a+)\0")}}]
        assert_error "*malformed pattern (missing ']')*" {ev "return string.find('', '\[\\0\]*')"}
        assert_error "*unfinished capture*" {ev {return string.match('abc', "(\0?),")}}
        assert_equal 1 [ev {return select(2, string.gsub('', "(\0?)%u+", ''))}]
        assert_equal 0 [ev {return select(2, string.gsub('key', '(())%2[%a-z]', ''))}]
    }

    test {numbers beyond integers: formats, random, keys of arrays} {
        assert_equal {0 -9223372036854775808 c000000000000000} [ev {
            return {string.format('%x', 2^64), string.format('%d', 1.5 * 2^63), string.format('%x', 1.5 * 2^63)}}]
        assert_equal {740058136 2 3 -2147483648} [ev {math.randomseed(5) return {tostring(math.random(1e10)), tostring(math.random(5)),
            tostring(math.random(-5, 5)), tostring(math.random(-2147483648, 2147483647))}}]
        assert_error "*interval is empty*" {ev {return math.random(2147483647, 1e10)}}
        assert {[ev {return cjson.encode({[2^53] = 1})}] eq "{\"9.007199254741e+15\":1}"}
    }

    test {struct and cmsgpack check positions in the order of the released server} {
        assert_equal -2 [ev {return struct.unpack('', 'data', -2)}]
        assert_error "*data string too short*" {ev {return struct.unpack('qcf', 'data', 31)}}
        assert_error "*integral size 33 is larger*" {ev {return struct.unpack('i33', 'data', 31)}}
        assert_error "*data string too short*" {ev {return struct.unpack('!3', 'data', 31)}}
        assert_equal -1 [ev {return cmsgpack.unpack_limit("\222", 0, 1)}]
        assert_error "*Bad data format in input.*" {ev {return cmsgpack.unpack_one("\001\220\163\195\000\002\199", 1)}}
    }

    test {texts of errors end at a NUL and keep their line breaks inside of the script} {
        assert_error "ERR " {ev {return redis.error_reply("\0-")}}
        assert_equal "ERR x\n\nx\r\n" [ev {return redis.error_reply("x\n\nx\r\n").err}]
        assert_equal "\nMyx " [ev {return redis.error_reply("\nMyx ").err}]
        assert_equal {{ERR x} { My}} [ev {return {redis.error_reply("ERR \r\nx").err, redis.error_reply(" My\r\n").err}}]
        assert_error "a" {ev {return {err = "a\0b"}}}
        assert_equal 1 [ev {return {big_number = "1\0x"}}]
    }

    test {a header names its engine without a blank} {
        foreach {header text} {"#! name=x" "ERR Engine '' not found" "#!" "ERR Library name was not given" "#! lua name=x" "ERR Invalid metadata value given: lua"
                               "#! name=" "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"} {
            catch {r function load "$header\nserver.x"} reply
            assert_equal $text $reply $header
        }
        foreach {header text} {"#!" "ERR Could not find scripting engine ''" "#! lua" "ERR Unknown lua shebang option: lua" "#!js foo" "ERR Unknown lua shebang option: foo"} {
            catch {r eval "$header\nreturn 1" 0} reply
            assert_equal $text $reply $header
        }
        catch {r function load "#!lua name=zz\nserver.register_function({1})"} reply
        assert_equal "ERR Error registering functions: ERR unknown argument given to server.register_function" $reply
    }
}

# SPDX-License-Identifier: BSD-3-Clause
#
# Dictionaries of modules (tests/modules/dictionary.c): order, seeks, changes during a walk.

start_server {overrides {enable-module-command yes}} {
    r module load [file normalize build/modules/dictionary.so]

    test {entries are set, replaced, found and deleted} {
        assert_equal 0 [r dict.set b 2]
        assert_equal 1 [r dict.set b 3]
        assert_equal 2 [r dict.get b]
        assert_equal 1 [r dict.replace b 4]
        assert_equal 0 [r dict.replace {} empty]
        assert_equal 4 [r dict.get b]
        assert_equal empty [r dict.get {}]
        assert_equal {} [r dict.get c]
        assert_equal 2 [r dict.size]
        assert_equal 0 [r dict.del b]
        assert_equal 1 [r dict.del b]
        r dict.del {}
    }

    test {seeks begin where their operator says, in both directions} {
        foreach key {d b a c "b\0" bb} {r dict.set $key $key}
        proc keys_of {args} {
            set keys {}
            foreach {key value} [r dict.walk {*}$args] {lappend keys $key}
            return $keys
        }
        foreach {op key next prev} [list ^ {} [list a b "b\0" bb c d] a  \$ {} d [list d c bb "b\0" b a] \
            > b [list "b\0" bb c d] [list "b\0" b a]  >= b [list b "b\0" bb c d] {b a}  < b [list a b "b\0" bb c d] a \
            <= b [list b "b\0" bb c d] {b a}  == b [list b "b\0" bb c d] {b a}  == x {} {}  > d {} {}  < a {} {}  ? b {} {}] {
            assert_equal $next [keys_of $op $key next] "$op $key next"
            assert_equal $prev [keys_of $op $key prev] "$op $key prev"
        }
    }

    test {comparisons with the current key; a reseek answers 1} {
        foreach {op key result} {> {} 0 >= a 0 > a 1 == a 0 == b 1 < b 0 <= a 0 < a 1 ? a 1} {
            assert_equal [list $result 1] [r dict.compare $op $key] "$op $key"
        }
    }

    test {a walk that deletes what it returns visits everything once} {
        foreach direction {next prev} op {^ $} {
            set model {}
            for {set i 0} {$i < 500} {incr i} {
                set key [random_below 1000000]
                if {[r dict.set $key $i] == 0} {dict set model $key $i}
            }
            foreach key {a b "b\0" bb c d} {r dict.del $key}
            set walked [r dict.walk $op {} $direction deleting]
            assert_equal 0 [r dict.size]
            set sorted [lsort -command {string compare} [dict keys $model]]
            if {$direction eq {prev}} {set sorted [lreverse $sorted]}
            assert_equal $sorted [dict keys $walked]
            foreach {key value} $walked {assert_equal $value [dict get $model $key]}
        }
    }

    test {the module can be unloaded with entries} {
        r dict.set x 1
        assert_equal OK [r module unload dictionary]
    }
}

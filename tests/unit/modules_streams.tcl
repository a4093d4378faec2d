# SPDX-License-Identifier: BSD-3-Clause
#
# Streams of open keys (tests/modules/streams.c). The expected results are those of Valkey 9.1.2.

start_server {overrides {enable-module-command yes save {} appendonly no}} {
    r module load [file normalize build/modules/streams.so]
    set read 1
    set write 2
    set both 3
    set max 18446744073709551615-18446744073709551615

    test {StreamAdd refuses what is wrong, and then makes no key} {
        assert_equal {{1 EINVAL} 0-0} [r streams.add s $both 0 - a 1]
        assert_equal {{1 EINVAL} 1-1} [r streams.add s $both 2 1-1 a 1]
        assert_equal {{1 EDOM} 0-0} [r streams.add s $both 0 0-0 a 1]
        assert_equal {{1 EINVAL} 1-1} [r streams.add s $both 0 1-1]
        assert_equal 0 [r exists s]
        r set str x
        assert_equal {{1 ENOTSUP} 0-0} [r streams.add str $both 1 - a b]
        assert_equal {{1 ENOTSUP} 1-1} [r streams.add str $read 0 1-1 a b]
    }

    test {StreamAdd appends with a given or a new id} {
        assert_equal {{0 0} 1-1} [r streams.add s $both 0 1-1 z 1]
        assert_equal {{1 EDOM} 1-1} [r streams.add s $both 0 1-1 a 1 b 2]
        assert_equal {{1 EBADF} 1-2} [r streams.add s $read 0 1-2 a 1]
        assert_equal {{0 0} 1-2} [r streams.add s $write 0 1-2 c 3]
        assert_equal {{0 0} 2-0} [r streams.add s $both 0 2-0 a 5 b 6]
        lassign [r streams.add s $both 1 0-0 a x] result id
        assert_equal {0 0} $result
        assert_equal [list $id {a x}] [lindex [r xrange s - +] end]
        assert_equal {{1-1 {z 1}} {1-2 {c 3}} {2-0 {a 5 b 6}}} [lrange [r xrange s - +] 0 2]
    }

    test {StreamAdd after the last possible id} {
        assert_equal {{0 0} 18446744073709551615-18446744073709551615} [r streams.add last $both 0 $max a b]
        assert_equal {{1 EFBIG} 0-0} [r streams.add last $both 1 - a b]
        assert_equal {{1 EFBIG} 1-1} [r streams.add last $both 0 1-1 a b]
    }

    test {StreamDelete: one entry; the key remains} {
        assert_equal {1 EINVAL} [r streams.delete s $both -]
        assert_equal {1 EBADF} [r streams.delete s $read 1-2]
        assert_equal {1 ENOENT} [r streams.delete s $both 5-5]
        assert_equal {0 0} [r streams.delete s $both 1-2]
        assert_equal {1 ENOENT} [r streams.delete s $both 1-2]
        assert_equal {1 ENOTSUP} [r streams.delete missing $both 1-2]
        assert_equal {1 ENOTSUP} [r streams.delete str $both 1-1]
        assert_equal 3 [r xlen s]
    }

    test {iterating: both directions, exclusive ends, empty ranges} {
        set last [lindex [r xrange s - +] end 0]
        set entries [list {1-1 1 z 1} {2-0 2 a 5 b 6} [list $last 1 a x]]
        assert_equal [concat $entries {{0 ENOENT}}] [r streams.range s $read 0 - -]
        assert_equal [concat [lreverse $entries] {{0 ENOENT}}] [r streams.range s $read 2 - -]
        assert_equal {{0 ENOENT}} [r streams.range s $both 1 1-1 2-0]
        assert_equal {{2-0 2 a 5 b 6} {0 ENOENT}} [r streams.range s $both 3 1-1 3-0]
        assert_equal {{2-0 2 a 5 b 6} {1-1 1 z 1} {0 ENOENT}} [r streams.range s $both 2 0-0 2-0]
        assert_equal {{0 ENOENT}} [r streams.range s $both 0 5-0 4-0]
        assert_equal {1 EDOM} [r streams.range s $both 1 $max -]
        assert_equal {1 EDOM} [r streams.range s $both 1 - 0-0]
        assert_equal {{18446744073709551615-18446744073709551615 1 a b} {0 ENOENT}} \
            [r streams.range last $both 0 $max $max]
        assert_equal {1 ENOTSUP} [r streams.range missing $both 0 - -]
        assert_equal {1 ENOTSUP} [r streams.range str $both 0 - -]
    }

    test {functions of an iteration without one, without an entry, for reading only} {
        assert_equal {{1 EBADF} {1 EBADF} {1 EBADF} {1 EBADF} {1 EINVAL} {0 0} {1 EBADF} {1 ENOENT} {1 EBADF} {0 0} {1 EBADF} {1 EBADF} {1 EINVAL} {1 EINVAL} {1 EINVAL}} \
            [r streams.wrong s]
    }

    test {trimming} {
        assert_equal {-1 EINVAL} [r streams.trim s $both 0 length -1]
        assert_equal {-1 EBADF} [r streams.trim s $read 0 length 1]
        assert_equal {-1 EINVAL} [r streams.trim s $both 2 length 1]
        assert_equal {-1 EINVAL} [r streams.trim s $both 0 id -]
        assert_equal {-1 ENOTSUP} [r streams.trim missing $both 0 length 1]
        assert_equal {-1 ENOTSUP} [r streams.trim str $both 0 length 1]
        assert_equal {0 0} [r streams.trim s $both 1 length 1]
        assert_equal {1 0} [r streams.trim s $both 0 id 2-0]
        assert_equal {1 0} [r streams.trim s $both 0 length 1]
        assert_equal 1 [r xlen s]
    }

    test {an approximate trim removes at most 100 full nodes} {
        r config set stream-node-max-entries 1
        for {set i 1} {$i <= 250} {incr i} {r xadd many $i-1 f v}
        assert_equal {100 0} [r streams.trim many $both 1 length 10]
        assert_equal {100 0} [r streams.trim many $both 1 id 240-1]
        assert_equal {40 0} [r streams.trim many $both 0 length 10]
        r config set stream-node-max-entries 100
        r del many
    }

    test {an iteration goes on when its entries are deleted, and meets what is added} {
        r del d
        for {set i 1} {$i <= 250} {incr i} {r xadd d $i-1 f $i g [expr {-$i}]}
        set log [r streams.range d $both 0 50-0 149-1 delete]
        assert_equal 101 [llength $log]
        assert_equal {50-1 2 f 50 g -50 {0 0}} [lindex $log 0]
        assert_equal {149-1 2 f 149 g -149 {0 0}} [lindex $log 99]
        assert_equal 150 [r xlen d]
        set log [r streams.range d $both 2 - 200-1 delete]
        assert_equal {200-1 2 f 200 g -200 {0 0}} [lindex $log 0]
        assert_equal {1-1 2 f 1 g -1 {0 0}} [lindex $log 99]
        assert_equal 50 [r xlen d]
        # Each entry adds one at the end in the middle of its fields, until the module stops.
        set log [r streams.range d $both 0 - - add]
        assert_equal {201-1 2 f 201 g -201} [lindex $log 0]
        assert_equal {250-1 2 f 250 g -250} [lindex $log 49]
        assert_equal 101 [llength $log]
        assert_equal 150 [r xlen d]
        r streams.range d $both 0 - - delete
        r streams.range d $both 2 - - delete
        assert_equal {0 1} [list [r xlen d] [r exists d]]
    }

    test {XREAD is woken by the end of the handle} {
        set c [respConnect [srv host] [srv port] 2]
        $c -send xread block 0 streams wake 0
        wait_for_condition 500 20 {[string match *blocked_clients:1* [r info clients]]}
        r streams.add wake $both 0 1-1 a b
        assert_equal {{wake {{1-1 {a b}}}}} [$c -read]
        $c -close
    }

    test {a million entries by one handle} {
        assert_equal 1000000 [r streams.many many 1000000]
        assert_equal 1000000 [r xlen many]
        r del many
    }

    test {stream-node-max-entries holds for modules, too} {
        r config set stream-node-max-entries 10
        r streams.many few 100
        assert_equal 10 [dict get [r xinfo stream few] radix-tree-keys]
        r config set stream-node-max-entries 100
    }
}

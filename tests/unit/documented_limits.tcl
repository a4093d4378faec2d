# SPDX-License-Identifier: BSD-3-Clause
#
# The rows of docs/limits.md that cost little to try: the last value that is allowed and the first
# one beyond, which gets the error of the page. Numbers and errors are read from the page, so a
# wrong one fails. The others are compared with the source by tests/utils/test_limits.py.

proc limits_read {} {
    set file [open [file join [file dirname [info script]] ../../docs/limits.md]]
    set text [read $file]
    close $file
    set rows {}
    foreach line [split $text "\n"] {
        set cells [lmap cell [split [string trim $line "|"] "|"] {string trim $cell}]
        if {[llength $cells] == 5 && [string index $line 0] eq "|"} {
            lassign $cells name number beyond
            dict set rows $name [list [limits_number $number] [limits_text $beyond]]
        }
    }
    return $rows
}

# The number of a cell such as "64 KB", "2^31 - 1", "10,000".
proc limits_number {text} {
    lassign $text number unit
    if {[regexp {^2\^(\d+)( - 1)?$} $text -> power less]} {
        return [expr {2 ** $power - ($less ne "")}]
    }
    set scale [expr {[dict exists {KB 10 MB 20 GB 30 TB 40} $unit] ? [dict get {KB 10 MB 20 GB 30 TB 40} $unit] : 0}]
    set plain [string map {, {}} $number]
    return [expr {[string is integer -strict $plain] ? $plain << $scale : $plain}]
}

# The first text in code type, which is the error.
proc limits_text {cell} {
    return [expr {[regexp {`([^`]*)`} $cell -> text] ? $text : ""}]
}

# The number of a row, and the pattern of the error beyond it.
proc limit {name} { return [lindex [dict get $::limits_rows $name] 0] }
proc limit_error {name} { return "*[lindex [dict get $::limits_rows $name] 1]*" }

set ::limits_rows [limits_read]

start_server {tags {limits} overrides {enable-protected-configs yes}} {
    test {limits of the protocol: the request beyond is refused, and the connection closed} {
        foreach {name format} {
            {bytes of an argument} "*1\r\n\$%lld\r\n"
            {arguments of a request} "*%lld\r\n"
        } {
            set s [raw_connect]
            raw_send $s [format $format [expr {[limit $name] + 1}]]
            assert_match [limit_error $name] [raw_line $s]
            assert_equal {} [raw_rest $s]
            set s [raw_connect]
            raw_send $s [format $format [limit $name]]
            raw_silent $s
        }
        set name {bytes of an inline request, or of a line with a length}
        set s [raw_connect]
        raw_send $s "SET k v[string repeat " " [expr {[limit $name] - 9}]]\r\n"
        assert_equal +OK [raw_line $s]
        raw_send $s [string repeat a [expr {[limit $name] + 1}]]
        assert_match [limit_error $name] [raw_line $s]
    }

    test {limits of values: the last one is stored, the first one beyond refused} {
        set bit [limit {greatest bit of SETBIT and GETBIT}]
        assert_equal 0 [r getbit bits $bit]
        assert_error [limit_error {greatest bit of SETBIT and GETBIT}] {r setbit bits [expr {$bit + 1}] 1}
        set bytes [limit {bytes of a string}]
        assert_error [limit_error {bytes of a string}] {r setrange text $bytes x}
        assert_equal 0 [r exists bits text]
        r set number [limit {greatest integer of INCR and HINCRBY}]
        assert_error [limit_error {greatest integer of INCR and HINCRBY}] {r incr number}
        set last [limit {latest expiry time, ms since 1970}]
        assert_equal 1 [r pexpireat number $last]
        assert_equal $last [r pexpiretime number]
        assert_error [limit_error {latest expiry time, ms since 1970}] {r pexpire number $last}
        set id [limit {greatest ID of a stream, each half}]
        assert_equal $id-$id [r xadd stream $id-$id f v]
        assert_error [limit_error {greatest ID of a stream, each half}] {r xadd stream * f v}
        set longitude [limit {longitude of a position, degrees}]
        set latitude [limit {latitude of a position, degrees}]
        assert_equal 1 [r geoadd places $longitude $latitude here]
        assert_error [limit_error {longitude of a position, degrees}] {r geoadd places 180.1 0 there}
        assert_error [limit_error {latitude of a position, degrees}] {r geoadd places 0 85.06 there}
    }

    test {limits of numbers that a command takes} {
        set databases [limit databases]
        assert_equal OK [r select [expr {$databases - 1}]]
        assert_error [limit_error databases] {r select $databases}
        r select 0
        assert_equal [expr {[limit {bits of ACL GENPASS}] / 4}] [string length [r acl genpass [limit {bits of ACL GENPASS}]]]
        assert_error *[limit {bits of ACL GENPASS}]* {r acl genpass [expr {[limit {bits of ACL GENPASS}] + 1}]}
    }

    test {limits of producers' ids in a stream} {
        needs_command xcfgset
        r del stream
        r xadd stream 1-1 f v
        foreach {name option} {
            {remembered ids of a producer (XADD IDMP)} IDMP-MAXSIZE
            {seconds that ids of producers are remembered} IDMP-DURATION
        } {
            assert_equal OK [r xcfgset stream $option [limit $name]]
            assert_error [limit_error $name] {r xcfgset stream $option [expr {[limit $name] + 1}]}
        }
    }

    test {field sets of a connection are limited} {
        needs_command himport
        set c [connect]
        set most [limit {field sets of a connection (HIMPORT)}]
        for {set i 0} {$i < $most} {incr i} {$c himport prepare set$i field}
        assert_error [limit_error {field sets of a connection (HIMPORT)}] {$c himport prepare more field}
    }

    test {limits of scripts} {
        set depth [limit {nesting of cjson, both directions}]
        set nest {local t = {} for i = 2, tonumber(ARGV[1]) do t = {t} end return #cjson.encode(t)}
        assert_equal [expr {2 * $depth}] [r eval $nest 0 $depth]
        assert_error "*Cannot serialise, excessive nesting*" {r eval $nest 0 [expr {$depth + 1}]}
        set captures [limit {captures of a pattern}]
        set find {return (string.find('a', string.rep('()', tonumber(ARGV[1]))))}
        assert_equal 1 [r eval $find 0 $captures]
        assert_error [limit_error {captures of a pattern}] {r eval $find 0 [expr {$captures + 1}]}
        r script flush
        set most [limit {scripts that EVAL keeps}]
        for {set i 0} {$i < $most + 5} {incr i} {r eval "return $i" 0}
        assert_equal $most [info_field number_of_cached_scripts]
    }

    test {directives are refused beyond their range} {
        foreach {name directive} {
            {I/O threads, with the main thread} io-threads
            {greatest `replication-quorum`} replication-quorum
            {samples of an eviction} maxmemory-samples
        } {
            assert_error "*must be between*[limit $name] inclusive*" {r config set $directive [expr {[limit $name] + 1}]}
        }
        set many [lrepeat [expr {[limit {addresses to listen at}] + 1}] 127.0.0.1]
        assert_error [limit_error {addresses to listen at}] {r config set bind $many}
        foreach {name directive} {
            {bytes of a node's address} cluster-announce-ip
            {bytes of a node's host name} cluster-announce-hostname
        } {
            assert_error [limit_error $name] {r config set $directive [string repeat a [expr {[limit $name] + 1}]]}
            assert_equal OK [r config set $directive [string repeat a [limit $name]]]
            assert_equal OK [r config set $directive {}]
        }
    }

    test {the command log cuts arguments as documented} {
        set bytes [limit {bytes of an argument in a command log}]
        set words [limit {arguments of a command in a command log}]
        r config set commandlog-execution-slower-than 0
        r commandlog reset slow
        r mget [string repeat k [expr {$bytes + 10}]] {*}[lrepeat 50 key]
        r config set commandlog-execution-slower-than -1
        foreach entry [r commandlog get -1 slow] {
            if {[string tolower [lindex $entry 3 0]] eq "mget"} {set logged [lindex $entry 3]}
        }
        assert_equal $words [llength $logged]
        assert_equal "[string repeat k $bytes]... (10 more bytes)" [lindex $logged 1]
    }
}

start_server {tags {limits} overrides {requirepass secret}} {
    test {limits before login: the request beyond is refused, and the connection closed} {
        foreach {name format} {
            {arguments before login} "*%lld\r\n"
            {bytes of an argument before login} "*2\r\n\$3\r\nGET\r\n\$%lld\r\n"
        } {
            set s [raw_connect]
            raw_send $s [format $format [expr {[limit $name] + 1}]]
            assert_match [limit_error $name] [raw_line $s]
            assert_equal {} [raw_rest $s]
            set s [raw_connect]
            raw_send $s [format $format [limit $name]]
            raw_silent $s
        }
    }
}

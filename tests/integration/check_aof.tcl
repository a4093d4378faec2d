# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-check-aof: single and multi-part files, repair, cutting at a time.

source $::tests_dir/support/all_types.tcl
source $::tests_dir/support/tools.tcl

set dir [file join $::job_dir check_aof]
file mkdir $dir

proc check_aof {input args} {run_tool valkey-check-aof $input {*}$args}

proc record {args} {
    set out "*[llength $args]\r\n"
    foreach a $args {append out "\$[string length $a]\r\n$a\r\n"}
    return $out
}

proc expect {expected_status pattern result} {
    lassign $result status output
    if {$status != $expected_status || ![string match $pattern $output]} {
        fail "expected status $expected_status and \"$pattern\", got status $status and \"$output\""
    }
}

set select [record SELECT 0]
set set_a [record SET a b]
set multi [record MULTI]

# Writes a manifest with a base and two incremental files.
proc write_parts {base first second} {
    upvar 1 dir dir
    write_bytes $dir/m.manifest "file b.aof seq 1 type b\nfile i1.aof seq 1 type i\nfile i2.aof seq 2 type i\n"
    write_bytes $dir/b.aof $base
    write_bytes $dir/i1.aof $first
    write_bytes $dir/i2.aof $second
}

test {check-aof: a valid file, an empty file, a missing file} {
    write_bytes $dir/a $select$set_a
    expect 0 "Start checking Old-Style AOF\nAOF analyzed: filename=$dir/a, size=50, ok_up_to=50, ok_up_to_line=13, diff=0\nAOF $dir/a is valid" [check_aof "" $dir/a]
    write_bytes $dir/a ""
    expect 0 "*AOF $dir/a is empty" [check_aof "" $dir/a]
    expect 1 "*Cannot open file $dir/none: No such file or directory" [check_aof "" $dir/none]
}

test {check-aof: a file cut at any byte is valid only after complete records, and --fix repairs it} {
    set bytes $select$set_a$multi$set_a[record EXEC]
    set good [list [string length $select] [string length $select$set_a] [string length $bytes]]
    for {set len 1} {$len <= [string length $bytes]} {incr len} {
        write_bytes $dir/a [string range $bytes 0 $len-1]
        if {$len in $good} {
            expect 0 "*is valid" [check_aof "" $dir/a]
            continue
        }
        expect 1 "*is not valid. Use the --fix option to try fixing it." [check_aof "" $dir/a]
        expect 1 "*Continue? \\\[y/N\\\]: Aborting..." [check_aof "n\n" --fix $dir/a]
        assert_equal $len [file size $dir/a]
        set best 0
        foreach g $good {if {$g < $len} {set best $g}}
        expect 0 "*This will shrink the AOF $dir/a from $len bytes, with [expr {$len - $best}] bytes, to $best bytes\n*Successfully truncated*" [check_aof "y\n" --fix $dir/a]
        assert_equal $best [file size $dir/a]
    }
}

test {check-aof: the cause and its place are named} {
    foreach {bytes pattern} {
        "+OK\r\n" "*0x               0: Expected prefix '\\*', got: '+'\n*format error*ok_up_to=0,*"
        "*1\r\n+3\r\nabc\r\n" "*0x               4: Expected prefix '$', got: '+'\n*"
        "*1\r\n$3\r\nabcxx" "*0x               b: Expected \\\\r\\\\n, got: 7878\n*"
        "*1\r\n$-6\r\nabc" "*Expected to read string of -6 bytes, which is not in the suitable range\n*"
        "*1\r\n$3\r\nab" "*Expected to read *"
        "*1\r\n$4\r\nEXEC\r\n" "*0x               0: Unexpected EXEC in AOF *ok_up_to=0,*"
        "*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nMULTI\r\n" "*0x               0: Unexpected MULTI in AOF *ok_up_to=0,*"
        "*1\r\n$5\r\nMULTI\r\n" "*Reached EOF before reading EXEC for MULTI\n*"
    } {
        write_bytes $dir/a [subst -nocommands -novariables $bytes]
        expect 1 $pattern [check_aof "" $dir/a]
    }
}

test {check-aof: the files of a manifest} {
    write_parts $select$set_a $set_a $set_a
    expect 0 "Start checking Multi Part AOF\nStart to check BASE AOF (RESP format).\n*BASE AOF b.aof is valid\nStart to check INCR files.\n*INCR AOF i1.aof is valid\n*INCR AOF i2.aof is valid\nAll AOF files and manifest are valid" [check_aof "" $dir/m.manifest]
    write_parts $select$set_a ${set_a}x $set_a
    expect 1 "*AOF i1.aof is not valid. Use the --fix option to try fixing it." [check_aof "" $dir/m.manifest]
    expect 1 "*Failed to truncate AOF i1.aof because it is not the last file" [check_aof "y\n" --fix $dir/m.manifest]
    write_parts $select$set_a $set_a ${set_a}x
    expect 0 "*Successfully truncated AOF i2.aof\nAll AOF files and manifest are valid" [check_aof "y\n" --fix $dir/m.manifest]
    assert_equal [string length $set_a] [file size $dir/i2.aof]
    file delete $dir/i1.aof
    expect 1 "*Cannot open file *i1.aof: No such file or directory" [check_aof "" $dir/m.manifest]
    write_bytes $dir/m.manifest "file x\n"
    expect 1 "*FATAL AOF MANIFEST FILE ERROR*at line 1\n>>> \"file x\"\nInvalid AOF manifest file format" [check_aof "" $dir/m.manifest]
}

test {check-aof: cutting at a time} {
    set timed "#TS:100\r\n$select#TS:200\r\n$set_a"
    write_bytes $dir/a $timed
    expect 0 "*Truncate nothing in AOF $dir/a to timestamp 200\n*" [check_aof "" --truncate-to-timestamp 200 $dir/a]
    expect 0 "*Successfully truncated AOF $dir/a to timestamp 150" [check_aof "" --truncate-to-timestamp 150 $dir/a]
    assert_equal [string length "#TS:100\r\n$select"] [file size $dir/a]
    expect 1 "*AOF $dir/a has nothing before timestamp 50, aborting..." [check_aof "" --truncate-to-timestamp 50 $dir/a]
    expect 1 "Invalid timestamp, aborting..." [check_aof "" --truncate-to-timestamp x $dir/a]
    write_bytes $dir/a "$select$multi#TS:200\r\n$set_a[record EXEC]"
    expect 0 "*Successfully truncated*" [check_aof "" --truncate-to-timestamp 150 $dir/a]
    assert_equal [string length $select] [file size $dir/a]
    write_parts $select $timed $set_a
    expect 1 "*Failed to truncate AOF i1.aof to timestamp 150 to offset 32 because it is not the last file.*" [check_aof "" --truncate-to-timestamp 150 $dir/m.manifest]
}

test {check-aof: usage, version, long paths} {
    foreach arguments {{} {--fix} {x y} {--bogus x}} {
        lassign [check_aof "" {*}$arguments] status output
        assert_equal 1 $status
    }
    assert_match {1 {Usage: *valkey-check-aof *--fix*}} [check_aof ""]
    assert_match {0 {valkey-check-aof v=*}} [check_aof "" --version]
    assert_match {0 {Usage: *}} [check_aof "" -h]
    assert_equal {1 {The path is longer than 4095 bytes.}} [check_aof "" [string repeat x 8000]]
}

start_server {tags {rdb aof tools}} {
    test {check-aof: a base in RDB format, alone and before records} {
        fill_all_types
        r save
        set rdb [read_bytes [srv dir]/dump.rdb]
        write_parts $rdb $select$set_a $set_a
        expect 0 "*Start to check BASE AOF (RDB format).\n*RDB preamble is OK, proceeding with AOF tail...\n*BASE AOF b.aof is valid\n*All AOF files and manifest are valid" [check_aof "" $dir/m.manifest]
        write_bytes $dir/a $rdb$select$set_a
        expect 0 "Start checking Old-Style AOF\n*RDB preamble is OK, proceeding with AOF tail...\n*ok_up_to=[string length $rdb$select$set_a],*is valid" [check_aof "" $dir/a]
        write_bytes $dir/a $rdb$select[string range $set_a 0 9]
        expect 0 "*Successfully truncated*" [check_aof "y\n" --fix $dir/a]
        assert_equal [string length $rdb$select] [file size $dir/a]
        write_bytes $dir/a [string range $rdb 0 99]
        expect 1 "*--- RDB ERROR DETECTED ---\n*RDB preamble of AOF file is not sane, aborting." [check_aof "y\n" --fix $dir/a]
        assert_equal 100 [file size $dir/a]
    }
}

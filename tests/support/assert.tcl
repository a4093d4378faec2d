# SPDX-License-Identifier: BSD-3-Clause
#
# What a test may demand. Each failure says what was expected and what came; `test` adds where.

proc fail {message} {
    return -code error -errorcode {TEST FAILED} $message
}

# Long values are shown by their ends.
proc shown {value} {
    if {[string length $value] <= 400} {return "'$value'"}
    return "'[string range $value 0 199]...[string range $value end-99 end]' ([string length $value] bytes)"
}

proc assert {condition {detail {}}} {
    if {![uplevel 1 [list expr $condition]]} {
        fail "expected true: $condition[expr {$detail eq "" ? "" : ": $detail"}]"
    }
}

proc assert_equal {expected value {detail {}}} {
    if {$expected ne $value} {fail "expected [shown $expected], got [shown $value] $detail"}
}

proc assert_not_equal {unwanted value {detail {}}} {
    if {$unwanted eq $value} {fail "expected anything but [shown $value] $detail"}
}

proc assert_match {pattern value {detail {}}} {
    if {![string match $pattern $value]} {fail "expected a match of '$pattern', got [shown $value] $detail"}
}

proc assert_range {value low high {detail {}}} {
    if {$value < $low || $value > $high} {fail "expected $low..$high, got [shown $value] $detail"}
}

# `code` must fail with a message that matches the pattern.
proc assert_error {pattern code} {
    if {![catch {uplevel 1 $code} result options]} {fail "expected an error '$pattern', got [shown $result]"}
    if {[lrange [dict get $options -errorcode] 0 1] eq {RESP EOF} && ![string match $pattern $result]} {
        return -options $options $result
    }
    if {![string match $pattern $result]} {fail "expected an error '$pattern', got the error [shown $result]"}
}

# True for builds with sanitizers: they need more address space than any limit, which must not be tested with them.
proc is_sanitized {} {return [regexp {asan|tsan|hostile} $::binary]}

# wait_for_condition tries delay_ms {condition} else {code}: asks until true, soon at first, then every delay_ms. It gives
# up after four times the time that so many tries need, as the processors are shared with other tests.
proc wait_for_condition {tries delay condition {else else} {otherwise {}}} {
    set end [expr {[clock milliseconds] + 4 * $tries * $delay}]
    set pause 1
    for {set i 0} {$i < $tries || [clock milliseconds] < $end} {incr i} {
        if {[uplevel 1 [list expr $condition]]} return
        after [expr {min($pause, $delay)}]
        set pause [expr {2 * $pause}]
    }
    if {$otherwise eq ""} {fail "not in $tries tries of $delay ms: $condition"}
    uplevel 1 $otherwise
}

# The value of one field of INFO, of the current server or of another client.
proc info_field {field {client r}} {
    foreach line [split [$client info everything] "\n"] {
        set line [string trimright $line "\r"]
        if {[string match "$field:*" $line]} {return [string range $line [string length $field]+1 end]}
    }
    return
}

# Waits until a field of INFO has this value.
proc info_is {field value} {
    wait_for_condition 300 50 {[info_field $field] eq $value} else {
        fail "INFO $field is [info_field $field] and not $value"
    }
}

# Random numbers whose seed is printed when the file fails; --seed repeats them.
proc random_below {limit} {
    return [expr {int(rand() * $limit)}]
}

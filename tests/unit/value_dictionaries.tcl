# SPDX-License-Identifier: BSD-3-Clause
#
# Dictionaries of compressed values: trained by the server from the values, shown by INFO, given up with their values.

source $::tests_dir/support/metrics.tcl
source $::tests_dir/support/frames.tcl

proc session {i} {
    return "{\"id\":\"[format %08x [expr {($i * 2654435761) & 0xffffffff}]]\",\"user\":$i,\"language\":\"en\",\"device\":\"phone\",\
        \"roles\":\[\"customer\",\"editor\"\],\"seen\":\"front page of the shop\",\"cart\":\[\],\"tracking\":false,\"country\":\"none\"}"
}

proc fill {prefix count} {
    for {set i 0} {$i < $count} {incr i} {
        lappend batch $prefix$i [session $i]
        if {[llength $batch] >= 1000} {
            r mset {*}$batch
            set batch {}
        }
    }
    if {[llength $batch]} {r mset {*}$batch}
}

proc field {section name} {
    assert {[regexp "\n$name:(\[^\r\]*)\r" [r info $section] - value]}
    return $value
}

start_server {tags {value-dictionaries with:zstd} overrides {save ""}} {
    r config set value-compression idle value-compression-idle-seconds 1 value-compression-cpu 50
    test {no dictionary is trained for few keys} {
        assert_equal 0 [field memory value_dictionaries]
        assert_equal 0 [field stats value_dictionaries_trained]
    }

    test {dictionaries take at most a sixteenth of maxmemory} {
        fill sess: 5000
        r config set maxmemory 2mb
        wait_for_condition 600 100 {[field stats value_dictionaries_without_memory] > 0} else {fail [r info stats]}
        assert_equal 0 [field memory value_dictionaries]
        r config set maxmemory 0
    }

    test {a class of keys gets a dictionary, and its values are compressed and still the same} {
        r select 3
        fill other: 200
        r select 0
        set before [r memory usage sess:77]
        wait_for_condition 600 100 {[field memory compressed_values] >= 5000} else {
            fail "[field memory compressed_values] values are compressed: [r info memory] [r info stats]"
        }
        assert_match "db=0,keys=sess:*,current=yes,values=5000,ratio=0.*,recent_ratio=0.*,bytes=*" [field memory value_dictionary_0]
        assert_equal 1 [field memory value_dictionaries]
        assert {[field memory value_dictionaries_bytes] > 50000}
        assert_equal 1 [field stats value_dictionaries_accepted]
        assert {[field stats value_dictionary_rounds] >= 1}
        assert {[r memory usage sess:78] < $before / 2}
        foreach i {0 77 4999} {assert_equal [session $i] [r get sess:$i]}
    }

    test {new values of the class are compressed with its dictionary} {
        r set sess:new [session 123456]
        wait_for_condition 600 100 {[r memory usage sess:new] < 200} else {fail "sess:new is not compressed"}
        assert_equal [session 123456] [r get sess:new]
    }

    test {SWAPDB takes the classes along} {
        r swapdb 0 8
        assert_match "db=8,keys=sess:*" [field memory value_dictionary_0]
        r swapdb 0 8
        assert_match "db=0,keys=sess:*" [field memory value_dictionary_0]
    }

    test {memory of dictionaries is overhead, and a limit of it refuses more} {
        assert {[field memory used_memory_overhead] > [field memory value_dictionaries_bytes]}
        r config set value-compression-dict-memory 1mb
        assert_error "*must be between*" {r config set value-compression-dict-memory 1}
        r config set value-compression-dict-memory 32mb
    }

    test {FLUSHALL leaves no values of a dictionary} {
        r flushall
        wait_for_condition 600 50 {[string match "*,values=0,*" [field memory value_dictionary_0]]} else {
            fail [field memory value_dictionary_0]
        }
        assert_equal 0 [field memory compressed_values]
    }
}

start_server {tags {value-dictionaries metrics with:zstd tls:skip needs:config} overrides {save "" enable-debug-command yes}} {
    test {metrics have a sample for each dictionary, without the prefix of its keys if there is a password} {
        set number [r debug value-dictionary sess: [session 7]]
        r set sess:1 [session 1]
        assert_equal 1 [r debug compress sess:1]
        set newer [r debug value-dictionary sess: [session 8]]
        open_metrics
        foreach {password keys} {"" {keys="sess:*",} secret ""} {
            r config set requirepass $password
            set text [lindex [http_get /metrics] 2]
            foreach {name old new} {values 1 0 ratio 0.* 1.000 recent_ratio 0.* 1.000 bytes * *} {
                set lines "*\n# TYPE redis_value_dictionary_$name gauge"
                foreach id [list $number $newer] value [list $old $new] {
                    append lines "\nredis_value_dictionary_$name{db=\"0\",[string map {* \\*} $keys]dictionary=\"$id\"} $value"
                }
                assert_match "$lines\n*" $text
            }
            assert_equal [expr {$password eq ""}] [string match *sess:* $text]
        }
        r config set requirepass ""
    }
}

if {"zstd" ni [built_codecs]} {
    start_server {tags {value-dictionaries needs:config} overrides {save "" enable-debug-command yes}} {
        test {without Zstandard there are no dictionaries} {
            assert_error "*Zstandard compression is not available in this build*" {r debug value-dictionary sess: [session 7]}
            assert_equal 0 [field memory value_dictionaries]
        }
    }
}

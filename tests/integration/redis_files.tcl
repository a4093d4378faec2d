# SPDX-License-Identifier: BSD-3-Clause
#
# Files, payloads and full synchronisations of Redis 7.4 to 8.10: what real servers of versions 7.4.1, 8.0.6, 8.6.3
# and 8.8 have written, and, for 8.10, what its documentation describes. Values without a type here: foreign-values.

source $::tests_dir/support/primary.tcl

set ::id [string repeat c 40]

# Bytes after the type byte of each kind of value, as hex.
set times "00d8c32cbb03000003000163c003538901620374776f010161c001"
set triples "00d8c32cbb0300002f2f00000009008161020101f400d8c32cbb030000098162028374776f04f488ebc32cbb0300000981630203010001ff"
set stale "00d8c32cbb0300001f1f000000090081630203010001816102010100018162028374776f040001ff"
set named "00121200000002008361676504846e616d6505ff1111000000030000012a0184416e6e6105ff"
set named_apart "010203616765046e616d651111000000030000012a0184416e6e6105ff"
set values "00121200000002008361676504846e616d6505ffc02a04416e6e61"
# XADD s 1-1 a b; XADD s 2-0 a c; XGROUP CREATE s g 0; XREADGROUP GROUP g u COUNT 2 STREAMS s >
set stream86 "01100000000000000001000000000000000129290000000f000201000101018161020001020100010001816202040102010101dfff028163020401ff020200010100000201016702000202000000000000000100000000000000015ee0bc23a201000001000000000000000200000000000000005ee0bc23a2010000010101755ee0bc23a20100005ee0bc23a201000002000000000000000100000000000000010000000000000002000000000000000040644064000000"
# The same, and XNACK s g FAIL IDS 1 2-0
set stream88 "01100000000000000001000000000000000129290000000f000201000101018161020001020100010001816202040102010101dfff028163020401ff02020001010000020101670200020200000000000000010000000000000001d0e0bc23a20100000100000000000000020000000000000000000000000000000001010175d0e0bc23a2010000d0e0bc23a20100000100000000000000010000000000000001010000000000000002000000000000000040644064000000"
# Entries 1-0 to 6-0 with field n; five of them were read by u; XNACK s g FAIL IDS 2 2-0 3-0; XNACK s g SILENT IDS 1 4-0
set nacked88 "011000000000000000010000000000000000c34043404e114e0000002300060100010101816e02000102200a400c00042009000120090002600940150003600900032013000420014017020001056009000520090006200900ff060600010000000601016705000505000000000000000100000000000000008786bc23a201000001000000000000000200000000000000000000000000000000010000000000000003000000000000000000000000000000000100000000000000040000000000000000000000000000000000000000000000000500000000000000008786bc23a2010000010101758786bc23a20100008786bc23a20100000200000000000000010000000000000000000000000000000500000000000000000300000000000000020000000000000000000000000000000300000000000000000000000000000004000000000000000040644064000000"
# XADD s 1-1 a b; XCFGSET s IDMP-DURATION 300 IDMP-MAXSIZE 50; XADD s IDMP producer iid-1 * a b
set produced "01100000000000000001000000000000000131310000000f00020100010101816102000102010001000181620204010201f495e0bc23a201000009dfff028162020401ff0281000001a223bce09600010100000200412c32010870726f647563657201056969642d3181000001a223bce096000101"
set vectors "81bde72da2bb1eb4000202020202500102010502653105010100"
set array "0201010003017801030179"

proc bytes {hex} {binary format H* $hex}
proc text {value} {return [format %c [string length $value]]$value}

# A file: records are "type key hex-of-the-value", or bytes.
proc redis_file {version args} {
    set file REDIS[format %04d $version]
    append file "\xfa[text redis-ver][text 8.0.0]\xfe\x00"
    foreach record $args {
        if {[llength $record] == 3} {
            lassign $record type key hex
            append file [format %c $type][text $key][bytes $hex]
        } else {
            append file [bytes $record]
        }
    }
    return "$file\xff[string repeat \x00 8]"
}

proc starts_with {file} {
    stop_server
    write_bytes [srv dir]/dump.rdb $file
    restart_server
}

# What a server that cannot start has logged.
proc refuses {file} {
    write_bytes [srv dir]/dump.rdb $file
    catch {exec timeout 20 $::binary [srv config] </dev/null 2>@1} said
    return "$said[file_text [srv stdout]]"
}

# The fields of producers in XINFO STREAM.
proc producers_of {key} {
    set info [r xinfo stream $key]
    return [lmap field {idmp-duration idmp-maxsize pids-tracked iids-tracked iids-added iids-duplicates} {dict get $info $field}]
}

start_server {tags {redis-files external:skip} overrides {save {} hide-user-data-from-log no}} {
    set template f2070203616765046e616d65
    test {A file of Redis with every type that its versions have added} {
        starts_with [redis_file 15 $template \
            "24 relative $times" "25 triples $triples" "25 stale $stale" \
            "22 absolute 0281000003bb2cc3d8000161c0010001620374776f" \
            "23 packed 202000000006008161020101f400d8c32cbb030000098162028374776f040001ff" \
            "29 named $named" "29 apart $named_apart" "31 values $values" \
            "30 template 1111000000030007012a0184416e6e6105ff" "32 fields 07c02a04416e6e61" \
            f4010203 f30101000000020500 "0 plain 0178"]
        foreach key {relative triples} {
            assert_equal {1 two 3} [r hmget $key a b c] $key
            assert_equal {4102444800000 4102444805000 -1} [r hpexpiretime $key fields 3 a b c] $key
        }
        foreach key {absolute packed} {
            assert_equal {1 two} [r hmget $key a b] $key
            assert_equal {4102444800000 -1} [r hpexpiretime $key fields 2 a b] $key
        }
        assert_equal {-1 -1 -1} [r hpexpiretime stale fields 3 a b c]
        assert_equal listpack [r object encoding stale]
        foreach key {named apart values template fields} {
            assert_equal {42 Anna} [r hmget $key age name] $key
            assert_equal 2 [r hlen $key] $key
        }
        assert_equal x [r get plain]
        assert_equal 11 [r dbsize]
    }

    test {Fields that have expired are dropped when a file of Redis is loaded} {
        starts_with [redis_file 12 "24 some 0a00000000000000020101610178000162c002" "24 all 0a00000000000000010101610178"]
        assert_equal {{} 2} [r hmget some a b]
        assert_equal 0 [r exists all]
    }

    test {Streams of Redis 8.6 and 8.8 with groups, released entries and ids of producers} {
        starts_with [redis_file 14 "26 s6 $stream86" "27 s8 $stream88" "26 produced $produced"]
        foreach key {s6 s8} {
            assert_equal {{1-1 {a b}} {2-0 {a c}}} [r xrange $key - +]
            assert_equal {2 1-1 2-0} [lrange [r xpending $key g] 0 2]
        }
        assert_equal {{1-1 u} {2-0 u}} [lmap p [r xpending s6 g - + 9] {lrange $p 0 1}]
        # A released entry is the first one that somebody else gets.
        assert_equal {{1-1 u} {2-0 {}}} [lmap p [r xpending s8 g - + 9] {lrange $p 0 1}]
        assert_equal {{2-0 {a c}}} [lindex [r xautoclaim s8 g other 1000000000000 0] 1]
        assert_equal 2 [r xlen produced]
        assert_equal {300 50 0 0 1 1} [producers_of produced]
    }

    test {XNACK counts deliveries as a stream of Redis 8.8 has them: one less if SILENT, else unchanged} {
        starts_with [redis_file 14 "27 theirs $nacked88"]
        for {set i 1} {$i <= 6} {incr i} {r xadd ours $i-0 n $i}
        r xgroup create ours g 0
        r xreadgroup group g u count 5 streams ours >
        assert_equal {2 1} [list [r xnack ours g fail ids 2 2-0 3-0] [r xnack ours g silent ids 1 4-0]]
        foreach key {theirs ours} {
            assert_equal {{1-0 u 1} {2-0 {} 1} {3-0 {} 1} {4-0 {} 0} {5-0 u 1}} \
                [lmap p [r xpending $key g - + 9] {list [lindex $p 0] [lindex $p 1] [lindex $p 3]}]
            assert_equal 3 [dict get [lindex [dict get [r xinfo stream $key full] groups] 0] nacked-count]
        }
    }

    test {Malformed values of Redis are refused, and nothing is loaded} {
        stop_server
        foreach {name record why} {
            "time above the format" "24 k 0000000000000100010101610178" "*Invalid expiry time of a hash field*"
            "sum above the format" "24 k ffffffffffff0000010201610178" "*Invalid expiry time of a hash field*"
            "a field twice" "24 k 00d8c32cbb030000020101610178010161c001" "*Duplicate hash fields detected*"
            "time that is text" "25 k 000000000000000010100000000300816102816202816302ff" "*Invalid expiry time of a hash field*"
            "two items" "25 k 00000000000000000d0d0000000200816102816202ff" "*integrity check failed*"
            "unknown template" "32 k 08c02a04416e6e61" "*Unknown hash template 8*"
            "names not in order" "31 k 010202616201 61 01780179" "*not in order*"
            "no names" "31 k 0100" "*without names*"
            "values missing" "30 k 0b0b00000002000701 2a01ff" "*Hash has 1 values for 2 names*"
            "IDMP duration of 0" "26 k [string range $stream86 0 end-14]00406400 0000" "*Invalid limits*"
            "a type that no version has" "34 k 00" "*Can't handle foreign type or opcode 34 in RDB with version 15*"
        } {
            set record [subst $record]
            set hex [join [lrange $record 2 end] ""]
            set said [refuses [redis_file 15 $template [list [lindex $record 0] [lindex $record 1] $hex]]]
            assert_match $why $said $name
            assert_match "*Fatal error loading the DB*" $said $name
        }
        assert_match "*Duplicate hash template 7*" [refuses [redis_file 15 $template $template]]
        # The version decides: in a file of Valkey there is no type 24.
        assert_match "*Unknown RDB encoding type 24*" [refuses [string map {REDIS0015 VALKEY080} [redis_file 15 "24 k $times"]]]
        assert_match "*Can't handle RDB format version 17 ('rdb-version-check relaxed'*" [refuses [redis_file 17]]
        write_bytes [srv dir]/dump.rdb [redis_file 12]
    }

    set foreign [redis_file 14 "7 v1 $vectors" "28 arr $array" "0 plain 0178" "7 v2 $vectors" f70203020102050178 00 \
        f30100000000020500 "0 tagged 0179" "33 rate 05"]

    test {Values without a type here: all are reported, and the server does not start} {
        set said [refuses $foreign]
        assert_match "*2 keys of type vectorset (* bytes), which this server does not have: \"v1\", \"v2\"*" $said
        assert_match "*1 keys of type array (* bytes), which this server does not have: \"arr\"*" $said
        assert_match "*1 keys of type metadata:AAAA *: \"tagged\"*" $said
        assert_match "*1 keys of type gcra *'foreign-values skip' loads all other keys*Fatal error loading the DB*" $said
        assert_equal $foreign [read_bytes [srv dir]/dump.rdb]
    }

    test {Values without a type here: another failure of the same file is logged} {
        set said [refuses [string range $foreign 0 end-12]]
        assert_match "*Short read or OOM loading DB*Fatal error loading the DB*" $said
        write_bytes [srv dir]/dump.rdb $foreign
    }

    test {Values without a type here: skip loads the rest and says what is missing} {
        write_bytes [srv dir]/dump.rdb [redis_file 12]
        restart_server
        write_bytes [srv dir]/dump.rdb $foreign
        assert_error "ERR Error trying to load the RDB dump, check server logs*" {r debug reload nosave}
        r config set foreign-values skip
        r debug reload nosave
        assert_equal {plain tagged} [lsort [r keys *]]
        assert_equal {x y} [r mget plain tagged]
        assert_equal 5 [info_field foreign_keys_skipped]
        assert_equal "vectorset=2,array=1,metadata:AAAA=1,gcra=1" [info_field foreign_keys_skipped_types]
        assert_match "*These values were skipped (foreign-values skip)*" [server_log]
        assert_equal OK [r config set foreign-values refuse]
        assert_equal refuse [lindex [r config get foreign-values] 1]
    }

    test {RESTORE takes payloads of Redis, and refuses types that are not here} {
        proc payload {type hex version checksum} {
            return [bytes [format %02x $type]$hex][binary format s $version][bytes $checksum]
        }
        r flushall
        # The checksums are those of the servers that have written the payloads.
        r restore h 0 [payload 25 $triples 12 2fb84c43c8e3ada5]
        assert_equal {4102444800000 4102444805000 -1} [r hpexpiretime h fields 3 a b c]
        r restore h 0 [payload 24 $times 12 6a796919c1c08499] replace
        assert_equal {1 two 3} [r hmget h a b c]
        r restore s 0 [payload 26 $stream86 13 fa0d3eb43d674b71]
        assert_equal 2 [r xlen s]
        r restore n 0 [payload 29 $named 15 1dd7776535b03202]
        assert_equal {42 Anna} [r hmget n age name]
        set zero 0000000000000000
        foreach version {13 14 15 16} {r restore n 0 [payload 31 $values $version $zero] replace}
        foreach version {11 12 80} {
            assert_error "ERR DUMP payload version or checksum are wrong" {r restore n 0 [payload 0 0178 $version $zero] replace}
        }
        assert_error "ERR Unsupported foreign data type: 28" {r restore a 0 [payload 28 $array 14 $zero]}
        assert_error "ERR Bad data format" {r restore a 0 [payload 7 $vectors 13 $zero]}
        # Templates exist in files only.
        assert_error "ERR Bad data format" {r restore a 0 [payload 32 07c02a04416e6e61 15 $zero]}
        # Key metadata that may be left out, and that may not.
        assert_equal OK [r restore m 0 "[bytes f30101000000020500]\x00\x01x\x0d\x00[bytes $zero]"]
        assert_equal x [r get m]
        assert_error "ERR Bad data format" {r restore a 0 "[bytes f30100000000020500]\x00\x01x\x0d\x00[bytes $zero]"}
        assert_equal 0 [r exists a]
    }

    test {check-rdb: names what a file of Redis has} {
        set path [srv dir]/other.rdb
        write_bytes $path $foreign
        catch {exec [file dirname $::binary]/valkey-check-rdb $path 2>@1} output
        assert_match "*Foreign RDB version 14 detected*MODULE AUX for: *RDB looks OK! *6 keys read*" $output
        write_bytes $path [redis_file 14 "24 k 0000000000000100010101610178"]
        catch {exec [file dirname $::binary]/valkey-check-rdb $path 2>@1} output
        assert_match "*Invalid expiry time of a hash field*Reading type 24 (hash-hashtable-md)*" $output
    }
}

primary_listen

start_server {tags {repl redis-files tls:skip external:skip} overrides {save {}}} {
    set foreign [redis_file 14 "0 plain 0178" "7 v1 $vectors" "28 arr $array"]
    foreach mode {disabled swapdb} {
        test "A dataset of Redis with values that are not here is refused before own data are removed ($mode)" {
            r config set repl-diskless-load $mode
            r config set foreign-values refuse
            primary_detach
            r set old data
            set c [primary_asked]
            primary_full_sync $c $::id 50 $foreign
            wait_for_condition 400 25 {[info_field master_sync_last_error] eq "foreign values: vectorset=1,array=1"}
            assert_equal data [r get old]
            assert_equal down [info_field master_link_status]
            assert_equal 1 [r dbsize]
            wait_for_condition 400 25 {[string match "*Next try of a synchronization in 60 seconds*" [server_log]]}
        }

        test "With foreign-values skip the rest of such a dataset is loaded ($mode)" {
            r config set foreign-values skip
            primary_detach
            set c [primary_asked]
            primary_full_sync $c $::id 50 $foreign
            primary_wait_ack $c 50
            assert_equal {{} x} [r mget old plain]
            assert_equal 3 [r dbsize] ;# the names of the others are known (skipped_keys.tcl)
            assert_equal 2 [info_field foreign_keys_skipped]
            assert_equal "" [info_field master_sync_last_error]
        }
    }

    test {Entries that Redis adds with ids of producers are added, its duplicates are not} {
        set c [primary_attach $::id 50 {}]
        foreach words {{xadd s IDMP p i1 5-0 a b} {xcfgset s IDMP-DURATION 300 IDMP-MAXSIZE 50} {xadd s IDMP p i1 * a b} {multi}
            {xadd s IDMPAUTO p MAXLEN 9 6-0 c d} {xadd s idmpauto p * c d} {exec} {xidmprecord s p i2 6-0} {set end 1}} {
            primary_send $c {*}$words
        }
        wait_for_condition 400 25 {[r get end] eq 1}
        assert_equal {{5-0 {a b}} {6-0 {c d}}} [r xrange s - +]
        # Ids of entries of 1970 have expired.
        assert_equal {300 50 0 0 3 2} [producers_of s]
        assert {![string match "*== CRITICAL ==*" [server_log]]}
        # The append only file has what each server knows.
        r config set appendonly yes
        wait_for_condition 400 25 {[info_field aof_rewrite_in_progress] == 0 && [info_field aof_rewrite_scheduled] == 0}
        primary_send $c xadd s IDMP p i3 7-0 e f
        primary_send $c xadd s IDMP p i3 * e f
        wait_for_condition 400 25 {[r xlen s] == 3}
        r config set appendonly no
        set file [read_bytes [lindex [glob [srv dir]/appendonlydir/*.incr.aof] 0]]
        assert_match "*xadd*7-0*" $file
        assert_match "*XACK*\x00idmp*p\r\n*i3*7-0*" $file
        assert {![string match -nocase "*idmp p*" [string map {\r\n " "} $file]]}
    }

    test {A replica of Redis refuses duplicates after its promotion, by the stream and by the dataset} {
        # 30 and 20 minutes from now, so that ids do not expire.
        set first [expr {[clock milliseconds] + 1800000}]-0
        set second [expr {[clock milliseconds] + 1200000}]-0
        set c [primary_attach $::id 50 {}]
        primary_send $c del s t
        primary_send $c xadd s IDMP p i1 $first a b
        primary_send $c xadd s IDMP p i1 * a b
        primary_send $c xadd t IDMPAUTO p $second a b c d
        primary_send $c xcfgset t IDMP-DURATION 100
        primary_send $c set end 2
        wait_for_condition 400 25 {[r get end] eq 2}
        r replicaof no one
        assert_equal $first [r xadd s IDMP p i1 * a b]
        assert_equal $second [r xadd t IDMPAUTO p * c d a b]
        assert_equal {1 1} [list [r xlen s] [r xlen t]]
        assert_equal {100 100 1 1 1 2} [producers_of s]
        # The form of Redis in a payload, and what comes back.
        assert_match "*stream-idmp*" [r dump s]
        assert_equal OK [r restore u 0 [r dump s]]
        assert_equal $first [r xadd u IDMP p i1 * a b]
    }

    test {XTRIM and XADD with ACKED of a primary do not raise the highest deleted id, as in Redis} {
        set c [primary_attach $::id 50 {}]
        primary_send $c del s
        foreach id {1-0 2-0 3-0 4-0} {primary_send $c xadd s $id a b}
        foreach words {{xgroup create s g 0} {xgroup setid s g 3-0} {xclaim s g u 0 1-0 TIME 1 RETRYCOUNT 1 FORCE JUSTID LASTID 3-0}
            {xtrim s MAXLEN 3 ACKED} {xadd s ACKED MAXLEN = 3 5-0 a b} {set end 3}} {
            primary_send $c {*}$words
        }
        wait_for_condition 400 25 {[r get end] eq 3}
        assert_equal {1-0 4-0 5-0} [lmap entry [r xrange s - +] {lindex $entry 0}]
        assert_equal {0-0 5} [list [dict get [r xinfo stream s] max-deleted-entry-id] [dict get [r xinfo stream s] entries-added]]
    }

    test {With foreign-values skip commands of types that are not here are skipped, also in transactions} {
        set c [primary_attach $::id 50 {}]
        foreach words {{vadd v values 2 1 2 e} {set a 1} multi {json.set j $ 1} {set b 2} exec {ts.add t 1 1}} {
            primary_send $c {*}$words
        }
        wait_for_condition 400 25 {[r mget a b] eq {1 2}}
        assert_equal 3 [info_field foreign_commands_skipped]
        assert {![string match "*== CRITICAL ==*" [server_log]]}
        assert_error "ERR unknown command*" {r vadd v values 2 1 2 e}
    }
}

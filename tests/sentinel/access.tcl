# SPDX-License-Identifier: BSD-3-Clause
#
# Sentinels and servers with passwords and users; scripts that are told of events.

start_watched {1 2 {overrides {requirepass secret masterauth secret} sentinel {requirepass watch} set {auth-pass secret}}} {
    set first [sentinel_first]

    test {with passwords everywhere all is found, and a failover works} {
        set new [srv -1 port]
        assert_equal OK [r -$first sentinel failover mym]
        sentinel_wait_primary $new
        wait_for_condition 400 50 {[watched_role 0] eq [list slave 127.0.0.1 $new connected]} else {fail "no replica"}
        sentinel_wait_known
    }

    test {a user with the least rights is enough} {
        foreach i {0 1} {
            r -$i acl setuser watcher on >other allchannels +subscribe +publish +failover +script|kill +ping +info +multi \
                +slaveof +config +client +exec
        }
        foreach i [sentinels] {r -$i sentinel set mym auth-user watcher auth-pass other}
        sentinel_wait_known
        foreach i {0 1} {
            wait_for_condition 400 50 {[string match *user=watcher* [r -$i client list]]} else {fail "nobody uses it"}
        }
        set new [srv port]
        assert_equal OK [r -$first sentinel failover mym]
        sentinel_wait_primary $new
    }

    test {a wrong password makes the primary be down, and disconnected before that} {
        set refused {mym replies to SUBSCRIBE: NO(AUTH|PERM)}
        set before [regexp -all $refused [server_log -$first]]
        r -$first sentinel set mym auth-pass wrong
        wait_for_condition 400 50 {[string match *disconnected* [sentinel_field $first flags]]} else {fail "it is connected"}
        wait_for_condition 400 50 {[string match s_down,* [sentinel_field $first flags]]} else {fail "it is not down"}
        r -$first sentinel set mym auth-pass other
        wait_for_condition 400 50 {[sentinel_field $first flags] eq "master"} else {fail "it is down still"}
        assert {![string match *other* [server_log -$first]]}
        assert_equal [expr {$before + 1}] [regexp -all $refused [server_log -$first]]
        wait_for_condition 400 50 {[sentinel_field $first flags] eq "master"}
    }
}

start_watched {1 1 {quorum 1 sentinel {{sentinel deny-scripts-reconfig} no}}} {
    set first [sentinel_first]

    test {scripts get the events in their order, and the addresses of a failover} {
        set told [srv -$first dir]/told
        set script [srv -$first dir]/script.sh
        write_bytes $script "#!/bin/sh\necho \"\$*\" >> $told\n"
        file attributes $script -permissions 0755
        assert_error "ERR Notification script seems non existing*" {
            r -$::watched_servers sentinel set mym notification-script /no/such/file
        }
        r -$first sentinel set mym notification-script $script
        r -$first sentinel set mym client-reconfig-script $script
        set old [srv port]
        set new [srv -1 port]
        assert_equal OK [r -$first sentinel failover mym]
        wait_for_condition 800 50 {[file exists $told] && [string match *+switch-master* [file_text $told]]} else {
            fail "the script was not told"
        }
        set names [lmap line [split [string trim [file_text $told]] \n] {lindex $line 0}]
        set at -1
        foreach name {+new-epoch +try-failover +elected-leader +selected-slave +promoted-slave mym +failover-end +switch-master} {
            set next [lsearch $names $name]
            if {$next <= $at} {fail "$name is not after the events before it: $names"}
            set at $next
        }
        assert_match "*mym leader start 127.0.0.1 $old 127.0.0.1 $new\n*" [file_text $told]
        wait_for_condition 400 50 {[r -$first sentinel pending-scripts] eq {}} else {fail "scripts are pending"}
    }

    test {a script that fails is reported, one that asks for it is tried again} {
        set script [srv -$first dir]/fails.sh
        write_bytes $script "#!/bin/sh\nexit 3\n"
        file attributes $script -permissions 0755
        r -$first sentinel set mym notification-script $script
        r -$first sentinel set mym quorum 1
        wait_for_condition 400 50 {[string match "*-script-error $script 0 3*" [server_log -$first]]} else {fail "not reported"}
        write_bytes $script "#!/bin/sh\nexit 1\n"
        r -$first sentinel set mym quorum 1
        wait_for_condition 400 50 {[string match "*flags scheduled pid 0 run-delay *" [r -$first sentinel pending-scripts]]} else {
            fail "not scheduled"
        }
    }
}

# SPDX-License-Identifier: BSD-3-Clause
#
# SENTINEL's subcommands: what they reply, what they refuse, and what is left of them after a restart.

start_watched {1 2} {
    set first [sentinel_first]

    test {subcommands refuse what is wrong in the words of the released program} {
        foreach {command error} {
            {primary nobody} {ERR No such master with that name}
            {replicas nobody} {ERR No such master with that name}
            {ckquorum nobody} {ERR No such master with that name}
            {nonsense} {ERR unknown subcommand 'nonsense'. Try SENTINEL HELP.}
            {master} {ERR wrong number of arguments for 'sentinel|master' command}
            {monitor m 127.0.0.1 x 2} {ERR Invalid port}
            {monitor m 127.0.0.1 1 x} {ERR Invalid quorum}
            {monitor m 127.0.0.1 1 0} {ERR Quorum must be 1 or greater.}
            {monitor m no.such.host. 1 1} {ERR Invalid IP address or hostname specified}
            {monitor m 127.0.0.1 70000 1} {ERR Invalid port number.}
            {monitor mym 127.0.0.1 1 1} {ERR Duplicate master name.}
            {set mym quorum 0} {ERR Invalid argument '0' for SENTINEL SET 'quorum'}
            {set mym nonsense 1} {ERR Unknown option or number of arguments for SENTINEL SET 'nonsense'}
            {set mym notification-script /bin/true} {ERR Reconfiguration of scripts path is denied*}
            {config set announce-port 70000} {ERR Invalid value '70000' to SENTINEL CONFIG SET 'announce-port'}
            {config set nonsense 1} {ERR Invalid argument 'nonsense' to SENTINEL CONFIG SET}
            {config set announce-ip 1 announce-ip 2} {ERR Duplicate argument 'announce-ip' to SENTINEL CONFIG SET}
            {config set announce-ip 1 announce-port} {ERR Missing argument 'announce-port' value}
            {config set announce-ip} {ERR Only SENTINEL CONFIG GET *}
            {debug info-period 0} {ERR Invalid argument '0' for SENTINEL DEBUG 'info-period'}
            {debug zz 1} {ERR Unknown option or number of arguments for SENTINEL DEBUG 'zz'}
            {simulate-failure nonsense} {ERR Unknown failure simulation specified}
            {is-primary-down-by-addr 127.0.0.1 x 1 *} {ERR value is not an integer or out of range}
        } {
            assert_error $error {r -$::watched_servers sentinel {*}$command}
        }
        assert_error "ERR Invalid argument at index 2 for SENTINEL MONITOR: control characters are not allowed" {
            r -$first sentinel monitor "a\nb" 127.0.0.1 1 1
        }
        assert_error "ERR Only HELLO messages are accepted by Sentinel instances." {r -$first publish other text}
    }

    test {SET changes all options, or none} {
        set before [r -$first sentinel primary mym]
        foreach {options error} {
            {quorum 7 parallel-syncs 3 nonsense 1} {ERR Unknown option or number of arguments for SENTINEL SET 'nonsense'}
            {quorum 7 down-after-milliseconds 0} {ERR Invalid argument '0' for SENTINEL SET 'down-after-milliseconds'}
            {quorum 7 failover-timeout 9223372036854775807} {ERR Invalid argument '9223372036854775807' for SENTINEL SET *}
            {auth-pass other notification-script /bin/true} {ERR Reconfiguration of scripts path is denied*}
            {rename-command PING PONG rename-command GET ""} {ERR Invalid argument '' for SENTINEL SET 'rename-command'}
        } {
            assert_error $error {r -$::watched_servers sentinel set mym {*}$options}
        }
        foreach name {quorum parallel-syncs down-after-milliseconds} {
            assert_equal [dict get $before $name] [sentinel_field $first $name]
        }
        assert {![string match {*auth-pass*} [file_text [srv -$first config]]]}
        assert {![string match {*rename-command*} [file_text [srv -$first config]]]}
        assert {![string match {*+set * quorum 7*} [server_log -$first]]}
    }

    test {QUIT and RESET are known, and CLIENT HELP has what there is} {
        assert_equal RESET [r -$first reset]
        set help [r -$first client help]
        assert {"NO-EVICT (ON|OFF)" in $help}
        assert {"NO-TOUCH (ON|OFF)" ni $help}
        assert {![string match "*LRU/LFU*" $help]}
        assert {"NO-TOUCH (ON|OFF)" in [r client help]}
        assert_equal OK [r -$first quit]
        drop_clients
    }

    test {addresses, ids and quorums are told} {
        assert_equal [list 127.0.0.1 [srv port]] [r -$first sentinel get-master-addr-by-name mym]
        assert_equal {} [r -$first sentinel get-primary-addr-by-name nobody]
        assert_equal 40 [string length [r -$first sentinel myid]]
        assert_equal "OK 2 usable Sentinels. Quorum and failover authorization can be reached" [r -$first sentinel ckquorum mym]
        r -$first sentinel set mym quorum 5
        assert_error "NOQUORUM 2 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this master" {
            r -$first sentinel ckquorum mym
        }
        r -$first sentinel set mym quorum 2
        assert_equal {sentinel mym} [r -$first role]
        assert_match "*master0:name=mym,status=ok,address=127.0.0.1:[srv port],slaves=1,sentinels=2*" [r -$first info sentinel]
    }

    test {votes are given once in an epoch, to known Sentinels, and in epochs that can be} {
        set own [r -$first sentinel myid]
        set other [r -[expr {$first + 1}] sentinel myid]
        set ask [list sentinel is-primary-down-by-addr 127.0.0.1 [srv port]]
        assert_equal {0 * 0} [r -$first {*}$ask 50 *]
        assert_equal [list 0 $own 50] [r -$first {*}$ask 50 $own]
        assert_equal [list 0 $own 50] [r -$first {*}$ask 50 $other]
        assert_equal [list 0 $own 50] [r -$first {*}$ask 51 [string repeat a 40]]
        assert_equal [list 0 $own 50] [r -$first {*}$ask -1 $other]
        assert_equal [list 0 $own 50] [r -$first {*}$ask 9223372036854775807 $other]
        assert_equal [list 0 $other 51] [r -$first {*}$ask 51 $other]
    }

    test {the state after a restart is the one before} {
        r -$first sentinel monitor {a "b' # c} 127.0.0.1 1 3
        r -$first sentinel set {a "b' # c} auth-pass "my\"pass\\word with spaces" down-after-milliseconds 3000000000 \
            rename-command PING "P NG"
        r -$first sentinel monitor gone 127.0.0.1 2 1
        r -$first sentinel remove gone
        r -$first sentinel config set announce-ip 127.0.0.1 sentinel-user u
        set id [r -$first sentinel myid]
        with_node $first {stop_server; continue_server}
        assert_equal $id [r -$first sentinel myid]
        assert_equal {a "b' # c} [sentinel_field $first name {a "b' # c}]
        assert_equal 3000000000 [sentinel_field $first down-after-milliseconds {a "b' # c}]
        assert_equal 3 [sentinel_field $first quorum {a "b' # c}]
        assert_equal {announce-ip 127.0.0.1 sentinel-user u} \
            [lrange [concat [r -$first sentinel config get announce-ip sentinel-user]] 0 end]
        assert_error "ERR No such master with that name" {r -$first sentinel primary gone}
        assert_equal 1 [sentinel_field $first num-slaves]
        assert_equal 1 [sentinel_field $first num-other-sentinels]
        assert_match {*auth-pass "a \\"b' # c" "my\\"pass\\\\word with spaces"*} [file_text [srv -$first config]]
        r -$first sentinel config set announce-ip "" sentinel-user ""
        r -$first sentinel remove {a "b' # c}
    }

    test {RESET forgets replicas and Sentinels, which are found again} {
        assert_equal 1 [r -$first sentinel reset m*]
        assert_equal 0 [r -$first sentinel reset nobody]
        sentinel_wait_known
    }
}

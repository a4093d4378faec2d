# SPDX-License-Identifier: BSD-3-Clause
#
# ACL LOG and the counters of refusals.

proc newest_entry {} {return [lindex [r acl log 1] 0]}

start_server {tags {acl}} {
    test {an entry names reason, context, object, user and client} {
        r acl setuser u reset on nopass +@all -config|set -flushdb ~a
        set c [connect]
        $c auth u x
        set me [$c client id]
        catch {$c get b}
        set e [newest_entry]
        set fields {count reason context object username age-seconds client-info entry-id timestamp-created timestamp-last-updated}
        assert_equal $fields [dict keys $e]
        assert_equal {1 key toplevel b u} [lmap f {count reason context object username} {dict get $e $f}]
        assert_match "id=$me *cmd=get *user=u*" [dict get $e client-info]
        assert {[dict get $e age-seconds] >= 0}
        catch {$c config set maxmemory 1}
        assert_equal {command config|set} [lmap f {reason object} {dict get [newest_entry] $f}]
        $c multi
        catch {$c get b}
        assert_equal {key multi b} [lmap f {reason context object} {dict get [newest_entry] $f}]
        $c discard
        catch {$c auth u2 wrong}
        assert_equal {auth toplevel auth u2} [lmap f {reason context object username} {dict get [newest_entry] $f}]
        r acl setuser u db=3
        catch {$c get a}
        assert_equal {database get} [lmap f {reason object} {dict get [newest_entry] $f}]
        catch {$c move a 2}
        assert_equal {database 2} [lmap f {reason object} {dict get [newest_entry] $f}]
        catch {$c copy a b db 3 replace db 4}
        assert_equal {database 4} [lmap f {reason object} {dict get [newest_entry] $f}]
    }

    test {equal refusals are one entry, which moves to the front} {
        r acl log reset
        r acl setuser u reset on nopass +@all ~a
        set c [connect]
        $c auth u x
        for {set i 0} {$i < 11} {incr i} {catch {$c get b}}
        assert_equal 1 [llength [r acl log]]
        assert_equal 11 [dict get [newest_entry] count]
        set id [dict get [newest_entry] entry-id]
        catch {$c get c}
        assert_equal [expr {$id + 1}] [dict get [newest_entry] entry-id]
        catch {$c get b}
        assert_equal "$id 12" [lmap f {entry-id count} {dict get [newest_entry] $f}]
        assert_equal 2 [llength [r acl log]]
    }

    test {what is no violation of rules is not logged} {
        r acl log reset
        set c [connect]
        catch {$c nope}
        catch {$c get}
        r acl dryrun default get a
        assert_equal {} [r acl log]
        assert_error "ERR value is not an integer*" {r acl log x}
        assert_equal {} [r acl log -1]
    }

    test {acllog-max-len limits the log when an entry is added; 0 keeps none} {
        r acl log reset
        r acl setuser u reset on nopass +@all
        set c [connect]
        $c auth u x
        for {set i 0} {$i < 5} {incr i} {catch {$c get k$i}}
        r config set acllog-max-len 2
        assert_equal 5 [llength [r acl log]]
        catch {$c get k9}
        assert_equal {k9 k4} [lmap e [r acl log] {dict get $e object}]
        r config set acllog-max-len 0
        assert_equal 2 [llength [r acl log]]
        catch {$c get k9}
        assert_equal {} [r acl log]
        r config set acllog-max-len 128
    }

    test {INFO counts refusals by kind, also without log} {
        r config set acllog-max-len 0
        r acl setuser u reset on nopass +@all -ping ~a db=0
        set c [connect]
        $c auth u x
        foreach {field request} {cmd ping key {get b} db {select 1} auth {auth u2 x}} {
            set before [info_field acl_access_denied_$field]
            catch {$c {*}$request}
            assert_equal [expr {$before + 1}] [info_field acl_access_denied_$field]
        }
        r config resetstat
        assert {[info_field acl_access_denied_cmd] > 0}
        r config set acllog-max-len 128
    }
}

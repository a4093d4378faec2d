# SPDX-License-Identifier: BSD-3-Clause
#
# Nodes with cluster-gateway-port, for the tests of one file.
#
#   open_gateway i           opens the port of node i
#   gateway ?i? ?resp?       a client of it; raw_gateway ?i?: a channel to it
#   key_of i ?prefix?        a key whose slot belongs to node i of three
#   gateway_field name ?i?   a field of INFO gateway
#   move_slot slot from to   gives a slot of node `from` to node `to`, with its keys

# The port of a node's gateway, and a client of it.
proc open_gateway {index} {
    set ::gateway_port($index) [free_port]
    r -$index config set cluster-gateway-port $::gateway_port($index)
}
proc gateway {{index 0} {resp {}}} {
    set client [respConnect 127.0.0.1 $::gateway_port($index) [expr {$resp eq "" ? $::resp_version : $resp}]]
    lappend ::test_clients $client
    return $client
}

# A key of a node, with a prefix.
proc key_of {index {prefix k}} {
    for {set i 0} {1} {incr i} {
        if {[r cluster keyslot $prefix$i] * 3 / 16384 == $index} {return $prefix$i}
    }
}

proc gateway_field {name {index 0}} {
    regexp "gateway_$name:(\[^\r\]*)" [r -$index info gateway] all value
    return $value
}

proc raw_gateway {{index 0}} {return [raw_connect 127.0.0.1 $::gateway_port($index)]}

# Gives a slot of node `from` to node `to`, with its keys.
proc move_slot {slot from to} {
    r -$to cluster setslot $slot importing [cluster_id $from]
    r -$from cluster setslot $slot migrating [cluster_id $to]
    set keys [r -$from cluster getkeysinslot $slot 1000]
    if {[llength $keys]} {r -$from migrate 127.0.0.1 [srv -$to port] "" 0 5000 keys {*}$keys}
    r -$to cluster setslot $slot node [cluster_id $to]
    r -$from cluster setslot $slot node [cluster_id $to]
}

# SPDX-License-Identifier: BSD-3-Clause
#
# The status page and its data; the dashboard and the alert rules of utils/grafana.

source $::tests_dir/support/metrics.tcl

proc status {} {return [lindex [http_get /status.json] 2]}

start_server {tags {metrics tls:skip needs:config}} {
    open_metrics

    test {/status.json has calls, errors and latencies of commands, the most time first} {
        for {set i 0} {$i < 100} {incr i} {r set user:$i v EX 1000}
        r get user:1
        r rpush list a b
        catch {r get list}
        catch {r get}
        catch {r nosuch}
        set text [status]
        set get {next(c for c in d["commands"] if c["name"]=="get")}
        assert_json $text [list \
            ${get}\["calls"\] 2 ${get}\["failed"\] 1 ${get}\["rejected"\] 1 "0<=${get}\[\"p50_us\"\]<=${get}\[\"p99_us\"\]" True \
            {[c["usec"] for c in d["commands"]]==sorted((c["usec"] for c in d["commands"]),reverse=True)} True \
            {sorted((e["code"],e["count"]) for e in d["errors"])==[("ERR",2),("WRONGTYPE",1)]} True]
        assert_match "*cmdstat_get:calls=2,*rejected_calls=1,failed_calls=1*" [r info commandstats]
        r config set latency-tracking no
        r config resetstat
        r get user:1
        assert_json [status] [list {"p50_us" in next(c for c in d["commands"] if c["name"]=="get")} False d\["errors"\] {[]}]
        r config set latency-tracking yes
    }

    test {/status.json has at most ten clients, those with the most memory, largest first} {
        set clients {}
        for {set i 0} {$i < 15} {incr i} {lappend clients [connect]}
        set big [lindex $clients 7]
        $big client setname big
        $big multi
        for {set i 0} {$i < 100} {incr i} {$big set k [string repeat x 1000]}
        set list {d["clients"]["list"]}
        assert_json [status] [list len($list) 10 ${list}\[0\]\["name"\] big d\["clients"\]\["connected"\] 16 \
            "\[c\[\"tot_mem\"\] for c in $list\]==sorted((c\[\"tot_mem\"\] for c in $list),reverse=True)" True]
    }

    test {/status.json has the keys that are asked for most} {
        wait_for_condition 300 10 {
            [for {set i 0} {$i < 1000} {incr i} {r get hot}; lindex [json [set text [status]] {{any(k["key"]=="hot" for k in d["hot_keys"]["list"])}}] 0]
        }
        # What is hot in one report may not be in the next one.
        assert_json $text {d["hot_keys"]["hidden"] False d["hot_keys"]["list"][0]["key"] hot
            d["hot_keys"]["list"][0]["per_second"]<=d["hot_keys"]["per_second"]+1e-6 True d["hot_keys"]["list"][0]["db"] 0}
    }

    test {keys that are asked for equally are not called hot by chance} {
        r hotkeys reset
        for {set i 0} {$i < 5000} {incr i} {r get equal:$i}
        assert_match "*equal:*" [r hotkeys get]
        assert_json [status] {d["hot_keys"]["list"] []}
    }

    test {/status.json has persistence and replication as INFO has them} {
        r save
        r set one more
        set text [status]
        assert_json $text [list \
            d\["persistence"\]\["last_save_time"\] [info_field rdb_last_save_time] d\["persistence"\]\["changes"\] 1 \
            d\["persistence"\]\["last_save_status"\] ok d\["persistence"\]\["aof_enabled"\] 0 d\["persistence"\]\["saving"\] 0 \
            d\["replication"\]\["role"\] master d\["replication"\]\["replicas"\] {[]} {"primary_host" in d["replication"]} False \
            {"cluster" in d} False]
    }

    test {/memory.json estimates the memory of keys by type and prefix} {
        lassign [http_get /memory.json] code headers body
        assert_equal "200 application/json" "$code [dict get $headers content-type]"
        assert_json $body [list d\["keys"\] [r dbsize] d\["sampled"\] [r dbsize] d\["prefixes"\]\[0\]\["name"\] user: \
            d\["prefixes"\]\[0\]\["keys"\] 100 {sum(t["keys"] for t in d["types"])==d["keys"]} True \
            {any(t["name"].startswith("list (") for t in d["types"])} True d\["with_expiry"\] 100 \
            {abs(sum(t["bytes"] for t in d["types"])-d["bytes"])<10} True]
        r flushall
        assert_json [lindex [http_get /memory.json] 2] {d["keys"] 0 d["types"] [] d["prefixes"] [] d["bytes"] 0}
    }

    if {[browser] ne ""} {
        test {the status page in a browser shows what INFO has, without an error} {
            for {set i 0} {$i < 300} {incr i} {r set page:$i v}
            r lpush page:list a
            catch {r get page:list}
            r config set slowlog-log-slower-than 0
            r set "<b>slow</b>" v
            r config set slowlog-log-slower-than 10000
            wait_for_condition 600 100 {[history_samples] >= 3}
            set shown [page_shown "#memory"]
            assert_json $shown [list \
                d\["console"\] {[]} {d["text"]["state"].strip()} "● live" {d["text"]["alarm"]} "" \
                {"302" in d["text"]["tiles"] and "in 1 database" in d["text"]["tiles"]} True \
                "'version [info_field valkey_version], standalone, port [srv port], process [srv pid]' in d\[\"text\"\]\[\"about\"\]" True \
                {next(r for r in d["tables"]["commands"] if r[0]=="lpush")[1]} 1 \
                {["WRONGTYPE","1"] in d["tables"]["errors"]} True \
                {d["tables"]["keyspace"][1][:2]} {['0', '302']} \
                {any("set <b>slow</b> v" in r for r in d["tables"]["slowlog"])} True \
                {len(d["tables"]["clients"])} 2 \
                {"Role primary" in d["text"]["replication"] and "off" in d["text"]["persistence"]} True \
                {d["tables"]["prefixes"][1][:2]} {['page:', '301']} \
                {d["lines"]>=8} True {d["text"]["plots"].count("−3 min")} 6 {d["text"]["plots"].count("now")} 6]
        }
    }
}

start_server {tags {metrics tls:skip needs:config} overrides {requirepass sesame}} {
    test {with a password, the page's data have no keys, prefixes or hot keys} {
        open_metrics
        for {set i 0} {$i < 2000} {incr i} {r set secret:$i [r get secret:hot]}
        foreach path {/status.json /memory.json /history.json} {
            assert_equal -1 [string first secret [lindex [http_get $path] 2]] $path
        }
        assert_json [lindex [http_get /memory.json] 2] {d["prefixes"] [] d["hidden"] True d["keys"] 2000}
        assert_json [status] {d["hot_keys"]["hidden"] True}
        assert_match "*secret:*" [r hotkeys get] ;# there were some to hide
    }
}

start_server {tags {metrics tls:skip needs:config} overrides {cluster-enabled yes}} {
    test {/status.json has the map of the cluster} {
        open_metrics
        r cluster addslotsrange 0 99 200 200
        set node d\["cluster"\]\["nodes"\]\[0\]
        assert_json [status] [list d\["cluster"\]\["state"\] fail d\["cluster"\]\["slots_assigned"\] 101 ${node}\["id"\] [r cluster myid] \
            ${node}\["slots"\] 101 ${node}\["ranges"\] {0-99 200} ${node}\["flags"\] myself,master ${node}\["primary"\] - \
            d\["server"\]\["mode"\] cluster]
        for {set slot 300} {$slot < 400} {incr slot 2} {r cluster addslots $slot}
        assert_json [status] [list ${node}\["slots"\] 151 "${node}\[\"ranges\"\].endswith(' ...')" True "len(${node}\[\"ranges\"\].split())" 21]
    }
}

start_server {tags {metrics repl tls:skip needs:config}} {
    start_server {} {
        test {primary and replica see each other in /status.json; every metric of the dashboard and the alerts exists} {
            r -1 set k v
            catch {r -1 nosuch}
            r replicaof 127.0.0.1 [srv -1 port]
            wait_for_condition 600 50 {[info_field master_link_status] eq "up"}
            open_metrics
            assert_json [status] [list d\["replication"\]\["role"\] slave d\["replication"\]\["link"\] up \
                d\["replication"\]\["primary_port"\] [srv -1 port] {d["replication"]["last_io_seconds"]>=0} True]
            set text [lindex [http_get /metrics] 2]
            open_metrics -1
            wait_for_condition 600 50 {[lindex [json [status] {{d["replication"]["replicas"][0]["state"]}}] 0] eq "online"}
            assert_json [status] [list d\["replication"\]\["replicas"\]\[0\]\["port"\] [srv port] d\["replication"\]\["connected"\] 1]
            append text [lindex [http_get /metrics] 2]
            assert_match "*redis_connected_slave_lag_seconds{slave_ip=\"127.0.0.1\",slave_port=\"[srv port]\",slave_state=\"online\"} *" $text
            # A node of a cluster, with certificates and a dictionary of compressed values, if this build can have one.
            set certs [file join $::job_dir certs]
            file mkdir $certs
            exec $::tests_dir/support/make_certs.sh $certs
            start_server [list overrides [list cluster-enabled yes tls-port [free_port] tls-cert-file $certs/server.crt \
                tls-key-file $certs/server.key tls-ca-cert-file $certs/ca.crt enable-debug-command yes]] {
                if {[catch {r debug value-dictionary user: "some text"} reply]} {
                    assert_match "*Zstandard compression is not available*" $reply
                    append text "\nredis_value_dictionary_values 0\nredis_value_dictionary_recent_ratio 1\n"
                }
                open_metrics
                append text [lindex [http_get /metrics] 2]
            }
            assert_match "dashboards: *" [exec python3 $::tests_dir/../utils/check_dashboards.py << $text]
            # The check does find what is missing.
            set text [regsub -all redis_memory_used_bytes $text redis_other]
            catch {exec python3 $::tests_dir/../utils/check_dashboards.py << $text} message
            assert_match "*valkey-dashboard.json: no server has redis_memory_used_bytes*" $message
        }
    }
}

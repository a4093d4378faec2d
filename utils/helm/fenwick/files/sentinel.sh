#!/bin/sh
# Starts the Sentinel of a pod. Its file is on the volume: it has the Sentinel's identity and what it knows.
. "${0%/*}/common.sh"
umask 077
if [ ! -s "$data/sentinel.conf" ]; then
    {
        ports "$sentinel_port"
        printf '%s\n' "dir $data" 'protected-mode no' 'sentinel resolve-hostnames yes' 'sentinel announce-hostnames yes' \
            "sentinel announce-ip $MY_HOST" "sentinel monitor main $(find_primary) $QUORUM" 'sentinel down-after-milliseconds main 10000' \
            'sentinel failover-timeout main 30000'
        if [ -n "${PASSWORD:-}" ]; then echo "sentinel auth-pass main $PASSWORD"; fi
    } > "$data/sentinel.conf.new"
    mv "$data/sentinel.conf.new" "$data/sentinel.conf"
fi
exec valkey-sentinel "$data/sentinel.conf"

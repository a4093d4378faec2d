#!/bin/sh
# Starts the server of a pod. In mode sentinel as a replica of the primary, unless it is the primary.
. "${0%/*}/common.sh"
umask 077
{
    ports "$port"
    if [ -n "${PASSWORD:-}" ]; then printf '%s\n' "requirepass $PASSWORD" "primaryauth $PASSWORD"; fi
    if [ "$MODE" = sentinel ]; then
        echo "replica-announce-ip $MY_HOST"
        primary=$(find_primary)
        [ "${primary% *}" = "$MY_HOST" ] || echo "replicaof $primary"
    fi
} > "$run/pod.conf"
exec valkey-server "${CONF:-/etc/valkey/container.conf}" --include "$run/pod.conf"

#!/bin/sh
# Starts the server of a pod. In mode sentinel as a replica of the primary, unless it is the primary. In mode cluster as a node:
# which ones it knows is in nodes.conf on its volume; form.sh makes it a member.
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
    if [ "$MODE" = cluster ]; then
        # Pods get new addresses: the others look for them by their names. A primary that is stopped hands over to a replica first.
        printf '%s\n' 'cluster-enabled yes' "cluster-announce-hostname $MY_HOST" 'shutdown-on-sigterm failover'
        if [ -n "${MY_ADDRESS:-}" ]; then echo "cluster-announce-ip $MY_ADDRESS"; fi
        if [ -n "${BUS_SECRET:-}" ]; then echo "cluster-bus-secret $BUS_SECRET"; fi
        # The certificate names hosts, so redirects do, too.
        if [ -n "${TLS:-}" ]; then printf '%s\n' 'tls-cluster yes' 'cluster-preferred-endpoint-type hostname'; fi
    fi
} > "$run/pod.conf"
exec valkey-server "${CONF:-/etc/valkey/container.conf}" --include "$run/pod.conf"

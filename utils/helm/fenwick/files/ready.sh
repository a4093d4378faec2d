#!/bin/sh
# Readiness of a pod of a cluster: the server replies and, if it is a replica, has the data of its primary. So an update of the pods
# or of the machines does not take the primary before.
valkey-health || exit 1
if [ -n "${PASSWORD:-}" ]; then export VALKEYCLI_AUTH="$PASSWORD"; fi
case $(valkey-cli -t 2 -s "${RUN:-/run/valkey}/valkey.sock" info replication 2>&1) in
*role:slave*master_link_status:down*) echo "the replica has no link to its primary"; exit 1 ;;
esac

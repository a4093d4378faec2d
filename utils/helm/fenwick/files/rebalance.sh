#!/bin/sh
# Moves slots so that all shards, also those that have none, have the same number. By hand, as it moves data.
. "${0%/*}/common.sh"
cli --cluster rebalance "$MY_HOST:$port" --cluster-use-empty-primaries "$@"

#!/bin/sh
# Makes a cluster of the pods, and later adds those that are new to it. A job runs it after an installation and each upgrade. It
# changes nothing where nothing is to be done, and goes on where it was interrupted. SHARDS, REPLICAS_PER_SHARD: what is wanted;
# PAUSE, TRIES: seconds between two looks at the pods, and the number of looks.
. "${0%/*}/common.sh"
pause=${PAUSE:-2} tries=${TRIES:-300}

# Prints what the node of host $1 is: alone, a member of a cluster that works, or of one that does not; silent if it does not say.
state() {
    case $(cli -t 5 -h "$1" -p "$port" cluster info 2>&1) in
    *cluster_known_nodes:1[!0-9]*) echo alone ;;
    *cluster_state:ok*) echo member ;;
    *cluster_state:*) echo failed ;;
    *) echo silent ;;
    esac
}

# Sorts the hosts by their state.
look() {
    alone='' member='' failed='' silent=''
    for host in $HOSTS; do
        case $(state "$host") in
        alone) alone="$alone $host" ;;
        member) member="$member $host" ;;
        failed) failed="$failed $host" ;;
        *) silent="$silent $host" ;;
        esac
    done
}

# Prints the number of primaries that host $1 knows and that work.
count_primaries() {
    cli -t 5 -h "$1" -p "$port" cluster nodes | {
        count=0
        while read -r id address flags rest; do
            case ",$flags," in
            *,fail,* | *,noaddr,* | *,handshake,*) ;;
            *,master,*) count=$((count + 1)) ;;
            esac
        done
        echo $count
    }
}

# Adds host $1 to the cluster: as a primary if one is missing, else as a replica of the primary that has the fewest.
add() {
    known=${member# } replica=--cluster-replica
    known=${known%% *}
    primaries=$(count_primaries "$known")
    if [ "$primaries" -lt "$SHARDS" ]; then replica=''; fi
    cli --cluster add-node "$1:$port" "$known:$port" $replica ||
        echo "$1 was not added: another try follows"
}

# Makes the cluster. Slots and acquaintances of an attempt that was interrupted are removed first; nodes with keys stop it.
create() {
    nodes=''
    for host in $HOSTS; do
        if [ "$(cli -t 5 -h "$host" -p "$port" dbsize)" != 0 ]; then
            echo "$host has keys, but no pod is in a cluster that works: see CLUSTER NODES and the logs" >&2
            exit 1
        fi
        nodes="$nodes $host:$port"
    done
    for host in $HOSTS; do cli -t 5 -h "$host" -p "$port" cluster reset soft; done
    cli --cluster create $nodes --cluster-replicas "$REPLICAS_PER_SHARD" --cluster-yes
}

look
while [ "$tries" -gt 0 ]; do
    primaries=''
    if [ -z "$silent$failed$alone" ]; then
        # More for a moment, if a primary has handed over and has just started again.
        primaries=$(count_primaries "${HOSTS%% *}")
        if [ "$primaries" -le "$SHARDS" ]; then echo "all pods are in the cluster"; exit 0; fi
    elif [ -z "$silent$failed$member" ]; then
        create || echo "the cluster was not made: another try follows"
    elif [ -z "$silent$failed" ]; then
        # One at a time: all have to know of it before the next one.
        alone=${alone# }
        add "${alone%% *}"
    fi
    # Others are starting, or have failed: wait.
    tries=$((tries - 1))
    sleep "$pause"
    look
done
# A cluster that was made by half does not begin to work by itself.
if [ -z "$silent$member" ]; then create; exit; fi
if [ -n "$primaries" ]; then
    echo "the cluster has $primaries primaries, $SHARDS are wanted: see CLUSTER NODES" >&2
else
    echo "no reply:${silent:- none}; in a cluster that does not work:${failed:- none}" >&2
fi
exit 1

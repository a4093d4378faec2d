# What the programs of a pod share. HOSTS: all pods; MY_HOST: this one; PASSWORD and BUS_SECRET may be empty; TLS: yes or empty;
# BIND: addresses to listen on, by default all.
set -eu
port=${PORT:-6379} sentinel_port=${SENTINEL_PORT:-26379}
run=${RUN:-/run/valkey} data=${DATA:-/data} tls=${TLS_FOLDER:-/etc/valkey/tls}
case ${PASSWORD:-}${BUS_SECRET:-} in
*[!A-Za-z0-9._~+/=-]*) echo "the password has other characters than letters, digits and . _ ~ + / = -" >&2; exit 1 ;;
esac

# Runs valkey-cli with the password and the certificate of the servers.
cli() {
    if [ -n "${PASSWORD:-}" ]; then export VALKEYCLI_AUTH="$PASSWORD"; fi
    valkey-cli ${TLS:+--tls --cacert "$tls/ca.crt"} "$@"
}

# Prints the lines about ports and certificates for the port $1.
ports() {
    if [ -n "${BIND:-}" ]; then echo "bind $BIND"; fi
    if [ -n "${TLS:-}" ]; then
        printf '%s\n' 'port 0' "tls-port $1" "tls-cert-file $tls/tls.crt" "tls-key-file $tls/tls.key" \
            "tls-ca-cert-file $tls/ca.crt" 'tls-auth-clients optional' 'tls-replication yes'
    else
        echo "port $1"
    fi
}

# Prints the address of the primary, "HOST PORT", as the Sentinel of another pod knows it. That of this pod has begun with it
# and may know only what was true before.
ask_sentinels() {
    for host in $HOSTS; do
        [ "$host" != "$MY_HOST" ] || continue
        answer=$(valkey-cli -t 2 -h "$host" -p "$sentinel_port" ${TLS:+--tls --cacert "$tls/ca.crt"} \
            sentinel get-primary-addr-by-name main 2> /dev/null) || continue
        # Two lines; anything else is an error.
        set -- $answer
        if [ $# = 2 ] && [ "$2" = "$port" ]; then echo "$1 $2"; return; fi
    done
    return 1
}

# Prints the address that the file of this pod's Sentinel has.
ask_file() {
    [ -f "$data/sentinel.conf" ] || return 1
    while read -r first second third address its_port rest; do
        if [ "$first $second $third" = 'sentinel monitor main' ]; then echo "$address $its_port"; return; fi
    done < "$data/sentinel.conf"
    return 1
}

# The primary: as the Sentinels know it, else, if none replies (all pods have just begun), as this pod knew it last, else the
# first pod. A pod whose knowledge is old is corrected by the Sentinels, which agree on the newest.
find_primary() {
    ask_sentinels || ask_file || echo "${HOSTS%% *} $port"
}

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Health check of a container: succeeds if the server replies. Any reply to PING but LOADING and MASTERDOWN will do; an
# error such as NOAUTH shows that the server serves its clients.
#
# The Unix socket of container.conf is asked: no port, certificate or password has to be known, so TLS alone will do.
# For a server with another file: VALKEY_SOCKET, or VALKEY_PORT, or VALKEY_TLS_PORT, the last with VALKEY_TLS_CERT_FILE
# and VALKEY_TLS_KEY_FILE unless tls-auth-clients is no. The certificate of the server is not verified.
socket=${VALKEY_SOCKET:-/run/valkey/valkey.sock}
if [ -n "${VALKEY_TLS_PORT:-}" ]; then
    set -- -p "$VALKEY_TLS_PORT" --tls --insecure
    [ -z "${VALKEY_TLS_CERT_FILE:-}" ] || set -- "$@" --cert "$VALKEY_TLS_CERT_FILE" --key "$VALKEY_TLS_KEY_FILE"
elif [ -n "${VALKEY_PORT:-}" ] || [ ! -S "$socket" ]; then
    set -- -p "${VALKEY_PORT:-6379}"
else
    set -- -s "$socket"
fi
# A password in the environment is for other servers.
unset VALKEYCLI_AUTH REDISCLI_AUTH
reply=$(valkey-cli -t 2 "$@" ping 2>&1)
case $reply in
PONG|*NOAUTH*|*NOPERM*) exit 0 ;;
esac
echo "$reply"
exit 1

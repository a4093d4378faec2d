#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes keys and certificates for tests in a folder.
#
#   make_certs.sh DIR
#
# ca.crt signs: server.* (127.0.0.1, localhost), client.* (CN first, URIs urn:user:none and urn:user:first),
# elsewhere.* (another host), expired.* (a client's, of the past), curve.* (as server.*, with a key of an elliptic curve). other-ca.crt signs stranger.*. pass.key is server.key with the pass phrase "secret".
set -e
cd "$1"

authority() { # NAME
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.crt" -days 3650 -subj "/O=Tests/CN=$1" 2>/dev/null
}
certificate() { # NAME SUBJECT EXTENSIONS CA DAYS...
    name=$1 subject=$2 extensions=$3 ca=$4
    shift 4
    openssl req -newkey $KEY -nodes -keyout "$name.key" -out "$name.csr" -subj "$subject" 2>/dev/null
    printf '%b' "$extensions" > "$name.ext"
    openssl x509 -req -in "$name.csr" -CA "$ca.crt" -CAkey "$ca.key" -CAcreateserial -out "$name.crt" \
        -extfile "$name.ext" "$@" 2>/dev/null
    rm "$name.ext"
}

KEY=rsa:2048 # type of the keys that follow
authority ca
authority other-ca
certificate server /O=Tests/CN=server 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' ca -days 365
certificate second /O=Tests/CN=second 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' ca -days 365
certificate elsewhere /O=Tests/CN=localhost 'subjectAltName=DNS:elsewhere\n' ca -days 365
certificate client /O=Tests/CN=first 'subjectAltName=URI:urn:user:none,URI:urn:user:first\n' ca -days 365
certificate stranger /O=Tests/CN=stranger 'subjectAltName=URI:urn:user:first\n' other-ca -days 365
certificate expired /O=Tests/CN=first 'subjectAltName=URI:urn:user:first\n' ca -days -1
# With another type of keys.
KEY='ec -pkeyopt ec_paramgen_curve:P-256'
certificate curve /O=Tests/CN=curve 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' ca -days 365
openssl rsa -aes256 -passout pass:secret -in server.key -out pass.key 2>/dev/null

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A stranger's first minutes with a package: unpacks or installs it in the root folder of a system, starts the server
# there and uses it, also with TLS. Prints what was done; fails at the first thing that does not work.
#
#   try.sh PACKAGE ROOT      PACKAGE: .tar.gz, .deb or .rpm; ROOT: made by debootstrap --variant=minbase. Needs root.
set -eu
package=$1 root=$2
inside=/tmp/try
ports=$(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
port=${ports% *} tls_port=${ports#* }

clean() {
    [ ! -s "$root$inside/pid" ] || kill "$(cat "$root$inside/pid")" 2> /dev/null || true
    umount "$root/proc" 2> /dev/null || true
}
trap clean EXIT
rm -rf "$root$inside"
mkdir -p "$root$inside"
[ -e "$root/proc/self" ] || mount -t proc proc "$root/proc"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$root$inside/key.pem" -out "$root$inside/cert.pem" 2> /dev/null
chmod 755 "$root$inside" && chmod 644 "$root$inside/key.pem"

within() { chroot "$root" env LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# step TEXT PATTERN COMMAND...: the command's output has the pattern.
step() {
    text=$1 pattern=$2
    shift 2
    if ! answer=$("$@" 2>&1) || ! echo "$answer" | grep -q -- "$pattern"; then
        echo "FAILED  $text: $answer"
        exit 1
    fi
    echo "ok      $text: $(echo "$answer" | tail -n 1)"
}

. "$root/etc/os-release"
echo "$PRETTY_NAME, $(within ldd --version | sed -n 1p)"
case $package in
*.tar.gz)
    tar -C "$root$inside" -xzf "$package"
    programs=$inside/$(basename "$package" .tar.gz)/bin ;;
*.deb)
    cp "$package" "$root$inside/package.deb"
    within apt-get update -q > "$root$inside/apt.log" 2>&1 || { tail -3 "$root$inside/apt.log"; exit 1; }
    within env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$inside/package.deb" >> "$root$inside/apt.log" 2>&1 ||
        { tail -5 "$root$inside/apt.log"; exit 1; }
    echo "ok      apt-get install"
    step "the service's user" valkey within getent passwd valkey
    programs=/usr/bin ;;
*.rpm)
    # The names of a system of Debian are not those that the package asks for.
    rpm --root "$(realpath "$root")" --nodeps -i "$package"
    echo "ok      rpm -i"
    step "the service's user" valkey within getent passwd valkey
    programs=/usr/bin ;;
*) echo "usage: try.sh PACKAGE ROOT" >&2; exit 2 ;;
esac
cli="$programs/valkey-cli"
for program in server sentinel cli benchmark check-rdb check-aof; do
    step "valkey-$program --version" '[0-9]\.[0-9]' within "$programs/valkey-$program" --version
done
within "$programs/valkey-server" --port "$port" --tls-port "$tls_port" --tls-cert-file "$inside/cert.pem" \
    --tls-key-file "$inside/key.pem" --tls-ca-cert-file "$inside/cert.pem" --tls-auth-clients no --daemonize yes \
    --dir "$inside" --logfile "$inside/log" --pidfile "$inside/pid"
tries=0
until within "$cli" -p "$port" ping > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { echo "FAILED  start"; tail -5 "$root$inside/log"; exit 1; }
    sleep 0.1
done
step SET OK within "$cli" -p "$port" set greeting hello
step GET hello within "$cli" -p "$port" get greeting
step EVAL 8 within "$cli" -p "$port" eval 'return 2^3' 0
step "GEOADD, GEODIST" 166 sh -c "chroot $root $cli -p $port geoadd Sicily 13.361389 38.115556 P 15.087269 37.502669 C &&
    chroot $root $cli -p $port geodist Sicily P C km"
step "GET with TLS" hello within "$cli" -p "$tls_port" --tls --cacert "$inside/cert.pem" get greeting
step SAVE OK within "$cli" -p "$port" save
step "valkey-check-rdb" OK within "$programs/valkey-check-rdb" "$inside/dump.rdb"
step "CONFIG SET rdb-compression" OK within "$cli" -p "$port" config set rdbcompression no
step "valkey-benchmark" 'requests per second' within "$programs/valkey-benchmark" -p "$port" -n 1000 -t set -q
step SHUTDOWN '^$' within "$cli" -p "$port" shutdown
case $package in
*.deb)
    within env DEBIAN_FRONTEND=noninteractive apt-get purge -y -q fenwick-server >> "$root$inside/apt.log" 2>&1
    step "the data stays after apt-get purge" lib/valkey ls -d "$root/var/lib/valkey" ;;
*.rpm)
    rpm --root "$(realpath "$root")" --nodeps -e fenwick-server
    step "the data stays after rpm -e" lib/valkey ls -d "$root/var/lib/valkey" ;;
esac

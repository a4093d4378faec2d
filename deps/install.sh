#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what is missing of deps.txt with the system's package manager.
#
#   install.sh [build|test|long]     test (which includes build) is for `make test`, long (which includes both) for
#                                    `make test-long`
#
# Idempotent, and quick when nothing is missing. Asks sudo when not root. Reads nothing from stdin.
here=$(dirname "$0")
level=${1:-build}
case $level in build|test|long) ;; *) echo "usage: $0 [build|test|long]" >&2; exit 2 ;; esac

missing=$("$here/probe.sh" --missing "$level") || exit 1
[ -z "$missing" ] && exit 0

names=$(echo "$missing" | cut -d' ' -f1 | tr '\n' ' ')
packages=$(echo "$missing" | cut -d' ' -f2- | tr '\n' ' ')
echo "deps: missing $names-> installing $packages"

root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "deps: not root and no sudo; install by hand: $packages" >&2; exit 1; }
    root=sudo
fi

# The package lists are fetched only when there are none, or when they are too old to serve us.
aptInstall() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages </dev/null
}
if command -v apt-get >/dev/null 2>&1; then
    if ! ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || ! aptInstall; then
        $root apt-get update -q </dev/null && aptInstall
    fi
elif command -v dnf >/dev/null 2>&1; then $root dnf install -y $packages </dev/null
elif command -v pacman >/dev/null 2>&1; then $root pacman -S --noconfirm --needed $packages </dev/null
elif command -v apk >/dev/null 2>&1; then $root apk add $packages </dev/null
else
    echo "deps: no package manager known here; install by hand: $packages" >&2
    exit 1
fi || { echo "deps: the package manager failed" >&2; exit 1; }

rm -f "$here/../build/deps.mk" # the answers have changed
missing=$("$here/probe.sh" --missing "$level")
[ -z "$missing" ] && exit 0
echo "deps: still missing after installing:" >&2
echo "$missing" >&2
exit 1

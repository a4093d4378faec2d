#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Asks the system for what deps.txt lists.
#
#   probe.sh                    prints build/deps.mk: flags of the libraries, names of what is missing; libraries of
#                               level `extra` are in deps_extra, not in deps_libraries
#   probe.sh --missing LEVEL    prints one line "name package..." per missing row of `build`, `test` or `long`
#                               (test includes build, long both); a row without a package for this system is left out
#   probe.sh --packages LEVEL... prints the packages of the rows of these levels, one a line
cd "$(dirname "$0")/.." || exit 1

# Prints the number of the package column of this system.
packageColumn() {
    ids=
    [ -r /etc/os-release ] && ids=$(. /etc/os-release && echo "$ID $ID_LIKE")
    for id in $ids; do
        case $id in
            debian|ubuntu) echo 4; return ;;
            fedora|rhel|centos) echo 5; return ;;
            arch) echo 6; return ;;
            alpine) echo 7; return ;;
        esac
    done
    echo 4
}

# True when one of the globs (comma separated) names a file.
pathExists() {
    for path in $(echo "$1" | tr ',' ' '); do [ -e "$path" ] && return 0; done
    return 1
}

# package NAMES LEAST: the first of the names (comma separated) that pkg-config knows in a good version.
package() {
    for name in $(echo "$1" | tr ',' ' '); do
        if [ "$2" = - ]; then pkg-config --exists "$name" 2>/dev/null
        else pkg-config --atleast-version="$2" "$name" 2>/dev/null; fi && echo "$name" && return
    done
}

# found FIND LEAST: true when the row is there in a good version.
found() {
    what=${1#*:}
    case $1 in
        pkg:*) [ -n "$(package "$what" "$2")" ] ;;
        header:*)
            header=${what%%:*}
            pathExists "/usr/include/$header,/usr/local/include/$header,/usr/include/*-linux-*/$header" ;;
        cmd:*)
            for program in $(echo "$what" | tr ',' ' '); do
                command -v "$program" >/dev/null 2>&1 && return 0
            done
            return 1 ;;
        path:*) pathExists "$what" ;;
        *) echo "deps.txt: unknown way to find: $1" >&2; exit 2 ;;
    esac
}

# Prints the rows as "name find least level packages...".
rows() {
    awk -F'|' -v column="$(packageColumn)" '
        /^[a-z]/ { for (i = 1; i <= NF; i++) gsub(/^ +| +$/, "", $i); print $1, $2, $3, $8, $column }' deps/deps.txt
}

if [ "$1" = --missing ]; then
    rows | while read -r name find least level packages; do
        case $2-$level in build-build|test-build|test-test|long-build|long-test|long-long) ;; *) continue ;; esac
        [ "$packages" = - ] && continue
        found "$find" "$least" || echo "$name $packages"
    done
    exit
fi

if [ "$1" = --packages ]; then
    shift
    rows | while read -r name find least level packages; do
        [ "$packages" = - ] && continue
        case " $* " in *" $level "*) echo "$packages" | tr ' ' '\n' ;; esac
    done
    exit
fi

echo "# Written by deps/probe.sh"
rows | while read -r name find least level packages; do
    case $level in build|extra) ;; *) continue ;; esac
    if ! found "$find" "$least"; then
        [ "$level" = build ] || continue
        echo "deps_missing += $name"
        echo "deps_packages += $packages"
        continue
    fi
    case $find in
        pkg:*)
            known=$(package "${find#pkg:}" "$least")
            compile=$(pkg-config --cflags "$known")
            load=$(pkg-config --libs "$known") ;;
        header:*) compile=; load=${find##*:} ;;
        *) continue ;;
    esac
    if [ "$level" = build ]; then echo "deps_libraries += $name"; else echo "deps_extra += $name"; fi
    echo "${name}_CFLAGS := $compile"
    echo "${name}_LIBS := $load"
done
case $(packageColumn) in
    5) echo "deps_hint = dnf install \$(deps_packages)" ;;
    6) echo "deps_hint = pacman -S \$(deps_packages)" ;;
    7) echo "deps_hint = apk add \$(deps_packages)" ;;
    *) echo "deps_hint = apt-get install \$(deps_packages)" ;;
esac

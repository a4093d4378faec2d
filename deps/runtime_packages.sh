#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Prints the Debian packages of the shared libraries that programs need to run, one a line: what an image that
# only runs them has to install.
#
#   runtime_packages.sh PROGRAM...
for program in "$@"; do
    ldd "$program" | awk '$2 == "=>" { print $3 }' | while read -r library; do
        # dpkg knows a library by the path in its package, with or without /usr and before links are followed.
        real=$(realpath "$library")
        for path in "$library" "/usr$library" "$real" "${real#/usr}"; do
            package=$(dpkg -S "$path" 2>/dev/null) && break
        done
        [ -n "$package" ] || { echo "runtime_packages: no package has $library" >&2; exit 1; }
        echo "${package%%:*}"
    done || exit 1
done | sort -u

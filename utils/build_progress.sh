#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# build_progress.sh COMMAND...: runs a build and prints a line for each folder instead of one for each file, other lines as
# they are, and at the end how long it took. Exits with the status of the build.
started=$(date +%s)
{ "$@" 2>&1; echo "status $?"; } | awk -v started="$started" '
$1 == "status" && NF == 2 { status = $2; next }
$1 == "CC" && NF == 2 {
    folder = $2
    sub(/\/[^\/]*$/, "", folder)
    if (!told++) print "building: a minute or two on two processors, less with more"
    if (!(folder in seen)) print "  " folder
    seen[folder] = 1
    next
}
{ print }
{ fflush() }
END {
    "date +%s" | getline now
    if (told && !status) printf "built %d files in %d s\n", told, now - started
    exit status
}'

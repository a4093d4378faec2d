#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What a container runs: with options, or nothing, the server with the image's file and these options; otherwise the
# program that is named, such as valkey-cli or valkey-sentinel.
case ${1:-} in
''|-*) exec valkey-server /etc/valkey/container.conf "$@" ;;
esac
exec "$@"

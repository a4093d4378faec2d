#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make test-arm64`: cross-builds for arm64 and runs the C tests and a part of the Tcl suite in qemu-user. The last
# line is "N passed, N failed". On an arm64 machine `make test` does the same without an emulator.
#
# The compiler and qemu come from the distribution's packages (deps.txt, level long). The libraries for arm64 are
# unpacked from its packages below build/arm64/sysroot, so nothing of the running system changes.
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make}
root=$PWD/build/arm64
sysroot=$root/sysroot
suite="unit/basic unit/keyspace unit/expire unit/multi unit/scan unit/blocking unit/type/*"

fail() { echo "arm64: $*"; echo "0 passed, 1 failed"; exit 1; }
deps/install.sh long >"$root.log" 2>&1 </dev/null || { mkdir -p build; tail -5 "$root.log"; fail "packages are missing"; }

# Unpacks the arm64 packages of the build libraries and what they need, with a package index of its own.
fetchSysroot() {
    mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/packages" "$sysroot"
    : >"$root/apt/status"
    set -- -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$root/apt" \
        -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt" -o APT::Sandbox::User=root
    apt-get "$@" update -q || return 1
    packages=$(deps/probe.sh --packages build test | grep -E '^lib.*-dev$')
    # shellcheck disable=SC2086 # one package per word
    all=$(apt-get "$@" install -s --no-install-recommends $packages | sed -n 's/^Inst \([^ ]*\).*/\1/p')
    # shellcheck disable=SC2086
    (cd "$root/packages" && apt-get "$@" download $(echo "$all" | grep -E '^(lib|linux-libc)')) || return 1
    for package in "$root"/packages/*.deb; do dpkg-deb -x "$package" "$sysroot" || return 1; done
    # Links with absolute targets would leave the sysroot.
    find "$sysroot" -type l -lname '/*' | while read -r link; do
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$sysroot$(readlink "$link")")" "$link"
    done
}
if [ ! -f "$root/sysroot.ready" ]; then
    fetchSysroot >>"$root.log" 2>&1 || { tail -5 "$root.log"; fail "no libraries for arm64"; }
    touch "$root/sysroot.ready"
fi

export PKG_CONFIG_LIBDIR="$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$sysroot"
crossMake() {
    $make --no-print-directory TARGET=arm64 BUILD=debug CC="aarch64-linux-gnu-gcc --sysroot=$sysroot" MARCH= CFLAGS=-O1 "$@"
}
crossMake build c-tests >"$root/build.log" 2>&1 ||
    { grep -E 'error|warning|undefined|\*\*\*' "$root/build.log" | head -20; fail "does not build"; }

# The emulator needs memory for address space that is only reserved, so reservations are limited. exec keeps the
# process number: the suite starts this server like any other.
mkdir -p "$root/bin"
printf '#!/bin/sh\nulimit -v 8000000\nexec qemu-aarch64 -L %s "$@"\n' "$sysroot" >"$root/bin/run"
printf '#!/bin/sh\nexec %s %s "$@"\n' "$root/bin/run" "$root/debug/valkey-server" >"$root/bin/valkey-server"
chmod +x "$root/bin/run" "$root/bin/valkey-server"

RUNNER=$root/bin/run C_TEST_SECONDS=1800 tests/c/run.sh "$root"/debug/tests/c/*/run | tee "$root/c.log"
options=
for name in $suite; do options="$options --single $name"; done
# shellcheck disable=SC2086 # the options are words
tests/runtest --binary "$root/bin/valkey-server" --resp 3 --scale 0.1 --timeout 1800 --tags "-needs:native" $options |
    tee "$root/suite.log"

# The sum of both.
cat "$root/c.log" "$root/suite.log" | awk '/^[0-9]+ flaky$/ { f += $1 } /^[0-9]+ passed, [0-9]+ failed$/ { p += $1; b += $3 }
    END { if (f) print f " flaky"; print p + 0 " passed, " b + 0 " failed"; exit b > 0 }'

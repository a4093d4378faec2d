#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds a package of what `make install` installs.
#
#   package.sh deb STAGE OUTPUT       a Debian package; STAGE was filled by `make install PREFIX=/usr DESTDIR=STAGE`
#   package.sh tarball STAGE OUTPUT   a tarball for any Linux with a glibc that is not older than this machine's: it
#                                     has the other libraries with it, and runs in any folder
#
#   MAINTAINER="Name <address>"       of the Debian package; default: who builds it, as git knows
#
# Prints the path of the package. The Debian package needs dpkg-dev, the tarball patchelf. A program that is linked
# statically as a whole could not load modules.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kind=$1 stage=$(realpath "$2") output=$3
root=$here/../..
release=$(sed -n 's/^#define SERVER_RELEASE "\(.*\)"/\1/p' "$root/src/base/build_info.h")
product=$(sed -n 's/^#define SERVER_PRODUCT "\(.*\)"/\1/p' "$root/src/base/build_info.h" | tr '[:upper:]' '[:lower:]')
programs=$(find "$stage/usr/bin" -type f -name 'valkey-*')
mkdir -p "$output"
# The names of functions stay, for reports of crashes.
for program in $programs; do strip --strip-debug "$program"; done

# The time of the last change, so that the same source gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# The packages of the libraries with the least versions that have the functions in use. dpkg-shlibdeps wants the name
# of a source package; the libraries of this package itself are no dependencies.
dependencies() {
    folder=$(mktemp -d)
    mkdir "$folder/debian"
    printf 'Source: none\n\nPackage: none\nArchitecture: any\n' > "$folder/debian/control"
    (cd "$folder" && dpkg-shlibdeps -Ofound -l"$stage/usr/lib" --ignore-missing-info $programs)
    sed -n 's/^shlibs:Depends=//p' "$folder/found"
    rm -r "$folder"
}

deb() {
    machine=$(dpkg --print-architecture)
    file=$output/$product-server_${release}_$machine.deb
    install -D -m 640 "$stage/usr/share/valkey/valkey.conf" "$stage/etc/valkey/valkey.conf"
    install -D -m 640 "$stage/usr/share/valkey/sentinel.conf" "$stage/etc/valkey/sentinel.conf"
    install -d "$stage/DEBIAN"
    maintainer=${MAINTAINER:-$(git -C "$root" config user.name) <$(git -C "$root" config user.email)>}
    depends=$(dependencies)
    size=$(du -k -s --exclude=DEBIAN "$stage" | cut -f1)
    sed -e "s/@PRODUCT@/$product/" -e "s/@RELEASE@/$release/" -e "s/@MACHINE@/$machine/" \
        -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/$depends/" \
        -e "s/@MAINTAINER@/$maintainer/" \
        "$here/control.in" > "$stage/DEBIAN/control"
    printf '/etc/valkey/valkey.conf\n/etc/valkey/sentinel.conf\n' > "$stage/DEBIAN/conffiles"
    for script in postinst prerm postrm; do install -m 755 "$here/$script" "$stage/DEBIAN/$script"; done
    dpkg-deb --root-owner-group --build "$stage" "$file" > /dev/null
    rm -r "$stage/DEBIAN"
    echo "$file"
}

# Libraries that belong to glibc: the system's own fit its kernel and its other programs.
is_system() {
    case $1 in
    libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*|librt.so.*|libresolv.so.*|ld-linux*|linux-vdso*) return 0 ;;
    esac
    return 1
}

tarball() {
    command -v patchelf > /dev/null || { echo "package: patchelf is missing (apt-get install patchelf)" >&2; exit 1; }
    name=$product-server-$release-linux-$(uname -m)
    folder=$output/$name
    rm -rf "$folder"
    install -d "$folder/lib"
    cp -a "$stage/usr/bin" "$stage/usr/share" "$folder/"
    cp "$root/COPYING" "$root/README.md" "$folder/"
    for program in $(find "$folder/bin" -type f); do
        ldd "$program" | awk '$2 == "=>" { print $1, $3 }' | while read -r library path; do
            is_system "$library" || cp -L "$path" "$folder/lib/$library"
        done
    done
    for program in $(find "$folder/bin" -type f -links 1) $(find "$folder/bin" -type f -links +1 -name valkey-server); do
        patchelf --set-rpath '$ORIGIN/../lib' "$program"
    done
    # patchelf writes a new file: the second name of the server again.
    ln -f "$folder/bin/valkey-server" "$folder/bin/valkey-sentinel"
    for library in "$folder"/lib/*; do chmod 755 "$library"; patchelf --set-rpath '$ORIGIN' "$library"; done
    tar -C "$output" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -czf "$folder.tar.gz" "$name"
    rm -r "$folder"
    echo "$folder.tar.gz"
}

case $kind in
deb) deb ;;
tarball) tarball ;;
*) echo "usage: package.sh deb|tarball STAGE OUTPUT" >&2; exit 1 ;;
esac

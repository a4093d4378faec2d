#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds a package of what `make install` installs.
#
#   package.sh deb STAGE OUTPUT       a Debian package; STAGE was filled by `make install PREFIX=/usr DESTDIR=STAGE`
#   package.sh tarball STAGE OUTPUT LIBRARY...
#                                     a tarball for any Linux with glibc 2.28 or later, which runs in any folder
#   package.sh rpm STAGE OUTPUT LIBRARY...
#                                     an RPM of the same programs as the tarball
#   package.sh image STAGE OUTPUT     a container image (../container/image.py)
#
#   MAINTAINER="Name <address>"       of the Debian package and the RPM; default: who builds it, as git knows
#
# Prints the path of the package. SHA256SUMS beside it has a line for each package. Needs Debian or Ubuntu, with
# dpkg-dev; for the RPM also rpm. glibc is not inside: a program that is linked statically as a whole could not load modules.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kind=$1 stage=$(realpath "$2") output=$3
shift 3
libraries=$*
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

maintainer=${MAINTAINER:-$(git -C "$root" config user.name) <$(git -C "$root" config user.email)>}

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
    sums
    echo "$file"
}

# Copies the libraries that are not in the programs into a folder.
shared_libraries() {
    for library in $libraries; do
        case $library in
        *.so) copy=$1/$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
            install -D -m 755 "$(realpath "$library")" "$copy"
            "$here/old_glibc.py" --check "$copy" ;;
        esac
    done
}

# The programs of the stage are those of build/RELEASE/portable/ (Makefile). $libraries are what they are linked with:
# static ones are in them, a shared one comes along in lib/.
tarball() {
    name=$product-server-$release-linux-$(uname -m)
    folder=$output/$name
    "$here/old_glibc.py" --check $programs
    rm -rf "$folder"
    install -d "$folder/lib"
    cp -a "$stage/usr/bin" "$stage/usr/share" "$folder/"
    shared_libraries "$folder/lib"
    "$here/contents.py" "$folder" --name "$product-server" --release "$release" --libraries $libraries
    chmod -R u=rwX,go=rX "$folder"
    tar -C "$output" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
        gzip -9n > "$folder.tar.gz"
    cp "$folder/sbom.spdx.json" "$folder.spdx.json"
    rm -r "$folder"
    sums
    echo "$folder.tar.gz"
}

# The programs are in a folder of their own, where they find their libraries; /usr/bin has links to them. The client
# library stays out: it is linked with the glibc of this machine.
rpm() {
    command -v rpmbuild > /dev/null || { echo "package: rpmbuild is missing (apt-get install rpm)" >&2; exit 1; }
    "$here/old_glibc.py" --check $programs
    home=usr/libexec/$product-server
    rm -rf "$stage"/usr/lib/libvalkey* "$stage/usr/lib/pkgconfig" "$stage/usr/include/valkey"
    install -d "$stage/$home/bin"
    for program in "$stage"/usr/bin/valkey-*; do
        mv "$program" "$stage/$home/bin/"
        ln -s "../libexec/$product-server/bin/${program##*/}" "$program"
    done
    shared_libraries "$stage/$home/lib"
    for name in valkey sentinel; do
        install -D -m 640 "$stage/usr/share/valkey/$name.conf" "$stage/etc/valkey/$name.conf"
    done
    "$here/contents.py" "$stage/usr/share/doc/$product-server" --name "$product-server" --release "$release" --libraries $libraries
    chmod -R u=rwX,go=rX "$stage/usr"
    work=$(mktemp -d)
    (cd "$stage" && find . \( -type f -o -type l \) ! -path './etc/*' -printf '/%P\n' | sort
        printf '%s\n' '%dir %attr(750,valkey,valkey) /etc/valkey' '%config(noreplace) %attr(640,valkey,valkey) /etc/valkey/*.conf' \
            "%dir /usr/share/doc/$product-server") | sed 's,^\(/usr/share/man/.*\),%doc \1,' > "$work/list"
    sed -e "s/@PRODUCT@/$product/" -e "s/@RELEASE@/$release/" -e "s/@MAINTAINER@/$maintainer/" "$here/server.spec.in" > "$work/spec"
    rpmbuild -bb --quiet --define "_topdir $work" --define "_rpmdir $work/rpms" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
        --define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
        --define "stage $stage" --define "list $work/list" "$work/spec" >&2
    file=$(basename "$work"/rpms/*.rpm)
    mv "$work/rpms/$file" "$output/$file"
    rm -r "$work"
    sums
    echo "$output/$file"
}

# One line for each package in the folder.
sums() {
    (cd "$output" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS)
}

case $kind in
deb) deb ;;
tarball) tarball ;;
rpm) rpm ;;
image) "$here/../container/image.py" "$stage" "$output" && sums ;;
*) echo "usage: package.sh deb|tarball|rpm|image STAGE OUTPUT [LIBRARY...]" >&2; exit 1 ;;
esac

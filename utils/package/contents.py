#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds to a package's folder what belongs to its programs.

    contents.py FOLDER --name NAME --release RELEASE --libraries FILE...

Documents: README.md and what its links lead to; a link to a file that the package does not have becomes plain text.
licenses/: the copyright file of each library, from its Debian package. sbom.spdx.json: SPDX 2.3, the libraries with
their versions and source packages. FILE is a library: .a is in the programs, .so in lib/.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENTS = ("README.md", "CHANGELOG.md", "COPYING", "SECURITY.md", "valkey.conf", "sentinel.conf", "docs")
LEFT_OUT = ("man",)  # in share/man
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^()\s]+)\)")


def copy_documents(folder):
    for name in DOCUMENTS:
        source = f"{ROOT}/{name}"
        if os.path.isdir(source):
            shutil.copytree(source, f"{folder}/{name}", ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        else:
            shutil.copy(source, f"{folder}/{name}")
    for top, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".md"):
                cut_links(f"{top}/{name}", folder)


def cut_links(path, folder):
    def kept_or_text(match):
        target = match.group(3).partition("#")[0]
        where = os.path.normpath(os.path.join(os.path.dirname(path), target))
        inside = os.path.commonpath((where, folder)) == folder
        if not target or re.match(r"[a-z]+:", target) or inside and os.path.exists(where):
            return match.group(0)
        return match.group(2)

    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(LINK.sub(kept_or_text, text))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def library(file):
    """What Debian's packages know about a library."""
    for path in (file, os.path.realpath(file), re.sub("^/usr", "", file), f"/usr{file}"):
        found = subprocess.run(("dpkg", "-S", path), capture_output=True, text=True, check=False).stdout
        if found:
            break
    else:
        raise SystemExit(f"contents: no Debian package has {file}")
    package = found.partition(": ")[0]
    form = "${Package} ${source:Package} ${source:Version} ${Homepage}"
    name, source, version, *home = output("dpkg-query", "-W", f"-f={form}", package).split()
    return {"file": file, "package": name, "source": source, "version": version, "home": home[0] if home else "NOASSERTION"}


def copy_licenses(folder, libraries):
    os.makedirs(f"{folder}/licenses", exist_ok=True)
    for one in libraries:
        shutil.copy(f"/usr/share/doc/{one['package']}/copyright", f"{folder}/licenses/{one['source']}.txt")


def timestamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def spdx_package(identifier, name, version, home, licence, **more):
    return {"SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": home, "filesAnalyzed": False,
            "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def write_sbom(folder, name, release, libraries):
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    main = "SPDXRef-Package-server"
    packages = [spdx_package(main, name, release, "NOASSERTION", "BSD-3-Clause")]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": main, "relationshipType": "DESCRIBES"}]
    done = set()
    for one in libraries:
        if one["source"] in done:
            continue
        done.add(one["source"])
        identifier = "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", one["source"])
        locator = f"pkg:deb/debian/{one['source']}@{one['version']}?arch=source"
        packages.append(spdx_package(
            identifier, one["source"], one["version"], one["home"], "NOASSERTION", supplier="Organization: Debian",
            licenseComments=f"licenses/{one['source']}.txt",
            externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
        kind = "STATIC_LINK" if one["file"].endswith(".a") else "DYNAMIC_LINK" if ".so" in one["file"] else "CONTAINS"
        relations.append({"spdxElementId": main, "relatedSpdxElement": identifier, "relationshipType": kind})
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{release}",
                "documentNamespace": f"urn:sha256:{digest}",
                "creationInfo": {"created": timestamp(epoch),
                                 "creators": ["Tool: utils/package/contents.py"]},
                "packages": packages, "relationships": relations}
    with open(f"{folder}/sbom.spdx.json", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--name", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--libraries", nargs="*", default=[])
    options = parser.parse_args()
    folder = os.path.abspath(options.folder)
    os.makedirs(folder, exist_ok=True)
    libraries = [library(file) for file in dict.fromkeys(options.libraries)]
    copy_documents(folder)
    copy_licenses(folder, libraries)
    write_sbom(folder, options.name, options.release, libraries)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and links a program that names every identifier of tests/assets/client_names.txt: those that programs written
for libvalkey use. Without arguments the client library of this tree is checked; another one with

    client_names.py --include DIR --link FILE...     DIR has valkey/valkey.h; FILE: libraries or -l options

Adapters are checked if the header of their event loop is there, or a stand-in for it (tests/c/adapters/standin)."""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
NAMES = os.path.join(ROOT, "tests/assets/client_names.txt")
STANDIN = os.path.join(ROOT, "tests/c/adapters/standin")
PACKAGES = {"glib": "glib-2.0", "qt": "Qt5Core", "libsdevent": "libsystemd", "ivykis": "ivykis", "libevent": "libevent",
            "libuv": "libuv", "libev": None}
LINKED = {"libev": ["-lev"]}


def read_names(path=NAMES):
    """[(header, [(kind, name, rest)])]"""
    headers = []
    with open(path) as file:
        rows = file.readlines()
    for line in rows:
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "header":
            headers.append((words[1], []))
            continue
        name, _, rest = line.strip()[len(words[0]) + 1:].partition(":" if words[0] == "type" else " ")
        headers[-1][1].append((words[0], name.strip(), rest.split()))
    return headers


def lines_of(kind, name, rest, number):
    """The part of a program that needs the identifier."""
    if kind == "macro":
        lines = [f"#ifndef {name}", f"#error {name} is not defined", "#endif"]
        if rest:
            # The preprocessor must know the value, too.
            lines += [f"#if ({name}) != ({rest[0]})", f"#error {name} is not {rest[0]}", "#endif"]
        return lines
    if kind == "constant":
        return [f"static const int constant_{number} = {name};", f"int use_{number}(void);",
                f"int use_{number}(void) {{ return constant_{number}; }}"]
    if kind == "type":
        # Functions and what is opaque have no size.
        opaque = name == "valkeyTLSContext" or (not rest and re.search(r"Fn$|Callback$", name))
        sizes = [f"sizeof({name}{' *' if opaque else ''})"] + [f"sizeof((({name} *)0)->{field})" for field in rest]
        return [f"size_t size_{number}(void);", f"size_t size_{number}(void) {{ return {' + '.join(sizes)}; }}"]
    if kind == "function":
        return [f"void *function_{number}(void);", f"void *function_{number}(void) {{ return (void *){name}; }}"]
    return [f"void *variable_{number}(void);", f"void *variable_{number}(void) {{ return (void *)&{name}; }}"]


def program(headers):
    lines = ["#include <stddef.h>"]
    number = 0
    for header, names in headers:
        lines.append(f"#include <{header}>")
        for kind, name, rest in names:
            number += 1
            lines += lines_of(kind, name, rest, number)
    return "\n".join(lines + ["int main(void) { return 0; }", ""]), number


def compile_and_link(headers, include, link, language="c", flags=()):
    """Returns the number of identifiers; raises RuntimeError with the compiler's messages."""
    text, number = program(headers)
    compiler = ["g++", "-std=c++17", "-fPIC"] if language == "c++" else ["cc", "-std=gnu11"]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "names.cc" if language == "c++" else "names.c")
        with open(source, "w") as file:
            file.write(text)
        run = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}", *flags, source,
                              "-o", os.path.join(folder, "names"), *link], stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    return number


def adapter_flags(name):
    """(flags to compile, flags to link); None if its event loop is not there."""
    if name not in PACKAGES:
        return [f"-I{STANDIN}", "-Wno-unused-function"], []
    if PACKAGES[name] is None:
        return ([], LINKED[name]) if os.path.exists("/usr/include/ev.h") else None
    run = [subprocess.run(["pkg-config", what, PACKAGES[name]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) for what in ("--cflags", "--libs")]
    return None if run[0].returncode else tuple(r.stdout.split() for r in run)


def own_library(folder):
    """Compiles the library of this tree; returns what to link."""
    out = os.path.join(folder, "libvalkey.so")
    sources = sorted(glob.glob(os.path.join(ROOT, "src/clientlib/**/*.c"), recursive=True))
    subprocess.run(["cc", "-std=gnu11", "-shared", "-fPIC", "-DHAVE_TLS", "-fvisibility=hidden", "-pthread", f"-I{ROOT}/src",
                    f"-I{ROOT}/src/clientlib", *sources, "-o", out, "-lssl", "-lcrypto", "-lm"], check=True)
    return [out]


def check(include, link, report=print):
    """Returns the number of identifiers that were checked."""
    headers = read_names()
    main = [h for h in headers if "/adapters/" not in h[0]]
    total = compile_and_link(main, include, link)
    for header in headers:
        if "/adapters/" not in header[0]:
            continue
        adapter = os.path.basename(header[0])[:-2]
        flags = adapter_flags(adapter)
        if flags is None or (adapter == "qt" and not os.path.exists("/usr/bin/g++")):
            report(f"skipped: {header[0]}, its library is not installed")
            continue
        total += compile_and_link([header], include, [*link, *flags[1]], "c++" if adapter == "qt" else "c", flags[0])
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include")
    parser.add_argument("--link", nargs="+", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        include, link = args.include, args.link
        if not include:
            include, link = os.path.join(ROOT, "src/clientlib"), own_library(folder)
        try:
            print(check(include, link), "identifiers")
        except RuntimeError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a program is linked with so that it runs with glibc 2.28 and later, on a machine whose glibc is newer.

    old_glibc.py FOLDER [COMPILER...]

glibc keeps the old versions of its functions for programs that were linked long ago, but the linker takes the newest.
The libraries in FOLDER have the names and versions of this machine's glibc without those after LEAST, and no code: only
the linker reads them, and the program gets the system's own glibc when it starts. A function that is newer than LEAST is
missing at link time; old_glibc.c has those that this project needs. Use: -LFOLDER before other folders, and the options
in FOLDER/options.

    old_glibc.py --check PROGRAM...

Fails if a program or library needs a version after LEAST.
"""

import os
import re
import subprocess
import sys

LEAST = (2, 28)
# Before glibc 2.34 these libraries had functions that are in libc now; a program of today still has to load them.
PARTS = {"libpthread.so": "libpthread.so.0", "libdl.so": "libdl.so.2", "librt.so": "librt.so.1"}
SYMBOL = re.compile(r"^([0-9a-f]+) (.)(.{5})(.) (\S+)\s+([0-9a-f]+)\s+\(?GLIBC_([0-9.]+)\)?\s+(\S+)$")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def number(version):
    return tuple(int(part) for part in version.split("."))


def symbols(library):
    """Name -> (version, address, is_object, size, is_weak): the newest version up to LEAST of each defined symbol."""
    found = {}
    for line in output("objdump", "-T", library).splitlines():
        match = SYMBOL.match(line)
        if not match or match.group(5) in ("*UND*", "*ABS*"):
            continue
        address, binding, _, kind, section, size, version, name = match.groups()
        if number(version) > LEAST or section.startswith(".t") and section != ".text":
            continue
        if name not in found or number(version) > number(found[name][0]):
            found[name] = (version, address, kind == "O", int(size, 16), "w" in match.group(0)[17:24])
    return found


def source(found):
    """Assembly with a label per symbol. Names of one variable stay at one address, or a program that has a copy of it
    under one name would not share it with the library, which uses another."""
    lines = [".text"]
    variables = {}
    for name, (_, address, is_object, size, is_weak) in sorted(found.items()):
        if is_object:
            variables.setdefault(address, []).append((name, size, is_weak))
        else:
            lines += [f".globl {name}", f".type {name}, %function", f"{name}:"]
    lines.append(".bss")
    for names in variables.values():
        lines.append(".balign 32")
        for name, size, is_weak in names:
            lines += [f".{'weak' if is_weak else 'globl'} {name}", f".type {name}, %object", f".size {name}, {size}", f"{name}:"]
        lines.append(f".zero {max(size for _, size, _ in names) or 1}")
    return "\n".join(lines + ['.section .note.GNU-stack,"",%progbits', ""])


def version_script(found):
    versions = {}
    for name, (version, *_) in found.items():
        versions.setdefault(version, []).append(name)
    return "".join(f"GLIBC_{version} {{ {' '.join(f'{name};' for name in sorted(names))} }};\n"
                   for version, names in sorted(versions.items(), key=lambda item: number(item[0])))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def make_library(compiler, folder, soname, found):
    path = os.path.join(folder, soname)
    write(f"{path}.s", source(found))
    write(f"{path}.map", version_script(found))
    script = [f"-Wl,--version-script,{path}.map"] if found else []
    output(*compiler, "-shared", "-nostdlib", "-o", path, f"{path}.s", f"-Wl,-soname,{soname}", *script)
    return path


def make(folder, compiler):
    os.makedirs(folder, exist_ok=True)
    where = {name: output(*compiler, f"-print-file-name={name}").strip() for name in ("libc.so.6", "libm.so.6", "libc_nonshared.a")}
    loader = re.search(r"\[Requesting program interpreter: (.*)\]", output("readelf", "-l", sys.executable)).group(1)
    made = {name: make_library(compiler, folder, name, symbols(path)) for name, path in
            (("libc.so.6", where["libc.so.6"]), ("libm.so.6", where["libm.so.6"]), (os.path.basename(loader), loader))}
    here = os.path.dirname(os.path.abspath(__file__))
    extra = os.path.join(os.path.abspath(folder), "libold_glibc.a")
    output(*compiler, "-O2", "-fPIE", "-Wall", "-Wextra", "-Werror", "-c", "-o", f"{folder}/old_glibc.o", f"{here}/old_glibc.c")
    if os.path.exists(extra):
        os.remove(extra)
    output("ar", "rcs", extra, f"{folder}/old_glibc.o")
    paths = {name: os.path.abspath(path) for name, path in made.items()}
    write(f"{folder}/libc.so", f"GROUP({paths['libc.so.6']} {extra} {where['libc_nonshared.a']} "
                               f"AS_NEEDED({paths[os.path.basename(loader)]}))\n")
    write(f"{folder}/libm.so", f"INPUT({paths['libm.so.6']})\n")
    for name, soname in PARTS.items():
        write(f"{folder}/{name}", f"INPUT({os.path.abspath(make_library(compiler, folder, soname, {}))})\n")
    write(f"{folder}/options", "-Wl,--wrap=__libc_start_main -Wl,--push-state,--no-as-needed -lpthread -ldl -lrt -Wl,--pop-state\n")


def too_new(program):
    """The symbols of a version after LEAST that the program needs."""
    needed = re.findall(r"\*UND\*.*?\(?GLIBC_(\d[0-9.]*)\)?\s+(\S+)", output("objdump", "-T", program))
    return sorted(f"{name} (glibc {version})" for version, name in needed if number(version) > LEAST)


def main(arguments):
    if arguments and arguments[0] == "--check":
        failed = {program: too_new(program) for program in arguments[1:]}
        for program, names in failed.items():
            if names:
                print(f"{program} needs a glibc after {'.'.join(map(str, LEAST))}: {', '.join(names)}", file=sys.stderr)
        return int(any(failed.values()))
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    make(arguments[0], arguments[1:] or ["gcc"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

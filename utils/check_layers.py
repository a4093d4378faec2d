#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layers: src/layers.txt against the includes and the symbols of the objects.

usage: check_layers.py [--objects DIR]      DIR: build/debug, made without LTO, which hides names

1. A file includes only its own folder and those on its folder's row; the table has no circle.
2. Across folders only public headers are included (see layers.txt); *_priv.h never is.
3. The same for symbols: an undefined name that another folder defines obeys the table, so a
   hand-written `extern` is no way round it.
4. Data that is not const is named by its own folder only. The one exception is engineHot.
5. Sockets and files are the business of io, malloc that of base/alloc, fork that of a few files.
6. Circles of files inside a folder are listed; more than four files in one are a warning. In the folders of the
   row `read downwards` there is none.
7. A folder of a row `pure` includes, through headers, too, only what the row lists; it reads no clock, calls
   only functions of those folders and of C that depend on nothing but their arguments, and has no data that
   is not const.
8. The files of a folder of a row `headers` include, through headers, too, no more lines of headers of src/ at the median.
9. An exported name has a user: another file, its own one, or the tests alone if it ends an instance
   or verifies one. The client library and the interface of modules are for others.
Exceptions stand with a reason in check_exceptions.txt; one that is no longer needed is an error.
"""
import argparse, os, re, statistics, subprocess, sys
from collections import defaultdict

sys.path.insert(0, os.path.dirname(__file__))
from exceptions_file import Exceptions

SYSTEM_CALLS = set("""socket accept accept4 connect bind listen recv recvfrom recvmsg send sendto sendmsg
    read write readv writev pread pwrite preadv pwritev open openat creat open64 openat64 fopen fopen64
    fdopen fsync fdatasync epoll_create epoll_create1 epoll_wait epoll_ctl poll select
    pthread_create""".split())
ALLOCATION = set("""malloc calloc realloc free posix_memalign aligned_alloc memalign strdup strndup
    asprintf vasprintf getline getdelim open_memstream""".split())
FORKS = {"fork", "vfork", "posix_spawn"}
EXPORTS = ("clientlib/", "module/generated/")  # for programs of others, and modules
NOT_PURE = {"base/clock"}  # of the folders that a pure one may include
PURE_CALLS = set("""memchr memcmp memcpy memmem memmove memrchr memset strchr strcmp strlen strnlen strstr strtoll
    bsearch qsort snprintf inet_pton localtime_r strftime CRYPTO_memcmp EVP_sha256 HMAC""".split())
MODULE_NAME = re.compile(r"VM_|ValkeyModule_")
FOR_TESTS = re.compile(r"(Clear|Free|Verify|Uninstall)$")  # what ends an instance, or checks one
NOT_CODE = re.compile(r"/\*.*?\*/", re.S)
ALLOWED = {  # file: calls it may make in spite of the rules below
    "base/alloc": ALLOCATION,
    # A library of its own: programs link it without base and io.
    "clientlib/alloc": ALLOCATION,
    "clientlib/socket": {"socket", "connect", "bind", "recv", "send", "poll", "read"},
    "base/log": {"open", "open64", "write"},
    "engine/child": FORKS,
    "io/process": FORKS,
    "tools/backup/child": FORKS,
    # /dev/null, the pid file, and the datagram to systemd.
    "server/daemon": FORKS | {"open", "open64", "fopen", "fopen64", "socket", "sendto"},
    "server/crash": {"write"},
}


def read_table(path):
    rows, public, pure, read, headers = {}, {}, {}, {}, {}
    for line in open(path):
        match = re.match(r"(public |pure |read |headers )?\s*([a-z]+)\s*:(.*)", line.split("#")[0])
        if match:
            table = {"public ": public, "pure ": pure, "read ": read, "headers ": headers}.get(match[1], rows)
            table[match[2]] = match[3].split()
    return rows, public, pure, read.get("downwards", []), headers


def circles(graph):
    """The strongly connected parts of more than one node (Tarjan, without recursion)."""
    index, low, stack, found = {}, {}, [], []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, successors = work[-1]
            advanced = False
            for nxt in successors:
                if nxt not in graph:
                    continue
                if nxt not in index:
                    index[nxt] = low[nxt] = len(index)
                    stack.append(nxt)
                    work.append((nxt, iter(graph[nxt])))
                    advanced = True
                    break
                if nxt in stack:
                    low[node] = min(low[node], index[nxt])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                part = []
                while not part or part[-1] != node:
                    part.append(stack.pop())
                if len(part) > 1:
                    found.append(sorted(part))
    return found


def source_files():
    """Yields (folder, path without src/) of every .c and .h."""
    for top, _, names in os.walk("src"):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(top, name), "src")
            if name.endswith((".c", ".h")) and os.sep in path:
                yield path.split(os.sep)[0], path


def is_public(folder, header, public):
    inner = header[len(folder) + 1:]
    listed = public.get(folder, [folder + ".h"])
    return inner in listed or ("*" in listed and not inner.endswith("_priv.h"))


def check_includes(rows, public, fail):
    for circle in circles(rows):
        fail("table", " ".join(circle), "src/layers.txt has a circle: " + " ".join(circle))
    for folder, path in source_files():
        if folder not in rows:
            fail("include", path, f"{path}: folder {folder} has no row in src/layers.txt")
            continue
        text = open(os.path.join("src", path), errors="replace").read()
        for number, line in enumerate(text.split("\n"), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            header, target = match[1], match[1].split("/")[0]
            where = f"src/{path}:{number}"
            if "/" not in header:
                fail("include", f"{path} {header}", f"{where}: include {header} without its folder")
            elif target != folder and target not in rows[folder]:
                fail("include", f"{path} {header}", f"{where}: {folder} may not include {header}")
            elif target != folder and not is_public(target, header, public):
                fail("include", f"{path} {header}", f"{where}: {header} is no door of {target}")


def read_includes():
    """Path below src -> headers that it includes."""
    includes = {}
    for _, path in source_files():
        text = open(os.path.join("src", path), errors="replace").read()
        includes[path] = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)
    return includes


def check_pure_includes(pure, fail):
    """What the files of pure folders include, and those headers in turn."""
    includes = read_includes()
    for path in sorted(includes):
        folder = path.split("/")[0]
        if folder not in pure:
            continue
        # Inline functions of the clock have no symbol.
        code = NOT_CODE.sub("", open(os.path.join("src", path), errors="replace").read())
        for name in sorted(set(re.findall(r"\bclock[A-Z]\w*(?=\()", code))):
            fail("pure", f"{path} {name}", f"src/{path}: {folder} is pure, but it calls {name}()")
        work, seen = [(path, path)], {path}
        while work:
            header, way = work.pop()
            for inner in includes.get(header, ()):
                if inner in seen:
                    continue
                seen.add(inner)
                work.append((inner, f"{way} > {inner}"))
                if inner.split("/")[0] not in (folder, *pure[folder]) and inner not in pure[folder]:
                    fail("pure", f"{path} {inner}", f"src/{path}: {folder} is pure, but it includes {way} > {inner}")


def header_lines(path, includes, lines):
    """The lines of all headers of src/ that a file includes, and that these include."""
    work, seen = [path], {path}
    while work:
        inner = set(includes.get(work.pop(), ())) - seen
        seen |= inner
        work += inner
    return sum(lines.get(header, 0) for header in seen - {path})


def check_headers(headers, fail):
    includes = read_includes()
    lines = {path: open(os.path.join("src", path), "rb").read().count(b"\n") for path in includes}
    for folder, (most,) in headers.items():
        seen = [header_lines(path, includes, lines) for path in includes if path.startswith(folder + "/") and path.endswith(".c")]
        middle = statistics.median(seen)
        print(f"layers: {folder} sees {middle:.0f} header lines at the median, {max(seen)} at most")
        if middle > int(most):
            fail("headers", folder, f"src/{folder} sees {middle:.0f} header lines at the median, more than {most}")


def check_pure_symbols(pure, lacks, writable, owners, fail):
    for stem in sorted(lacks):
        folder = stem.split("/")[0]
        if folder not in pure:
            continue
        for name in sorted(lacks[stem]):
            of = owners[name]
            allowed = any(o.split("/")[0] in (folder, *pure[folder]) and o not in NOT_PURE for o in of) if of else \
                name in PURE_CALLS or name.startswith("_")  # of the compiler
            if not allowed:
                where = min(of) if of else "the system"
                fail("pure", f"{stem} {name}", f"src/{stem}.c: {folder} is pure, but it uses {name} of {where}")
        for name in sorted(writable[stem]):
            fail("pure", f"{stem} {name}", f"src/{stem}.c: {folder} is pure, but {name} is data that is not const")


def read_objects(directory):
    """Per object "folder/name": names it defines, names it references, its shared writable data, and all of it."""
    defines, lacks, data, writable = {}, {}, {}, {}
    for folder, path in source_files():
        stem = path[:-2]
        file = os.path.join(directory, stem + ".o")
        if not path.endswith(".c") or not os.path.exists(file):
            continue
        defines[stem], lacks[stem], data[stem], writable[stem] = set(), set(), set(), set()
        listing = subprocess.run(["nm", "-f", "sysv", file], capture_output=True, text=True, check=True)
        for line in listing.stdout.split("\n"):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 7 or cells[0] == "Name":
                continue
            name, kind, section = cells[0], cells[2], cells[6]
            if kind == "U":
                lacks[stem].add(name)
                continue
            is_const = section.startswith(".data.rel.ro")
            if kind in "DBCGdbg" and not is_const:
                writable[stem].add(name)
            if kind.islower():
                continue
            defines[stem].add(name)
            if kind in "DBCG" and not is_const:
                data[stem].add(name)
    return defines, lacks, data, writable


def may_call(stem, name):
    folder = stem.split("/")[0]
    if name in ALLOWED.get(stem, ()):
        return True
    if name in ALLOCATION or name in FORKS:
        return False
    return folder in ("io", "tools") or name not in SYSTEM_CALLS


def check_symbols(rows, pure, downwards, directory, fail):
    defines, lacks, data, writable = read_objects(directory)
    owners = defaultdict(set)
    for stem, names in defines.items():
        for name in names - {"main"}:
            owners[name].add(stem)
    for stem in defines:
        folder = stem.split("/")[0]
        for name in sorted(lacks[stem]):
            folders = {owner.split("/")[0] for owner in owners[name]}
            if folders and folder not in folders and not folders & set(rows[folder]):
                fail("symbol", f"{stem} {name}", f"src/{stem}.c: {folder} may not call {name} of {min(folders)}")
            if not folders and not may_call(stem, name):
                fail("call", f"{stem} {name}", f"src/{stem}.c: calls {name}(), which is not its business")
        for name in sorted(data[stem] - {"engineHot"}):
            users = {user.split("/")[0] for user in lacks if name in lacks[user]}
            for user in sorted(users - {folder}):
                fail("data", f"{stem} {name}", f"src/{stem}.c: {name} is not const, and {user} names it")
    check_pure_symbols(pure, lacks, writable, owners, fail)
    check_callers(defines, lacks, fail)
    report_circles(lacks, owners, downwards, fail)
    return len(defines)


def words_of_tests():
    """All words of the C sources of tests/."""
    words = set()
    for top, _, names in os.walk("tests"):
        for name in names:
            if name.endswith((".c", ".h", ".cc")):
                words |= set(re.findall(r"\w+", open(os.path.join(top, name), errors="replace").read()))
    return words


def check_callers(defines, lacks, fail):
    """Fails for exported names that nothing uses, or tests alone that need more than FOR_TESTS."""
    used = set().union(*lacks.values())
    tested = words_of_tests()
    for stem in sorted(defines):
        if stem.startswith(EXPORTS):
            continue
        names = defines[stem] - used - {"main"}
        text = open(f"src/{stem}.c", errors="replace").read() if names else ""
        for name in sorted(names):
            own = len(re.findall(rf"\b{name}\b", NOT_CODE.sub("", text))) > 1
            if MODULE_NAME.match(name) or own or name in tested and FOR_TESTS.search(name):
                continue
            who = "tests alone use" if name in tested else "nothing uses"
            fail("caller", f"{stem} {name}", f"src/{stem}.c: {who} {name}")


def report_circles(lacks, owners, downwards, fail):
    for folder in sorted({stem.split("/")[0] for stem in lacks}):
        graph = {}
        for stem in (s for s in lacks if s.split("/")[0] == folder):
            graph[stem] = {o for name in lacks[stem] for o in owners[name] if o.split("/")[0] == folder} - {stem}
        for circle in circles(graph):
            if any(os.path.dirname(circle[0]) == f for f in downwards):
                fail("circle", " ".join(circle), f"circle of files in a folder that reads downwards: {' '.join(circle)}")
                continue
            kind = "warning: circle of more than four files" if len(circle) > 4 else "note: circle"
            print(f"{kind}: {' '.join(circle)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", metavar="DIR")
    options = parser.parse_args()
    exceptions = Exceptions()
    rows, public, pure, downwards, headers = read_table("src/layers.txt")
    kinds = ["table", "include", "headers"]
    check_includes(rows, public, exceptions.fail)
    check_pure_includes(pure, exceptions.fail)
    check_headers(headers, exceptions.fail)
    if options.objects:
        kinds += ["symbol", "call", "data", "caller", "pure", "circle"]
        count = check_symbols(rows, pure, downwards, options.objects, exceptions.fail)
        print(f"layers: symbols of {count} objects")
    sys.exit(exceptions.finish(kinds))


main()

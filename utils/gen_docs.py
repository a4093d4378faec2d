#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Generates man pages, shell completion and a table for valkey-cli from the directives, and the systemd template unit from the
plain one.

    gen_docs.py            writes docs/man/, utils/completion/, utils/systemd/valkey-server@.service and
                           src/tools/cli/generated/directive_table.c
    gen_docs.py --check    lists stale files and fails if there are any (`make check`)

Sources: the tables of directives, the explanations in valkey.conf, utils/man/*.in for the rest of a page, and the help of
valkey-cli and valkey-benchmark (tool_completion.py).
A switch below is included if the server's source contains it.
"""
import glob, os, re, sys

from conf_file import read_conf
from option_tables import CONSTANTS, read_options
import tool_completion

ROOT = os.path.join(os.path.dirname(__file__), "..")
# Long name, short name, arguments, description. Switches that the server does not have are omitted.
SWITCHES = [
    ("--check-config", None, "[FILE]", "Checks the file and the directives after it, reports all errors and exits "
     "with 0 if there are none, else with 2."),
    ("--strict", None, "", "After --check-config: directives without effect are errors, too."),
    ("--migrate-config", None, "FILE", "Writes the file of another server as one for this server to standard output, or to "
     "the file after -o, says what was changed and exits, with 2 if lines have to be looked at."),
    ("--print-config", None, "[FILE]", "Prints the value of every directive and its origin, and exits."),
    ("--check-system", None, "", "Checks for unfavourable system settings and exits, with 1 if there are "
     "any."),
    ("--test-memory", None, "MEGABYTES", "Tests this amount of memory repeatedly, to detect defective memory modules."),
    ("--sentinel", None, "", "Sentinel mode, as if started under the name valkey-sentinel."),
    ("--version", "-v", "", "Prints the version and exits."),
    ("--help", "-h", "", "Prints the command line options and exits."),
]
FILE_OPTIONS = re.compile(r"(^include|file|^unixsocket|^dir|-dir)$")
# Bounds that are only those of the C type.
UNBOUNDED = {CONSTANTS[name] for name in ("INT_MAX", "INT_MIN", "INT64_MAX", "INT64_MIN", "UINT32_MAX", "UINT64_MAX")}
PROGRAMS = ("valkey-server", "redis-server", "valkey-sentinel", "redis-sentinel")


def known_switches():
    paths = [p for folder in ("engine", "server") for p in glob.glob(os.path.join(ROOT, "src", folder, "*.c"))]
    sources = "".join(open(path).read() for path in paths)
    unknown = set(re.findall(r'"(--[a-z][a-z-]+)"', sources)) - {switch[0] for switch in SWITCHES}
    if unknown:
        sys.exit(f"docs: SWITCHES in utils/gen_docs.py lacks {' '.join(sorted(unknown))}")
    return [switch for switch in SWITCHES if f'"{switch[0]}"' in sources]


def version():
    return re.search(r'SERVER_VERSION "([^"]+)"', open(os.path.join(ROOT, "src", "base", "build_info.h")).read())[1]


# ------------------------------------------------------------------ man pages


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", text, flags=re.M)


def bound(option, number):
    if number in UNBOUNDED:
        return None
    if option.kind == "octal":
        return f"{number:o}"
    for unit, size in (("gb", 1024**3), ("mb", 1024**2), ("kb", 1024)):
        if option.is_memory() and number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def possible(option):
    """A short description of the values of an option."""
    if option.kind == "bool":
        return "yes or no"
    if option.words:
        return ("some of " if "multi_word" in option.flags else "") + ", ".join(option.words)
    if option.min is None:
        return ""
    low, high = bound(option, option.min), bound(option, option.max)
    what = "bytes" if option.is_memory() else "number"
    if option.kind == "memory_or_percent":
        what = "bytes or percent"
    if option.kind == "octal":
        what = "octal"
    if low is None and high is None:
        return what
    if low is None:
        return f"{what}, {high} at most"
    return f"{what}, {low} to {high}" if high else f"{what}, {low} or more"


def marks_of(block):
    words = {"start": "only at start", "protected": "CONFIG SET requires enable-protected-configs",
             "secret": "omitted from MONITOR and logs", "hidden": "not matched by patterns of CONFIG GET"}
    return [words[mark] for mark in words if mark in block.marks]


def block_page(block, options):
    lines = []
    for index, (_, name, value) in enumerate(block.entries):
        lines.append(".TP" if index == 0 else ".TQ")
        notes = "; ".join(filter(None, [possible(options[name])]))
        head = f"\\fB{roff(name)}\\fR {roff(value)}".rstrip()
        lines.append(head + (f"  \\fI({roff(notes)})\\fR" if notes else ""))
    for index, paragraph in enumerate(block.paragraphs):
        lines += [".IP"] * (index > 0) + [roff(paragraph)]
    marks = marks_of(block)
    if marks:
        lines.append(roff(f"[{'; '.join(marks)}]"))
    return lines


def intro_page(intro):
    """Indented lines are printed verbatim, others are filled. The page lists the marks in words instead."""
    lines, shown = [], False
    for line in intro[: intro.index("Marks before an explanation:")]:
        wants_shown = line.startswith("  ")
        if wants_shown != shown and (line or shown):
            lines.append(".EX" if wants_shown else ".EE")
            shown = wants_shown
        if line:
            lines.append(roff(line))
        elif lines and not shown and lines[-1] != ".PP":
            lines.append(".PP")
    while lines[-1] == ".PP":
        lines.pop()
    return lines + [".EE"] * shown


def conf_page(intro, blocks, options):
    lines, section = [], None
    for block in blocks:
        if block.section != section:
            section = block.section
            lines.append(f".SH {roff(section).upper()}")
        lines += block_page(block, options)
    return {"INTRO": intro_page(intro), "SECTIONS": lines}


def server_page():
    lines = []
    for name, short, argument, text in known_switches():
        head = ", ".join(f"\\fB{roff(n)}\\fR" for n in (short, name) if n)
        lines += [".TP", head + (f" \\fI{argument}\\fR" if argument else ""), roff(text)]
    exit_two = []
    if any(name == "--check-config" for name, *_ in known_switches()):
        exit_two = [".TP", ".B 2", ".BR \\-\\-check\\-config \" or \" \\-\\-print\\-config", "found errors in the configuration."]
    note = ["A configuration file that explains every directive is installed as", ".IR share/valkey/valkey.conf ."]
    return {"SWITCHES": lines, "EXIT_TWO": exit_two, "PREFIX_NOTE": note}


def page(name, parts):
    title, section = name.rsplit(".", 1)
    text = open(os.path.join(ROOT, "utils", "man", name + ".in")).read()
    for part, lines in parts.items():
        text = text.replace(f"@{part}@\n", "".join(line + "\n" for line in lines))
    return (f'.\\" SPDX-License-Identifier: BSD-3-Clause\n.\\" Generated by utils/gen_docs.py; do not edit.\n'
            f'.TH {title.upper()} {section} "" "valkey {version()}" "Valkey"\n{text}')


# ------------------------------------------------------------------ completion


def values_of(option):
    return ["yes", "no"] if option.kind == "bool" else option.words


def option_names(options):
    """All names of directives, including aliases, and their options."""
    for option in sorted(options.values(), key=lambda o: o.name):
        if option.kind != "ignored":
            yield option.name, option
            if option.alias:
                yield option.alias, option


def bash_completion(options):
    names = list(option_names(options))
    words = [f"--{name}" for name, _ in names] + [n for s in known_switches() for n in s[:2] if n]
    by_values, files = {}, []
    for name, option in names:
        if values_of(option):
            by_values.setdefault(" ".join(values_of(option)), []).append(name)
        elif FILE_OPTIONS.search(name):
            files.append(name)
    files.append("check-config")
    cases = [f"    {'|'.join('--' + n for n in names)}) words='{values}' ;;"
             for values, names in sorted(by_values.items())]
    lines = ["# SPDX-License-Identifier: BSD-3-Clause",
             "# Generated by utils/gen_docs.py; do not edit. Completion of valkey-server for bash.",
             "_valkey_server() {",
             "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=",
             "    COMPREPLY=()", "    case $before in", *cases,
             f"    {'|'.join('--' + n for n in files)})",
             "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")", "        return ;;",
             "    esac",
             "    if [[ -n $words && $word != -* ]]; then",
             "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")",
             "    elif [[ $word == -* ]]; then",
             "        words='- " + " ".join(words) + "'",
             "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")",
             "    elif [[ $COMP_CWORD == 1 ]]; then",
             "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")", "    fi", "}",
             f"complete -o filenames -F _valkey_server {' '.join(PROGRAMS)}"]
    return "\n".join(lines) + "\n"


def zsh_completion(options):
    lines = [f"#compdef {' '.join(PROGRAMS)}", "# SPDX-License-Identifier: BSD-3-Clause",
             "# Generated by utils/gen_docs.py; do not edit. Completion of valkey-server for zsh.",
             "local -a options=("]
    for name, short, argument, text in known_switches():
        what = tool_completion.zsh_quoted(text.split(". ")[0].rstrip("."))
        action = ":file:_files" if "FILE" in argument else f":{argument}:" if argument else ""
        lines += [f"  '{n}[{what}]{action}'" for n in (short, name) if n]
    lines.append("  '-[reads directives from standard input]'")
    for name, option in option_names(options):
        notes = "; ".join(filter(None, [possible(option), f"default {option.default}" if option.default else ""]))
        action = f"({' '.join(values_of(option))})" if values_of(option) else ""
        if not action and FILE_OPTIONS.search(name):
            action = "_files"
        lines.append(f"  '*--{name}[{tool_completion.zsh_quoted(notes)}]:value:{action}'")
    lines += [")", "_arguments $options '1:configuration file:_files'"]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------ the unit for several servers


def template_unit():
    """valkey-server.service for the instance %i; only the names of file and directories differ."""
    text = open(os.path.join(ROOT, "utils", "systemd", "valkey-server.service")).read()
    head = """# SPDX-License-Identifier: BSD-3-Clause
# Generated by utils/gen_docs.py from valkey-server.service; do not edit.
#
# Several servers on one machine: valkey-server@NAME reads /etc/valkey/NAME.conf (give each a port of its own) and stores
# its data in /var/lib/valkey-NAME. To change all instances: systemctl edit valkey-server@; one: valkey-server@NAME.
"""
    text = head + text[text.index("[Unit]") :]
    text = re.sub(r"^(Description=.*)$", r"\1 (%i)", text, flags=re.M)
    text = text.replace("/etc/valkey/valkey.conf", "/etc/valkey/%i.conf")
    return re.sub(r"^(WorkingDirectory=.*|\w+Directory=valkey)$", r"\1-%i", text, flags=re.M)


# ------------------------------------------------------------------ the directives as valkey-cli --migrate-check knows them


def quoted(text):
    return "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def directive_table(options):
    rows = []
    for option in options.values():
        for name in filter(None, (option.name, option.alias)):
            rows.append(f"    {{{quoted(name)}, {quoted(option.default)}, {quoted(option.no_effect)}}},\n")
    return f"""/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All directives. Generated by utils/gen_docs.py out of the tables of directives; do not edit. */
#include "tools/cli/migrate_priv.h"

const knownDirective knownDirectives[] = {{
{"".join(sorted(rows))}}};

const int knownDirectiveCount = {len(rows)};
"""


# ------------------------------------------------------------------


def outputs():
    options = read_options()
    intro, blocks = read_conf()
    return {
        "docs/man/valkey-server.1": page("valkey-server.1", server_page()),
        "docs/man/valkey-sentinel.1": page("valkey-sentinel.1", {}),
        "docs/man/valkey-benchmark.1": page("valkey-benchmark.1", {}),
        "docs/man/valkey-check-aof.1": page("valkey-check-aof.1", {}),
        "docs/man/valkey-check-rdb.1": page("valkey-check-rdb.1", {}),
        "docs/man/valkey-cli.1": page("valkey-cli.1", {}),
        "docs/man/valkey.conf.5": page("valkey.conf.5", conf_page(intro, blocks, options)),
        "utils/completion/valkey-server.bash": bash_completion(options),
        "utils/completion/_valkey-server": zsh_completion(options),
        "utils/systemd/valkey-server@.service": template_unit(),
        "src/tools/cli/generated/directive_table.c": directive_table(options),
        **tool_completion.outputs(),
    }


def main():
    stale = []
    for path, text in outputs().items():
        full = os.path.join(ROOT, path)
        if os.path.exists(full) and open(full).read() == text:
            continue
        stale.append(path)
        if sys.argv[1:] != ["--check"]:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            open(full, "w").write(text)
    if sys.argv[1:] == ["--check"] and stale:
        sys.exit(f"docs: stale, run utils/gen_docs.py: {' '.join(stale)}")
    print(f"docs: {len(stale)} written" if stale else "docs: up to date")


if __name__ == "__main__":
    main()

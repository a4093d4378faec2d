# SPDX-License-Identifier: BSD-3-Clause
"""Makes docs/benchmarks.md, its plots, and table and words in README.md from the figures of report.py."""
import html
import os
import statistics
import textwrap

OURS, PEER = "#2563eb", "#9ca3af"
INK, FAINT = "#1f2937", "#d1d5db"
MARKS = "<!-- bench-report: begin -->", "<!-- bench-report: end -->"
PIPELINES = (1, 16, 100)
PARTS = {"cpu": "CPU time", "speed": "speed", "settings": "settings", "memory": "memory", "save": "saves",
         "sync": "synchronisation"}


# ------------------------------------------------------------------ plots


def text(x, y, words, anchor="start", size=13, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{INK}">{html.escape(words)}</text>')


def bar(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height}" fill="{colour}"/>'


def svg(width, height, title, parts):
    """A picture with a background of its own, so that it is readable on dark pages, too."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="{html.escape(title)}">\n'
            f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff" stroke="{FAINT}"/>\n'
            + text(16, 26, title, size=15, weight="bold") + "\n" + "\n".join(parts) + "\n</svg>\n")


def legend(x, y, peer):
    return [bar(x, y, 12, 12, OURS), text(x + 18, y + 11, "this server"), bar(x + 110, y, 12, 12, PEER),
            text(x + 128, y + 11, peer)]


def times(ours, theirs):
    """How many times less. Large ratios, those of tails of latencies, are not the same twice."""
    return f"{theirs / ours:.1f}" if theirs < 10 * ours else "over 10"


def plain(figure):
    """Three digits, or all before the point."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def bars_plot(title, peer, rows, scale, unit):
    """Pairs of bars: rows are (label, ours, peer); `scale` maps a row's figure to 0 .. 1."""
    width, left, room, step = 760, 150, 470, 46
    parts = legend(left, 38, peer)
    for at, (label, ours, theirs) in enumerate(rows):
        y = 66 + at * step
        parts.append(text(left - 10, y + 20, label, "end"))
        for figure, colour, top in ((ours, OURS, y), (theirs, PEER, y + 17)):
            length = room * scale(figure, theirs)
            parts += [bar(left, top, length, 15, colour), text(left + length + 6, top + 12, f"{plain(figure)} {unit}", size=12)]
        if ours * 1.05 < theirs:
            parts.append(text(width - 16, y + 20, times(ours, theirs) + " times less", "end", 12, "bold"))
    return svg(width, 72 + len(rows) * step, title, parts)


def lines_plot(title, peer, keys, ours, theirs):
    """Bytes a key over the number of keys."""
    width, height, left, top, right, bottom = 760, 330, 60, 64, 740, 290
    most = max(max(ours), max(theirs)) * 1.1

    def place(count, figure):
        return left + (count - keys[0]) / (keys[-1] - keys[0]) * (right - left), bottom - figure / most * (bottom - top)
    parts = legend(left, 38, peer)
    for mark in range(0, int(most) + 1, 20):
        y = place(keys[0], mark)[1]
        parts += [f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>', text(left - 8, y + 4, str(mark), "end", 12)]
    for part in range(5):
        count = keys[0] + (keys[-1] - keys[0]) * part // 4
        parts.append(text(place(count, 0)[0], bottom + 18, f"{count / 1e6:.3g} M", "middle", 12))
    for figures, colour in ((theirs, PEER), (ours, OURS)):
        points = " ".join("{:.1f},{:.1f}".format(*place(*pair)) for pair in zip(keys, figures))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
    parts.append(text((left + right) / 2, height - 8, "keys", "middle", 12))
    return svg(width, height, title, parts)


# ------------------------------------------------------------------ figures


def us(figure):
    return f"{figure:.3f}" if figure < 1 else f"{figure:.2f}"


def ms(figure_us):
    return f"{figure_us / 1000:,.{1 if figure_us < 100000 else 0}f} ms"


def overlap(ours, theirs):
    """Whether ranges (least, most) of rounds have something in common: their medians may differ by chance."""
    return ours[0] <= theirs[1] and theirs[0] <= ours[1]


def bounds(row, name):
    return row[name + "_least"], row[name + "_most"]


def times_of(row, more_is_better=False):
    """How many times less (or more), and that this says little if rounds of both servers overlap."""
    ours, theirs = ("peer", "ours") if more_is_better else ("ours", "peer")
    return times(row[ours], row[theirs]) + (" (rounds overlap)" if overlap(bounds(row, "ours"), bounds(row, "peer")) else "")


def cpu_row(results, command, pipeline):
    return next(row for row in results["cpu"]["figures"] if (row["command"], row["pipeline"]) == (command, pipeline))


def save_row(results, server, command, saves=True):
    return next(row for row in results["save"]["figures"]["rows"]
                if (row["server"], row["command"], row["saving"]) == (server, command, saves))


def peer_name(results):
    first = next(results[part] for part in PARTS if part in results)
    return "Valkey " + next(word[2:] for word in first["run"]["peer"].split() if word.startswith("v="))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def summary(results):
    """The table of README.md."""
    rows = []
    if "cpu" in results:
        for command in ("GET", "SET"):
            for pipeline in PIPELINES:
                row = cpu_row(results, command, pipeline)
                rows.append((f"{command}, pipeline {pipeline}: CPU a request", us(row["ours"]) + " us", us(row["peer"]) + " us",
                             times_of(row)))
    if "memory" in results:
        row = results["memory"]["figures"][0]
        ours, peer = statistics.mean(row["ours"]), statistics.mean(row["peer"])
        rows.append((f"memory of a key of 16 bytes and its value of {row['value']}", f"{ours:.1f} bytes", f"{peer:.1f} bytes",
                     times(ours, peer)))
    if "save" in results and not is_noise(results):
        figures = results["save"]["figures"]
        ours, peer = save_row(results, "ours", "SET"), save_row(results, "peer", "SET")
        rows.append((f"p99.9 of SET while {figures['keys'] // 1000000} M keys are saved", ms(ours["p99.9"]), ms(peer["p99.9"]),
                     times(ours["p99.9"], peer["p99.9"])))
    if "sync" in results:
        figures = results["sync"]["figures"]
        rows.append((f"full synchronisation of {figures['keys'] // 1000000} M keys", f"{figures['ours']:.1f} s",
                     f"{figures['peer']:.1f} s", times(figures["ours"], figures["peer"])))
    return table(("", "this server", peer_name(results), "times less"), rows) + f"\n\n{measured(results)}"


def machines(results):
    """The machines of all parts, each once, as texts."""
    runs = [results[part]["run"]["machine"] for part in PARTS if part in results]
    return list(dict.fromkeys(f"{m['processors']} processors, {m['model']}, {m['memory_gb']} GB, Linux {m['kernel']}" for m in runs))


def measured(results):
    """When and where the parts were measured."""
    parts = {}
    for part in PARTS:
        if part in results:
            run = results[part]["run"]
            when = f"{run['date'][:10]} on {run['machine']['processors']} x {run['machine']['model']}{busy_words(run)}"
            parts.setdefault(when, []).append(part)
    if len(parts) == 1:
        return f"Measured {next(iter(parts))}."
    return "Measured: " + "; ".join(f"{', '.join(PARTS[part] for part in some)} {when}" for when, some in parts.items()) + "."


def meaning(results):
    """The paragraph of README.md that says what the figures of the page mean, with their ranges."""
    words = ["Measured by `make bench-report` beside the peer's fastest build; what was set in both, and more, is in "
             "[benchmarks](docs/benchmarks.md). **What it means for you**:"]
    if "cpu" in results:
        rows = {p: [row for row in results["cpu"]["figures"] if row["pipeline"] == p] for p in PIPELINES}
        shares = {p: times_between((row["ours"], row["peer"]) for row in rows[p]) for p in PIPELINES}
        overlaps = any(overlap(bounds(row, "ours"), bounds(row, "peer")) for row in rows[1])
        words.append(f"CPU per request is {shares[1]} times less over {len(rows[1])} commands without pipelines, where nearly all of the "
                     f"time is the kernel's{' and rounds of both servers overlap' if overlaps else ''}; {shares[16]} times with pipelines "
                     f"of 16, {shares[100]} with 100.")
    if "memory" in results:
        share = times_between((statistics.mean(row["ours"]) - 16 - row["value"], statistics.mean(row["peer"]) - 16 - row["value"])
                              for row in results["memory"]["figures"])
        words.append(f"Overhead per key is {share} times less, by the size of the value ([memory](docs/memory.md)).")
    if "save" in results and not is_noise(results):
        ours, peer = (save_row(results, server, "SET", False)["p99.9"] for server in ("ours", "peer"))
        words.append(f"Without a save p99.9 of SET was {ms(ours)}, the peer's {ms(peer)}, in the same run.")
    return textwrap.fill(" ".join(words), 185, break_long_words=False, break_on_hyphens=False)


def times_between(pairs):
    """The least and the greatest of times()."""
    least, *_, most = [times(*pair) for pair in sorted(pairs, key=lambda pair: pair[1] / pair[0])] * 2
    return least if least == most else f"{least} to {most}"


def busy_words(run):
    return f", while other programs used {run['other_load']} processors" if run["other_load"] >= 0.1 else ""


def is_noise(results):
    """Latencies without a save are not much smaller than those with one, so that they show the machine's load."""
    alone, saving = ([save_row(results, server, "SET", saves)["p99.9"] for server in ("ours", "peer")] for saves in (False, True))
    return max(alone) > max(saving) / 2


def how(results, part):
    run = results[part]["run"]
    rounds = "1 round" if run["rounds"] == 1 else f"{run['rounds']} rounds"
    place = f" on {run['machine']['model']}" if len(machines(results)) > 1 else ""
    return f"Measured {run['date']}{place}{' (quick form)' if run['quick'] else ''}, {rounds}{busy_words(run)}."


def cpu_section(results):
    rows = [(f"{row['command']}, P{row['pipeline']}", us(row["ours"]), f"{us(row['ours_least'])} to {us(row['ours_most'])}",
             us(row["peer"]), f"{us(row['peer_least'])} to {us(row['peer_most'])}", times_of(row))
            for row in results["cpu"]["figures"]]
    return f"""## CPU time of a request

{how(results, 'cpu')}

![CPU time of a request](benchmarks/cpu.svg)

User and system time of the server's process, divided by the requests: microseconds, medians of alternating rounds, and
the least and most of them. 50 connections of the peer's `valkey-benchmark`, which send 1 (P1), 16 (P16) or 100 requests before they
read the replies; 1 M keys of 16 bytes with values of 16; no save points, everything else as the servers start. At P1 nearly
all of it is the kernel's, for any server.

{table(("request, pipeline", "this server", "least to most", peer_name(results), "least to most", "times less"), rows)}
"""


def range_of(row, name, form):
    return f"{form(row[name])} ({form(row[name + '_least'])} to {form(row[name + '_most'])})"


def number(figure):
    return f"{figure:,.0f}"


def speed_section(results):
    rates, latencies = [], []
    for row in results["speed"]["figures"]:
        rates.append((row["command"], range_of(row, "ours", number), range_of(row, "peer", number), times_of(row, more_is_better=True)))
        for part, pair in row["latencies"].items():
            latencies.append((f"{row['command']}, {number(row['rate'])} a second", part, range_of(pair, "ours", number),
                              range_of(pair, "peer", number), verdict(pair)))
    return f"""## Requests a second and latency without pipelines

{how(results, 'speed')}

50 clients that wait for each reply, 100,000 keys of 16 bytes with values of 16; the generator has a processor of its own, the
server the others. Nearly all of the time is the kernel's. Medians of the rounds, and the least and most of them.

{table(("request", "this server, a second", peer_name(results) + ", a second", "times more"), rates)}

Latencies in microseconds when requests come at 60 % of what the slower server reaches, at times of their own, in slices of
0.1 s that alternate between the servers. "Equal" means that rounds of both servers overlap.

{table(("request", "", "this server", peer_name(results), ""), latencies)}
"""


def verdict(pair):
    if overlap(bounds(pair, "ours"), bounds(pair, "peer")):
        return "equal"
    less = pair["ours"] < pair["peer"]
    return f"{times(*((pair['ours'], pair['peer']) if less else (pair['peer'], pair['ours'])))} times {'less' if less else 'more'}"


def settings_section(results):
    rows = [(row["setting"], f"{row['command']}, P{row['pipeline']}", range_of(row, "ours", us), range_of(row, "peer", us), times_of(row))
            for row in results["settings"]["figures"]]
    run = results["settings"]["run"]
    other = run.get("tls_peer", run["peer"])
    tls = "" if other == run["peer"] else f"""
The peer of the rows TLS is another build, because the one of the other rows has no TLS: `{other}`."""
    return f"""## CPU time of a request with other settings and values

{how(results, 'settings')}

Microseconds, as in the first table: medians of alternating rounds, and the least and most of them. Values have 16 bytes where
nothing else is said. The append only file is synchronised every second and not rewritten; the node of a cluster has all slots.
Through the [gateway](gateway.md) of another node the time is that of both nodes; the peer, which has none, is asked itself.{tls}

{table(("setting", "request, pipeline", "this server", peer_name(results), "times less"), rows)}
"""


def memory_section(results):
    rows = []
    for row in results["memory"]["figures"]:
        ours, peer = statistics.mean(row["ours"]), statistics.mean(row["peer"])
        payload = 16 + row["value"]
        rows.append((row["value"], f"{ours:.1f}", f"{ours - payload:.1f}", f"{peer:.1f}", f"{peer - payload:.1f}",
                     times(ours - payload, peer - payload)))
    keys = results["memory"]["figures"][0]["keys"]
    return f"""## Memory of a key

{how(results, 'memory')}

![memory of a key](benchmarks/memory.svg)

`used_memory` over that of the empty server, divided by the keys: keys of 16 bytes with values as given, the mean of
{len(keys)} sizes of the keyspace from {keys[0]:,} to {keys[-1]:,}. Overhead is what remains after the bytes of key and value.

{table(("bytes of a value", "this server", "overhead", peer_name(results), "overhead", "times less overhead"), rows)}
"""


def save_section(results):
    figures = results["save"]["figures"]
    parts = [part for part in ("p50", "p99", "p99.9", "longest") if part in figures["rows"][0]]
    rows = [(("this server" if row["server"] == "ours" else peer_name(results)), row["command"],
             "during a save" if row["saving"] else "no save", *(row[part] for part in parts),
             row["seconds"] if row["saving"] else "", row["memory_mb"] if row["saving"] else "")
            for row in figures["rows"]]
    noise = (" **The machine was too busy to judge:** the latencies without a save are about as long as those beside one."
             if is_noise(results) else "")
    return f"""## Latency during a save

{how(results, 'save')}{noise}

![p99.9 during a save](benchmarks/save.svg)

{figures['keys']:,} keys with values of {figures['value']} bytes; {figures['rate']:,} requests a second of random keys from 50 clients,
at times of their own, whatever the server does, so that a stall counts for every request that it delays.
{textwrap.fill(figures['method'], 120)}
Microseconds, medians of the rounds; seconds of the save; memory that it takes for a time (of a fork: pages that were
duplicated). The main thread has a processor of its own, which is set in both servers; the generator and what saves share
another one. Both servers save in their default way: this one without a fork ([how](snapshots.md)).

{table(("server", "request", "", *parts, "seconds", "MB"), rows)}
{without_a_save(results)}"""


def without_a_save(results):
    """What the rounds without a save say of the servers, as far as their spread was recorded."""
    rows = []
    for command in ("SET", "GET"):
        ours, theirs = (save_row(results, server, command, False) for server in ("ours", "peer"))
        for part in ("p50", "p99", "p99.9"):
            if part + "_least" in ours:
                pair = {f"{name}{suffix}": row[part + suffix] for name, row in (("ours", ours), ("peer", theirs))
                        for suffix in ("", "_least", "_most")}
                rows.append((f"{command}, {part}", range_of(pair, "ours", number), range_of(pair, "peer", number), verdict(pair)))
    if not rows:
        return ""
    return f"""
Without a save, medians and the least and most of the rounds; "equal" means that rounds of both servers overlap:

{table(("request", "this server", peer_name(results), ""), rows)}
"""


def sync_section(results):
    figures = results["sync"]["figures"]
    rows = [("seconds", figures["ours"], figures["peer"], times(figures["ours"], figures["peer"])),
            ("CPU seconds of both sides", figures["ours_cpu"], figures["peer_cpu"], times(figures["ours_cpu"], figures["peer_cpu"]))]
    return f"""## Full synchronisation

{how(results, 'sync')}

An empty replica of the same kind as its primary, on the same machine: {figures['keys']:,} keys with values of {figures['value']}
bytes, from REPLICAOF to a link that is up; `repl-diskless-sync-delay 0`, everything else by default. The medians of the rounds.

{table(("", "this server", peer_name(results), "times less"), rows)}
"""


def page(results):
    writers = cpu_section, speed_section, settings_section, memory_section, save_section, sync_section
    sections = [section(results) for part, section in zip(PARTS, writers) if part in results]
    versions = sorted({(results[part]["run"]["ours"], results[part]["run"]["peer"])
                       for part in PARTS if part in results})
    named = "\n".join(f"- this server `{ours}`, the peer `{peer}`" for ours, peer in versions)
    places = "\n".join(f"- {place}" for place in machines(results))
    return f"""# Benchmarks

This page is written by `make bench-report PEER=/path/to/valkey-server` (`tests/bench/report.py`), which measures both
servers of a part in one run, on one machine; each part says what is set. `ARGS=--quick` measures less and only prints. Do not edit this
page. Figures of one machine are no promise for another: run it on yours. What earlier decisions were made by is in
[measurements](measurements.md), with [limits for 4, 8 and 16 threads](measurements.md#io-threads) that are computed, not measured.

{places}
{named}

{summary(results)}

""" + "\n".join(sections)


def files(results, root):
    """What is to be in which file."""
    name, out = peer_name(results), {}
    folder = os.path.join(root, "docs/benchmarks")
    if "cpu" in results:
        rows = [(f"{command}, pipeline {p}", cpu_row(results, command, p)["ours"], cpu_row(results, command, p)["peer"])
                for command in ("GET", "SET") for p in PIPELINES]
        out[os.path.join(folder, "cpu.svg")] = bars_plot("CPU time of the server per request (each pair has its own scale)", name,
                                                         rows, lambda figure, theirs: figure / max(theirs, figure) * 0.78, "us")
    if "memory" in results:
        row = results["memory"]["figures"][0]
        out[os.path.join(folder, "memory.svg")] = lines_plot(f"Bytes per key: keys of 16 bytes, values of {row['value']}", name,
                                                             row["keys"], row["ours"], row["peer"])
    if "save" in results:
        rows = [(f"{command}, {'saving' if saves else 'no save'}", save_row(results, "ours", command, saves)["p99.9"] / 1000,
                 save_row(results, "peer", command, saves)["p99.9"] / 1000) for command in ("SET", "GET") for saves in (False, True)]
        most = max(max(row[1:]) for row in rows)
        out[os.path.join(folder, "save.svg")] = bars_plot("p99.9 beside BGSAVE", name, rows,
                                                          lambda figure, _: figure / most * 0.78, "ms")
    out[os.path.join(root, "docs/benchmarks.md")] = page(results)
    readme = os.path.join(root, "README.md")
    with open(readme, encoding="utf-8") as file:
        words = file.read()
    if MARKS[0] in words:
        before, rest = words.split(MARKS[0])
        out[readme] = before + MARKS[0] + "\n" + summary(results) + "\n\n" + meaning(results) + "\n" + MARKS[1] + rest.split(MARKS[1])[1]
    return out


def stale(all_files):
    """The paths of those that are missing or different."""
    def content(path):
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return file.read()
    return [path for path, words in all_files.items() if content(path) != words]

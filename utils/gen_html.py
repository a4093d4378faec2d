#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds static HTML from the pages (*.md) of the tree: make docs writes it to build/docs.

    gen_html.py FOLDER

README.md becomes index.html, other pages keep their path; files that pages link to are copied beside them. Needs the package
python3-markdown. Fails if a link leads nowhere.
"""
import html
import os
import re
import shutil
import sys

from check_docs import ROOT, anchor, pages, read

try:
    import markdown
    from markdown.extensions.toc import TocExtension
except ImportError:
    if os.access("/usr/bin/python3", os.X_OK) and sys.executable != "/usr/bin/python3":
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # the distribution's package is for its own Python
    sys.exit("docs: the package python3-markdown is missing (apt-get install python3-markdown)")

NAVIGATION = (
    ("Start", "README.md"), ("Migration", "docs/migration.md"), ("Operation", "docs/operations.md"),
    ("Compatibility", "docs/compatibility.md"), ("Benchmarks", "docs/benchmarks.md"), ("Durability", "docs/durability.md"),
    ("Memory", "docs/memory.md"), ("Modules", "docs/modules.md"), ("Tour of the code", "docs/tour.md"),
    ("Architecture", "src/README.md"), ("Changes", "CHANGELOG.md"),
)
STYLE = """
body { margin: 0 auto; max-width: 60rem; padding: 0 1.2rem 4rem; font: 16px/1.55 system-ui, sans-serif; color: #1f2937; background: #fff; }
nav { padding: .8rem 0; border-bottom: 1px solid #d1d5db; } nav a { margin-right: 1rem; white-space: nowrap; }
a { color: #2563eb; text-decoration: none; } a:hover { text-decoration: underline; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.2rem; }
pre { padding: .8rem 1rem; overflow-x: auto; background: #f3f4f6; border-radius: 6px; } code { font: 90% ui-monospace, monospace; }
table { display: block; overflow-x: auto; border-collapse: collapse; } th, td { padding: .35rem .7rem; border: 1px solid #d1d5db;
text-align: left; vertical-align: top; } img { max-width: 100%; }
@media (prefers-color-scheme: dark) { body { color: #e5e7eb; background: #111827; } pre { background: #1f2937; } a { color: #93c5fd; } }
"""
HREF = re.compile(r'(href|src)="([^"#:]*)(#[^"]*)?"')


def page_name(path):
    """Where a page or file is in the folder of HTML."""
    if path == "README.md":
        return "index.html"
    return path[: -len(".md")] + ".html" if path.endswith(".md") else path


def to_html(path):
    converter = markdown.Markdown(extensions=["tables", "fenced_code", "sane_lists", "admonition",
                                              TocExtension(slugify=lambda words, _: anchor(words))])
    return converter.convert(nested_blocks(read(path)))


def nested_blocks(text):
    """Fenced blocks within lists, which the converter does not know, as indented ones."""
    def indent(match):
        lines = match[2].split("\n")
        return "\n".join(" " * 4 + line[len(match[1]):] if line.strip() else line for line in lines[:-1]) + "\n"
    text = re.sub(r"^( +)```\w*\n(.*?)^ +```\n", lambda m: re.sub(r"^(?=.)", "    ", indent(m), flags=re.M), text, flags=re.M | re.S)
    return re.sub(r"^   (?=[*\-\w`\[])", "    ", text, flags=re.M)


def relative_links(body, path, needed):
    """Links to pages lead to their HTML; adds all targets to `needed`."""
    def change(match):
        kind, target, heading = match[1], match[2], match[3] or ""
        if not target:
            return match[0]
        where = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if os.path.isdir(os.path.join(ROOT, where)):
            where = os.path.join(where, "README.md")
        needed.add(where)
        return f'{kind}="{os.path.relpath(page_name(where), os.path.dirname(page_name(path)) or ".")}{heading}"'
    return HREF.sub(change, body)


def build(folder):
    """Writes all pages; returns the faults."""
    all_pages, needed, faults = pages(), set(), []
    shutil.rmtree(folder, ignore_errors=True)
    for path in all_pages:
        navigation = " ".join(f'<a href="{target}">{name}</a>' for name, target in
                              ((name, os.path.relpath(target, os.path.dirname(path) or ".")) for name, target in NAVIGATION))
        title = re.search(r"^# (.*)$", read(path), flags=re.M)
        body = relative_links(f"<nav>{navigation}</nav>\n{to_html(path)}", path, needed)
        out = os.path.join(folder, page_name(path))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with open(out, "w", encoding="utf-8") as file:
            file.write(f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
                       f'content="width=device-width"><title>{html.escape(title[1] if title else path)}</title>'
                       f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n")
    for path in sorted(needed - set(all_pages)):
        source, out = os.path.join(ROOT, path), os.path.join(folder, path)
        if not os.path.isfile(source):
            faults.append(f"docs: no such file: {path}")
            continue
        os.makedirs(os.path.dirname(out), exist_ok=True)
        shutil.copy(source, out)
    return faults, len(all_pages)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    faults, count = build(sys.argv[1])
    print("\n".join(faults) or f"docs: {count} pages in {sys.argv[1]}/index.html")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Opens a page in a headless Chromium and prints what it shows as JSON.

    status_page.py BROWSER URL FOLDER    FOLDER: for the browser's profile

The object has `console` (lines of the browser's console), `text` (by id of the element) and `tables` (by id: lists of rows of cells, the
title first). Paths of plots are in `lines`: the number of them that have points."""
import html.parser, json, re, subprocess, sys

VOID = {"meta", "link", "br", "input", "img", "hr"}


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.tables, self.lines = [], {}, {}, 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "path" and "line" in attributes.get("class", "").split() and "L" in attributes.get("d", ""):
            self.lines += 1
        if tag in VOID:
            return
        self.open.append((tag, attributes.get("id")))
        if attributes.get("id"):
            self.text[attributes["id"]] = ""
        table = next((name for kind, name in reversed(self.open) if kind == "table"), None)
        if tag == "table":
            self.tables[attributes.get("id")] = []
        elif tag == "tr":
            self.tables[table].append([])
        elif tag in ("td", "th"):
            self.tables[table][-1].append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        kinds = [kind for kind, _ in self.open]
        if "script" in kinds or "style" in kinds:
            return
        for _, name in self.open:
            if name:
                self.text[name] += data + " "
        if kinds and kinds[-1] in ("td", "th"):
            table = next(name for kind, name in reversed(self.open) if kind == "table")
            self.tables[table][-1][-1] += data


def main():
    browser, url, folder = sys.argv[1:]
    # The time of the page is virtual: it passes as soon as nothing is pending, so that 12 seconds of polling take less.
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-extensions", "--no-first-run", f"--user-data-dir={folder}", "--enable-logging=stderr",
         "--virtual-time-budget=12000", "--dump-dom", url],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=240)
    reader = Reader()
    reader.feed(done.stdout.decode())
    console = re.findall(r".*CONSOLE.*", done.stderr.decode("utf-8", "replace"))
    print(json.dumps({"console": console, "text": reader.text, "tables": reader.tables, "lines": reader.lines}))


if __name__ == "__main__":
    main()

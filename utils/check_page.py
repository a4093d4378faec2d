#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the status page: one small file that loads nothing else, inline style and script listed by hash in its
Content-Security-Policy, no markup constructed from server data.

    check_page.py --fix    writes the hashes
"""
import base64, hashlib, os, re, sys

PATH = os.path.join(os.path.dirname(__file__), "..", "src", "metrics", "page.html")
SIZE_MAX = 30 * 1024
FORBIDDEN = {
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function": "makes markup or code of text",
    r"(?:src|href)\s*=\s*[\"'](?:https?:)?//|url\(|@import": "loads something from elsewhere",
    r"<[^>]*\s(?:style|on[a-z]+)\s*=": "an inline style or handler, which the policy refuses",
}


def with_hashes(text):
    for tag in ("style", "script"):
        parts = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.S)
        if len(parts) != 1:
            sys.exit(f"page: {len(parts)} <{tag}> elements instead of one")
        digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
        text = re.sub(rf"{tag}-src '[^']*'", f"{tag}-src 'sha256-{digest}'", text, count=1)
    return text


def main():
    text = open(PATH, encoding="utf-8").read()
    fixed = with_hashes(text)
    if sys.argv[1:] == ["--fix"]:
        open(PATH, "w", encoding="utf-8").write(fixed)
        return
    problems = [f"{why}: {found[0]}" for pattern, why in FORBIDDEN.items() for found in re.finditer(pattern, text)]
    if fixed != text:
        problems.append("the hashes are stale: run utils/check_page.py --fix")
    ids = set(re.findall(r'\bid="([\w-]+)"', text))
    used = set(re.findall(r'(?:byId|fill|facts)\("([\w-]+)"', text))
    problems += [f'no element has the id "{name}"' for name in sorted(used - ids)]
    size = len(text.encode())
    if size > SIZE_MAX:
        problems.append(f"{size} bytes, {SIZE_MAX} at most")
    for problem in problems:
        print(f"src/metrics/page.html: {problem}")
    if problems:
        sys.exit(1)
    print(f"page: {size} bytes")


if __name__ == "__main__":
    main()

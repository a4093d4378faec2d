#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Values of the kinds that programs store, for measurements of compression: reproducible, as many as wanted.

    values.py KIND COUNT    prints them, one per line

Kinds: packages, sessions, hex, html, sensors, short.
"""
import argparse
import json
import random

WORDS = ("account agent archive backup binding branch browser buffer builder cache channel client cluster codec compiler config "
         "console counter crypto daemon database debug decoder device driver editor encoder engine event export filter font format "
         "gateway graph handler header helper image index input journal kernel key layer layout library link loader logger manager "
         "mapper matrix memory message metric model module monitor network notifier object option packet parser patch payload "
         "platform plugin policy pool printer process profile protocol proxy query queue reader record registry render report "
         "request resolver response router runtime sample scanner schema script search server service session shell signal socket "
         "source storage stream string subject syntax system table tag target task template terminal theme thread timer token "
         "tracer transport tree tunnel type unit update upload user utility validator value vector version view watcher widget "
         "window worker wrapper writer zone").split()
LICENCES = ["MIT", "Apache-2.0", "BSD-3-Clause", "ISC", "GPL-3.0-or-later", "MPL-2.0"]
COUNTRIES = ["DE", "FR", "US", "GB", "IN", "BR", "JP", "PL", "SE", "ES"]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1%d.0.0.0 Safari/537.36",
          "Mozilla/5.0 (iPhone; CPU iPhone OS 1%d_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
          "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:1%d.0) Gecko/20100101 Firefox/1%d.0"]


def words(r, least, most):
    return " ".join(r.choice(WORDS) for _ in range(r.randint(least, most)))


def version(r):
    return f"{r.randint(0, 9)}.{r.randint(0, 30)}.{r.randint(0, 20)}"


def digits(r, count):
    return f"{r.getrandbits(4 * count):0{count}x}"


def date(r):
    return f"20{r.randint(18, 26)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}T{r.randint(0, 23):02}:{r.randint(0, 59):02}:00Z"


def packages(r, number):
    name = f"{r.choice(WORDS)}-{r.choice(WORDS)}"
    return json.dumps({
        "name": name, "version": version(r), "description": words(r, 6, 16).capitalize() + ".",
        "keywords": [r.choice(WORDS) for _ in range(r.randint(2, 6))],
        "homepage": f"https://{r.choice(WORDS)}.example.org/{name}",
        "repository": {"type": "git", "url": f"git+https://git.example.org/{r.choice(WORDS)}/{name}.git"},
        "author": {"name": f"{r.choice(WORDS).capitalize()} {r.choice(WORDS).capitalize()}",
                   "email": f"{r.choice(WORDS)}{number % 1000}@example.org"},
        "license": r.choice(LICENCES),
        "dependencies": {f"{r.choice(WORDS)}-{r.choice(WORDS)}": "^" + version(r) for _ in range(r.randint(1, 8))},
        "dist": {"shasum": digits(r, 40), "tarball": f"https://registry.example.org/{name}/-/{name}-{version(r)}.tgz",
                 "unpackedSize": r.randint(1000, 5000000), "fileCount": r.randint(3, 400)},
        "modified": date(r)}, separators=(",", ":"))


def sessions(r, number):
    agent = r.choice(AGENTS)
    agent = agent % tuple(r.randint(0, 30) for _ in range(agent.count("%d")))
    return json.dumps({
        "id": digits(r, 32), "user": number, "name": f"{r.choice(WORDS)}.{r.choice(WORDS)}", "created": date(r),
        "address": ".".join(str(r.randint(1, 254)) for _ in range(4)), "agent": agent, "country": r.choice(COUNTRIES),
        "roles": ["customer"] + (["editor"] if r.random() < 0.1 else []), "csrf": digits(r, 16),
        "cart": [{"sku": r.randint(10000, 99999), "count": r.randint(1, 4)} for _ in range(r.randint(0, 3))]},
        separators=(",", ":"))


def hex_digits(r, number):
    del number
    return digits(r, 64)


def html(r, number):
    items = "".join(f'<li class="item"><a href="/{r.choice(WORDS)}/{r.randint(1, 99999)}">{words(r, 1, 4)}</a>'
                    f'<span class="price">{r.randint(1, 900)}.{r.randint(0, 99):02}</span></li>' for _ in range(r.randint(3, 10)))
    return (f'<div class="card" id="card-{number}"><h2 class="title">{words(r, 2, 5).title()}</h2><p class="lead">{words(r, 8, 30)}'
            f'</p><ul class="list">{items}</ul><a class="button" href="/detail/{r.randint(1, 999999)}">More</a></div>')


def sensors(r, number):
    return (f"sensor={r.randint(1, 500)};time={1760000000 + number * 10};temperature={r.gauss(21, 4):.2f};"
            f"humidity={r.gauss(45, 9):.1f};pressure={r.gauss(1013, 8):.1f};battery={r.uniform(3.1, 4.2):.2f};state=ok")


def short(r, number):
    del number
    return f"{r.choice(WORDS)}:{r.randint(1, 99999)}"


KINDS = {"packages": packages, "sessions": sessions, "hex": hex_digits, "html": html, "sensors": sensors, "short": short}


def values(kind, count, seed=1):
    """Yields `count` values; the same ones for the same seed."""
    r = random.Random(f"{kind} {seed}")
    for number in range(count):
        yield KINDS[kind](r, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("count", type=int)
    args = parser.parse_args()
    for value in values(args.kind, args.count):
        print(value)


if __name__ == "__main__":
    main()

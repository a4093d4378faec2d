#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs all durability tests on a build; ends with "N passed, N failed".

  run.py BUILD_FOLDER [--long]

--long: thousands of killed servers and ten times as many commands before the power fails.
Two tests run at a time, as they mostly wait for disks, children and timeouts."""

import concurrent.futures
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def run(server, name, *arguments):
    """(passed, failed, what to print)"""
    begun = time.monotonic()
    done = subprocess.run([sys.executable, os.path.join(HERE, name), "--server", server, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", text, re.MULTILINE)
    good, bad = map(int, counts[-1]) if counts else (0, 1)
    bad = bad or int(done.returncode != 0)
    shown = text if bad else "\n".join(text.splitlines()[:-1])
    verdict = "FAILED" if bad else "ok    "
    return good, bad, f"{shown}\n{verdict}  {name}: {good} passed, {bad} failed, {time.monotonic() - begun:.0f} s"


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(words) != 1:
        sys.exit(__doc__)
    server = os.path.join(words[0], "valkey-server")
    programs = ["--programs", os.path.join(words[0], "tests", "durability")]
    is_long = "--long" in sys.argv
    tests = [["kill.py", "--cycles", "5000" if is_long else "100"],
             ["restarts.py", "--cycles", "1000" if is_long else "30"],
             ["promote.py", "--cycles", "1000" if is_long else "30"],
             ["empty_primary.py", "--cycles", "500" if is_long else "15"],
             ["throttle.py", "--seconds", "60" if is_long else "15"],
             ["quorum.py", "--steps", "1000" if is_long else "10"],
             ["quorum.py", "--members", "5", "--steps", "1000" if is_long else "5"],
             ["gateway.py", "--moves", "--steps", "200" if is_long else "3"],
             ["power.py", *programs, "--commands", "20000" if is_long else "2000"],
             ["faults.py", *programs],
             ["faults.py", *programs, "--snapshot-mode", "inline", "--step", "1" if is_long else "4"],
             ["power.py", *programs, "--snapshot-mode", "inline", "--commands", "20000" if is_long else "500"],
             ["sync_faults.py", *programs],
             ["sync_faults.py", *programs, "--snapshot-mode", "inline", "--step", "1" if is_long else "3"],
             ["inline.py", *programs, "--cycles", "500" if is_long else "20"],
             ["slow_disk.py", *programs],
             ["cuts.py", *programs, "--bytes", str((4 << 20) if is_long else (256 << 10))]]
    if is_long:
        tests.append(["gateway.py", "--stop", "--lease", "2000", "--steps", "100"])
        tests += [["quorum.py", "--steps", "300", *kind] for kind in (["--tls"], ["--disk"], ["--disk", "--fsync", "everysec", "--tls"])]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, server, *test) for test in tests]):
            good, bad, text = done.result()
            print(text, flush=True)
            passed += good
            failed += bad
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()

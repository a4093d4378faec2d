# SPDX-License-Identifier: BSD-3-Clause
"""utils/check_exceptions.txt: accepted violations of the checks, each with a reason."""
import os, sys


class Exceptions:
    """Collects the violations found by one check. Lines: kind | subject | reason."""

    def __init__(self):
        self.reasons, self.used, self.faults = {}, set(), 0
        path = os.path.join(os.path.dirname(__file__), "check_exceptions.txt")
        for number, line in enumerate(open(path), 1):
            cells = [cell.strip() for cell in line.split("#")[0].split("|")]
            if cells == [""]:
                continue
            if len(cells) != 3 or not all(cells):
                sys.exit(f"{path}:{number}: expected: kind | subject | reason")
            self.reasons[cells[0], cells[1]] = cells[2]

    def fail(self, kind, subject, message):
        """Reports a violation, unless an exception accepts it."""
        if (kind, subject) in self.reasons:
            self.used.add((kind, subject))
            return
        print(message)
        self.faults += 1

    def finish(self, kinds):
        """The exit code. An unused exception of the checked kinds is a violation, too."""
        for kind, subject in self.reasons:
            if kind in kinds and (kind, subject) not in self.used:
                print(f"check_exceptions.txt: no longer needed: {kind} | {subject}")
                self.faults += 1
        return 1 if self.faults else 0

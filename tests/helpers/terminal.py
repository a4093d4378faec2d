#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program in a terminal of its own and talks with it.

    terminal.py PROGRAM [ARGUMENT...] < DIALOGUE

The dialogue has lines "expect TEXT" and "send TEXT", with Python's escapes, and "resize COLUMNS ROWS". An expected text must arrive after the
previous one, within ten seconds. Prints all output; exit status 1 if a text did not arrive."""
import fcntl, os, pty, select, signal, struct, sys, termios, time

LIMIT_S = 10


def main():
    # Line by line, so that a test can act between them.
    dialogue = (line.rstrip("\n").split(" ", 1) for line in iter(sys.stdin.readline, "") if line.strip())
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.argv[1], sys.argv[1:])
    output, position, failed = b"", 0, None
    for verb, text in dialogue:
        if verb == "resize":
            columns, rows = map(int, text.split())
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            continue
        text = text.encode("latin-1").decode("unicode_escape").encode("latin-1")
        if verb == "send":
            os.write(terminal, text)
            continue
        end = time.monotonic() + LIMIT_S
        while text not in output[position:]:
            ready = select.select([terminal], [], [], max(0, end - time.monotonic()))[0]
            try:
                part = os.read(terminal, 65536) if ready else b""
            except OSError:
                part = b""
            if not part:
                failed = text
                break
            output += part
        if failed:
            break
        position = output.index(text, position) + len(text)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(pid, 0)
    sys.stdout.buffer.write(output)
    if failed:
        sys.exit(f"did not arrive: {failed}")


main()

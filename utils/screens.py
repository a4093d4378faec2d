#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/screens.md: what the programs show on a terminal, from a server with made-up data, and the picture of its status page,
docs/screens/status-page.png, if there is a Chromium to draw it; else the last one stays.

    screens.py [FOLDER]      FOLDER has the programs (src/)

Run it after a change of what they print (`make screens`). Nothing is typed by hand, so the screens are those of the programs.
"""
import fcntl, os, pty, re, select, shutil, signal, socket, struct, subprocess, sys, tempfile, termios, time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WIDTH, LINES_MAX = 100, 34
DATA = """
for i = 1, 20000 do redis.call('set', 'session:' .. i, string.rep('x', 40 + i % 60), 'EX', 3600 + i) end
for i = 1, 3000 do redis.call('hset', 'user:' .. i, 'name', 'user' .. i, 'mail', i .. '@example.org', 'visits', i % 97) end
for i = 1, 5000 do redis.call('zadd', 'ranking', i * 7 % 5000, 'player:' .. i) end
for i = 1, 500 do redis.call('xadd', 'events', i .. '-0', 'kind', 'login') end
for i = 1, 300 do redis.call('rpush', 'queue', 'job:' .. i) end
redis.call('sadd', 'online', 'ann', 'bob', 'eve')
"""
# Title, sentence, words of valkey-cli or valkey-benchmark. A number ends the program after so many seconds.
SCREENS = (
    ("What a server would gain", "Before a move: `valkey-cli --migrate-check URI`.", None,
     ("valkey-cli", "--migrate-check", "valkey://127.0.0.1:PORT")),
    ("Two servers, key by key", "After it: `valkey-cli --diff URI URI`.", None,
     ("valkey-cli", "--diff", "valkey://127.0.0.1:PORT", "valkey://127.0.0.1:OTHER")),
    ("A live view", "`valkey-cli --top`, while `valkey-benchmark` runs.", 3, ("valkey-cli", "-p", "PORT", "--top")),
    ("Where the memory is", "`valkey-cli memory explain`.", None, ("valkey-cli", "-p", "PORT", "memory", "explain")),
    ("The largest keys", "`valkey-cli --bigkeys`.", None, ("valkey-cli", "-p", "PORT", "--bigkeys")),
    ("An error that is explained", "At the prompt.", 2, ("valkey-cli", "-p", "PORT"), b"set key value ex three\r", b"gte key\r"),
    ("Two servers measured", "`valkey-benchmark --compare HOST:PORT`, here the same kind of server twice.", None,
     ("valkey-benchmark", "-p", "PORT", "--compare", "127.0.0.1:OTHER", "-t", "get", "-P", "16", "-n", "40000", "--rounds", "4")),
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(programs, folder, port, *options):
    server = subprocess.Popen([f"{programs}/valkey-server", "--port", str(port), "--save", "", "--dir", folder, "--logfile",
                               f"{folder}/{port}.log", *options])
    for _ in range(300):
        done = subprocess.run([f"{programs}/valkey-cli", "-p", str(port), "ping"], capture_output=True, text=True, check=False)
        if done.stdout.strip() == "PONG":
            return server
        time.sleep(0.1)
    sys.exit(f"screens: the server did not start, see {folder}/{port}.log")


def capture(command, seconds, typed):
    """The output of a program on a terminal without colours."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", NO_COLOR="1", COLUMNS=str(WIDTH), VALKEYCLI_HISTFILE="/dev/null", VALKEYCLI_RCFILE="/dev/null")
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    output, waiting = b"", list(typed)
    end = time.monotonic() + (seconds or 120)
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.5)[0]:
            if waiting:
                os.write(terminal, waiting.pop(0))
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return output.decode("utf-8", "replace")


def as_lines(text):
    """The last screen as plain text: what was overwritten or deleted is dropped."""
    text = re.split(r"\x1b\[H|\x1b\[2J", text)
    text = max(text[-2:], key=len) if len(text) > 1 else text[0]
    text = re.sub(r"\x1b7.*?\x1b8", "", text, flags=re.S)  # hints
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")
    lines = [line.split("\r")[-1].rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines[:LINES_MAX] + (["..."] if len(lines) > LINES_MAX else [])


def screen(programs, ports, entry):
    title, sentence, seconds, command, *typed = entry
    words = [word.replace("PORT", str(ports[0])).replace("OTHER", str(ports[1])) for word in command]
    load = None
    if "--top" in words:
        load = subprocess.Popen([f"{programs}/valkey-benchmark", "-p", str(ports[0]), "--mix", "get:80,set:20", "-r", "20000",
                                 "--key-dist", "zipf:1.1", "--rps", "20000", "--duration", "8", "-q"], stdout=subprocess.DEVNULL)
        time.sleep(3)
    lines = as_lines(capture([f"{programs}/{words[0]}"] + words[1:], seconds, typed))
    if load:
        load.wait()
    shown = "\n".join(lines).replace(str(ports[0]), "6379").replace(str(ports[1]), "6380")
    return f"## {title}\n\n{sentence}\n\n```text\n{shown}\n```\n"


def picture(programs, port, page_port, folder):
    """Draws the status page while the server has something to show."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("screens: no Chromium here, the picture of the status page stays as it is")
        return
    load = subprocess.Popen([f"{programs}/valkey-benchmark", "-p", str(port), "--mix", "get:80,set:20", "-r", "20000", "--key-dist",
                             "zipf:1.1", "--rps", "5000", "--duration", "60", "-q"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(45)  # the history has a point every few seconds
        os.makedirs(f"{ROOT}/docs/screens", exist_ok=True)
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                        "--hide-scrollbars", "--window-size=1100,1500", f"--user-data-dir={folder}/browser", "--virtual-time-budget=8000",
                        f"--screenshot={ROOT}/docs/screens/status-page.png", f"http://127.0.0.1:{page_port}/"],
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240, check=True)
    finally:
        load.terminate()
        load.wait()


def main():
    programs = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else f"{ROOT}/src")
    folder = tempfile.mkdtemp()
    ports, page_port = (free_port(), free_port()), free_port()
    servers = [start(programs, folder, ports[0], "--metrics-port", str(page_port)), start(programs, folder, ports[1])]
    try:
        for port in ports:
            subprocess.run([f"{programs}/valkey-cli", "-e", "-p", str(port), "eval", DATA, "0"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([f"{programs}/valkey-cli", "-p", str(ports[1]), "hset", "user:17", "visits", "4711"], check=True, stdout=subprocess.DEVNULL)
        parts = ["# Screens\n\nWhat the programs show, written by `make screens` with the programs themselves; the figures are those of one run "
                 "with little data.\n"]
        parts += [screen(programs, ports, entry) for entry in SCREENS]
        picture(programs, ports[0], page_port, folder)
        parts.append("## The status page\n\nWith `metrics-port 9121`, in a browser: `http://127.0.0.1:9121/`.\n\n"
                     "![The status page](screens/status-page.png)\n")
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        shutil.rmtree(folder)
    with open(f"{ROOT}/docs/screens.md", "w", encoding="utf-8") as file:
        file.write("\n".join(parts))


main()

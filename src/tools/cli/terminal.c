/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The terminal (terminal.h). */
#include "tools/cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { COLUMNS = 80, ROWS = 24 };

static struct winsize terminalSize(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
    if (size.ws_col == 0) size.ws_col = COLUMNS;
    if (size.ws_row == 0) size.ws_row = ROWS;
    return size;
}

int terminalColumns(void) { return terminalSize().ws_col; }
int terminalRows(void) { return terminalSize().ws_row; }

bool terminalIsInteractive(void) { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

int terminalOpenKeys(int fd) {
    char name[256];
    if (ttyname_r(fd, name, sizeof(name)) != 0) return -1;
    return open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

terminalKey terminalReadKey(int fd, char *byte) {
    ssize_t count = read(fd, byte, 1);
    if (count == 1) return TERMINAL_KEY;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? TERMINAL_NO_KEY : TERMINAL_END;
}

void terminalAskPassword(const char *prompt, str *out) {
    struct termios before, hidden;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (terminal) {
        hidden = before;
        hidden.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
        fputs(prompt, stderr);
    }
    size_t first = out->len;
    int c;
    while ((c = getchar()) != EOF && c != '\n' && c != '\r') {
        bool erase = terminal && (c == before.c_cc[VERASE] || c == '\b');
        if (!erase) {
            strAppendByte(out, (char)c);
            if (terminal) fputc('*', stderr);
        } else if (out->len > first) {
            strCut(out, out->len - 1);
            if (terminal) fputs("\b \b", stderr);
        }
    }
    if (!terminal) return;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
}

bool terminalConfirm(const char *question) {
    fputs(question, stdout);
    fflush(stdout);
    char first = 0, byte;
    ssize_t count;
    /* By byte: what follows the line is not taken. */
    while ((count = read(STDIN_FILENO, &byte, 1)) == 1 && byte != '\n') {
        if (!first) first = byte;
    }
    return count == 1 && (first == 'y' || first == 'Y');
}

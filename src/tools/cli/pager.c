/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pager (pager.h). */
#include "tools/cli/pager.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/terminal.h"

static size_t countLines(const str *text) {
    size_t lines = 0;
    for (size_t i = 0; i < text->len; i++) lines += text->ptr[i] == '\n';
    return lines;
}

bool pagerShow(const str *text) {
    const char *program = getenv("VALKEYCLI_PAGER");
    if (!program) program = getenv("PAGER");
    if (!program || !*program || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) return false;
    if (countLines(text) < (size_t)terminalRows()) return false;
    fflush(stdout);
    /* The user may leave the pager before it has read everything. */
    void (*previous)(int) = signal(SIGPIPE, SIG_IGN);
    FILE *pager = popen(program, "w");
    bool shown = pager != NULL;
    if (pager) {
        fwrite(text->ptr, 1, text->len, pager);
        pclose(pager);
    }
    signal(SIGPIPE, previous);
    return shown;
}

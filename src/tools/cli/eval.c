/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A Lua script of a file (eval.h). */
#include "tools/cli/eval.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/interactive.h"
#include "tools/cli/ldb.h"
#include "tools/cli/script.h"
#include "tools/cli/terminal.h"

static bool readFile(const char *path, str *out) {
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "Can't open file '%s': %s\n", path, strerror(errno));
        return false;
    }
    size_t count;
    do {
        count = fread(strReserve(out, 64 * 1024), 1, 64 * 1024, file);
        strGrow(out, count);
    } while (count > 0);
    fclose(file);
    return true;
}

/* EVAL script numkeys key ... arg ...; a comma among the words ends the keys. */
static void evalCommand(words *out, slice source, int argc, char **argv) {
    int keys = 0;
    while (keys < argc && strcmp(argv[keys], ",") != 0) keys++;
    char number[32];
    snprintf(number, sizeof(number), "%d", keys);
    wordsAdd(out, SLICE("EVAL"));
    wordsAdd(out, source);
    wordsAdd(out, sliceOf(number));
    for (int i = 0; i < argc; i++) {
        if (i != keys) wordsAdd(out, sliceOf(argv[i]));
    }
}

static int runScript(commandRunner *r, const words *command) {
    if (!r->connection->options->ldb) {
        r->endless = true;
        return commandRun(r, command, 1) ? 0 : 1;
    }
    if (!ldbStart(r, command)) return 1;
    return terminalIsInteractive() ? interactiveRun(r) : scriptRunStdin(r);
}

int evalRunFile(commandRunner *r, int argc, char **argv) {
    str source = STR_EMPTY;
    words command = {0};
    int status = 1;
    if (connectionConnect(r->connection) && readFile(r->connection->options->eval_file, &source)) {
        evalCommand(&command, strSlice(&source), argc, argv);
        status = runScript(r, &command);
    }
    strFree(&source);
    wordsClear(&command);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Explanations under errors (explain.h). */
#include "tools/cli/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/help.h"
#include "tools/cli/hint.h"
#include "tools/similar.h"

const char *explainSimilar(slice name) {
    const char *best = NULL;
    int best_distance = SIMILAR_NEVER;
    for (int i = 0; i < helpEntryCount; i++) {
        int found = similarDistance(name, sliceOf(helpEntries[i].name));
        if (found >= best_distance) continue;
        best = helpEntries[i].name;
        best_distance = found;
    }
    return best;
}

static void explainUnknown(const words *command, bool subcommand) {
    str name = strNew(strSlice(&command->items[0]));
    if (subcommand && command->count > 1) {
        strAppendByte(&name, ' ');
        strAppendSlice(&name, strSlice(&command->items[1]));
    }
    const char *similar = explainSimilar(strSlice(&name));
    if (similar) printf("  Did you mean %s?\n", similar);
    strFree(&name);
}

/* Names the word that does not fit, if there is one, and shows the syntax. */
static void explainSyntax(const words *command) {
    int used, misfit = hintMisfit(command);
    if (misfit) {
        str word = STR_EMPTY;
        strAppendQuoted(&word, strSlice(&command->items[misfit]));
        printf("  Argument %d does not fit: %s\n", misfit, strText(&word));
        strFree(&word);
    }
    const helpEntry *e = helpFind(command, &used);
    if (e) printf("  Syntax: %s %s\n", e->name, e->syntax);
}

static void explainRedirection(const char *error, const connection *c) {
    bool moved = error[0] == 'M';
    const char *slot = strchr(error, ' ') + 1;
    printf("  Slot %d %s. %s\n", atoi(slot),
           moved ? "is served by another node, whose address is above"
                 : "is being moved, and the node above may already have this key",
           c->options->cluster ? "" : "Start valkey-cli with -c to follow redirections.");
}

void explainError(const words *command, const char *error, const connection *c) {
    if (command->count == 0) return;
    if (!strncmp(error, "ERR unknown command", 19)) explainUnknown(command, false);
    if (!strncmp(error, "ERR unknown subcommand", 22)) explainUnknown(command, true);
    if (!strncmp(error, "ERR wrong number of arguments", 29) ||
        !strncmp(error, "ERR syntax error", 16) || !strncmp(error, "ERR value is not a", 18))
        explainSyntax(command);
    if (!strncmp(error, "MOVED ", 6) || !strncmp(error, "ASK ", 4)) explainRedirection(error, c);
}

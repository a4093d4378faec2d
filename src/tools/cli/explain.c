/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Explanations under errors (explain.h). */
#include "tools/cli/explain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/help.h"
#include "tools/cli/hint.h"

enum { NAME_MAX_LEN = 63 };

static int min(int a, int b) { return a < b ? a : b; }

/* Number of insertions, removals, replacements and swaps of neighbours that turn one name into the
 * other. */
static int distance(slice a, slice b) {
    int rows[3][NAME_MAX_LEN + 2];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= (int)b.len; j++) last[j] = j;
    for (int i = 1; i <= (int)a.len; i++) {
        now[0] = i;
        for (int j = 1; j <= (int)b.len; j++) {
            int cost = toupper((unsigned char)a.ptr[i - 1]) != toupper((unsigned char)b.ptr[j - 1]);
            now[j] = min(min(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && cost &&
                toupper((unsigned char)a.ptr[i - 2]) == toupper((unsigned char)b.ptr[j - 1]) &&
                toupper((unsigned char)a.ptr[i - 1]) == toupper((unsigned char)b.ptr[j - 2]))
                now[j] = min(now[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

const char *explainSimilar(slice name) {
    const char *best = NULL;
    if (name.len == 0 || name.len > NAME_MAX_LEN) return NULL;
    int limit = name.len < 3 ? 1 : name.len < 6 ? 2 : 3, best_distance = limit + 1;
    for (int i = 0; i < helpEntryCount; i++) {
        slice other = sliceOf(helpEntries[i].name);
        if (other.len > NAME_MAX_LEN || (size_t)abs((int)other.len - (int)name.len) > 3) continue;
        int found = distance(name, other);
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Help (help.h). */
#include "tools/cli/help.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/build_info.h"

bool helpIsCommand(const words *command) {
    return wordsBegin(command, "help") || wordsBegin(command, "?");
}

static int wordsOfName(const char *name) {
    int count = 1;
    for (; *name; name++) count += *name == ' ';
    return count;
}

const helpEntry *helpFind(const words *command, int *used) {
    const helpEntry *best = NULL;
    *used = 0;
    for (int i = 0; i < helpEntryCount; i++) {
        int count = wordsOfName(helpEntries[i].name);
        if (count <= *used || !wordsBegin(command, helpEntries[i].name)) continue;
        best = &helpEntries[i];
        *used = count;
    }
    return best;
}

/* Lines end as on a terminal in raw mode, like those of Valkey's program. */
static void printEntry(const helpEntry *e, bool with_group) {
    printf("\r\n  \x1b[1m%s\x1b[0m \x1b[90m%s\x1b[0m\r\n", e->name, e->syntax);
    printf("  \x1b[33msummary:\x1b[0m %s\r\n", e->summary);
    printf("  \x1b[33msince:\x1b[0m %s\r\n", e->since);
    if (with_group) printf("  \x1b[33mgroup:\x1b[0m %s\r\n", e->group);
}

static void printGeneral(void) {
    printf("valkey-cli %s\n"
           "To get help about Valkey commands type:\n"
           "      \"help @<group>\" to get a list of commands in <group>\n"
           "      \"help <command>\" for help on <command>\n"
           "      \"help <tab>\" to get a list of possible help topics\n"
           "      \"quit\" to exit\n"
           "\n"
           "To set valkey-cli preferences:\n"
           "      \":set hints\" enable online hints\n"
           "      \":set nohints\" disable online hints\n"
           "      \":set careful\" ask before dangerous commands\n"
           "      \":set nocareful\" do not ask\n"
           "Set your preferences in ~/.valkeyclirc\n",
           SERVER_VERSION);
}

/* True if `name` begins with the words of the help command after its first. */
static bool nameMatches(const words *command, const char *name) {
    for (int i = 1; i < command->count; i++) {
        size_t len = strcspn(name, " ");
        if (!sliceEqualFold(strSlice(&command->items[i]), sliceMake(name, len)) || len == 0)
            return false;
        name += len + strspn(name + len, " ");
    }
    return true;
}

void helpPrint(const words *command) {
    if (command->count == 1) {
        printGeneral();
        return;
    }
    const char *first = strText(&command->items[1]);
    for (int i = 0; i < helpEntryCount; i++) {
        const helpEntry *e = &helpEntries[i];
        if (*first == '@') {
            if (!strcasecmp(e->group, first + 1)) printEntry(e, false);
        } else if (nameMatches(command, e->name)) {
            printEntry(e, true);
        }
    }
    fputs("\r\n", stdout);
}

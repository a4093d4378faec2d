/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preferences (preferences.h). */
#include "tools/cli/preferences.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/home_file.h"

static bool hints = true, careful;

bool preferenceHints(void) { return hints; }
bool preferenceCareful(void) { return careful; }
void preferenceSetCareful(bool on) { careful = on; }

void preferenceSet(const words *command) {
    const char *value = command->count > 1 ? strText(&command->items[1]) : "";
    if (!wordsBegin(command, ":set") || command->count < 2) {
        printf("unknown valkey-cli internal command '%s'\n", strText(&command->items[0]));
    } else if (sliceIs(sliceOf(value), "hints")) {
        hints = true;
    } else if (sliceIs(sliceOf(value), "nohints")) {
        hints = false;
    } else if (sliceIs(sliceOf(value), "careful")) {
        careful = true;
    } else if (sliceIs(sliceOf(value), "nocareful")) {
        careful = false;
    } else {
        printf("unknown valkey-cli preference '%s'\n", value);
    }
}

void preferencesLoad(void) {
    str path = STR_EMPTY;
    if (!homeFilePath(&path, "VALKEYCLI_RCFILE", "REDISCLI_RCFILE", ".valkeyclirc")) return;
    FILE *file = fopen(strText(&path), "r");
    strFree(&path);
    if (!file) return;
    char line[1024];
    while (fgets(line, sizeof(line), file)) {
        words w = {0};
        if (!wordsSplit(sliceOf(line), &w)) {
            printf("Invalid line in the preferences: %s", line);
            continue;
        }
        if (w.count > 0) preferenceSet(&w);
        wordsClear(&w);
    }
    fclose(file);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of the history (history_file.h). */
#include "tools/cli/history_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tools/cli/home_file.h"

enum { LINES_MAX = 1000 };

static bool historyPath(str *out) {
    return homeFilePath(out, "VALKEYCLI_HISTFILE", "REDISCLI_HISTFILE", ".valkeycli_history");
}

static FILE *openFile(const char *path, int flags, const char *mode) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

static void rewriteFile(const char *path, const str *text) {
    FILE *file = openFile(path, O_WRONLY | O_CREAT | O_TRUNC, "w");
    if (!file) return;
    fwrite(text->ptr, 1, text->len, file);
    fclose(file);
}

void historyLoad(void (*line)(const char *text, void *arg), void *arg) {
    str path = STR_EMPTY, kept = STR_EMPTY;
    FILE *file = historyPath(&path) ? openFile(strText(&path), O_RDONLY, "r") : NULL;
    int lines = 0;
    char text[4096];
    while (file && fgets(text, sizeof(text), file)) lines++;
    if (file) rewind(file);
    for (int i = 0; file && fgets(text, sizeof(text), file); i++) {
        if (i < lines - LINES_MAX) continue;
        strAppendText(&kept, text);
        line(text, arg);
    }
    if (file) fclose(file);
    if (lines > LINES_MAX) rewriteFile(strText(&path), &kept);
    strFree(&path);
    strFree(&kept);
}

void historyAppend(const char *line) {
    str path = STR_EMPTY;
    FILE *file =
        historyPath(&path) ? openFile(strText(&path), O_WRONLY | O_CREAT | O_APPEND, "a") : NULL;
    strFree(&path);
    if (!file) return;
    fprintf(file, "%s\n", line);
    fclose(file);
}

static bool has(const words *w, int from, const char *word) {
    for (int i = from; i < w->count; i++) {
        if (sliceIs(strSlice(&w->items[i]), word)) return true;
    }
    return false;
}

static bool setsSecret(const words *w, int from) {
    static const char *const names[] = {"masterauth",
                                        "primaryauth",
                                        "masteruser",
                                        "primaryuser",
                                        "requirepass",
                                        "tls-key-file-pass",
                                        "tls-client-key-file-pass",
                                        "sentinel-pass",
                                        "auth-pass"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (has(w, from, names[i])) return true;
    }
    return false;
}

bool historyIsSecret(const words *w) {
    if (wordsBegin(w, "auth") || wordsBegin(w, "acl setuser") || wordsBegin(w, "acl deluser"))
        return true;
    if (wordsBegin(w, "hello")) return has(w, 1, "auth");
    if (wordsBegin(w, "migrate")) return has(w, 5, "auth") || has(w, 5, "auth2");
    if (wordsBegin(w, "config set")) return setsSecret(w, 2);
    if (wordsBegin(w, "sentinel")) return setsSecret(w, 1);
    return false;
}

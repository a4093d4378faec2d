/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of commands (words.h). */
#include "tools/cli/words.h"

#include <stdio.h>

#include "base/alloc.h"

void wordsClear(words *w) {
    strFreeWords(w->items, w->count);
    *w = (words){0};
}

void wordsAdd(words *w, slice word) {
    w->items = memRealloc(w->items, sizeof(str) * (size_t)(w->count + 1));
    w->items[w->count++] = strNew(word);
}

bool wordsSplit(slice line, words *out) { return strSplitWords(line, &out->items, &out->count); }

bool wordsIsOpen(slice line) {
    char quote = 0;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        if (!quote) {
            if (c == '"' || c == '\'') quote = c;
        } else if (c == '\\' && i + 1 < line.len && (quote == '"' || line.ptr[i + 1] == quote)) {
            i++;
        } else if (c == quote) {
            quote = 0;
        }
    }
    return quote != 0;
}

bool wordUnquote(slice word, str *out) {
    words split = {0};
    bool valid = wordsSplit(word, &split) && split.count == 1;
    if (valid) strAppendSlice(out, strSlice(&split.items[0]));
    wordsClear(&split);
    return valid;
}

void wordReadStdin(str *out) {
    size_t count;
    do {
        count = fread(strReserve(out, 64 * 1024), 1, 64 * 1024, stdin);
        strGrow(out, count);
    } while (count > 0);
}

bool wordsBegin(const words *w, const char *text) {
    for (int i = 0; *text; i++) {
        size_t len = strcspn(text, " ");
        if (i >= w->count || !sliceEqualFold(strSlice(&w->items[i]), sliceMake(text, len)))
            return false;
        text += len + strspn(text + len, " ");
    }
    return true;
}

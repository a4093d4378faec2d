/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of commands as bytes: splitting of lines, quoting, reading of standard input. */
#ifndef TOOLS_CLI_WORDS_H
#define TOOLS_CLI_WORDS_H

#include <stdbool.h>

#include "base/str.h"

/* The arguments of a command. */
typedef struct words {
    str *items;
    int count;
} words;

void wordsClear(words *w);
void wordsAdd(words *w, slice word);
/* Splits a line at blanks; "..." and '...' quote. False on unbalanced quotes. */
bool wordsSplit(slice line, words *out);
/* True if the line ends within quotes: more of it may follow. */
bool wordsIsOpen(slice line);
/* Removes quotes from a single word. False on unbalanced quotes, and if it is not one word. */
bool wordUnquote(slice word, str *out);
/* Appends all of standard input. */
void wordReadStdin(str *out);
/* True if the first words are those of `text`, which are separated by blanks, in any case. */
bool wordsBegin(const words *w, const char *text);

#endif

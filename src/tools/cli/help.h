/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands and their syntax, from the command specs: help texts, completion and hints. */
#ifndef TOOLS_CLI_HELP_H
#define TOOLS_CLI_HELP_H

#include "tools/cli/words.h"

typedef enum helpType {
    HELP_TEXT,
    HELP_INTEGER,
    HELP_DOUBLE,
    HELP_TOKEN, /* a token without a value */
    HELP_ONEOF, /* one of the children */
    HELP_BLOCK, /* all children, in this order */
} helpType;

/* Flags of arguments. */
enum { HELP_OPTIONAL = 1, HELP_MULTIPLE = 2, HELP_MULTIPLE_TOKEN = 4 };

typedef struct helpArgument {
    const char *name;  /* as shown */
    const char *token; /* before the value; NULL: none */
    helpType type;
    int flags;
    const struct helpArgument *children;
    int child_count;
} helpArgument;

typedef struct helpEntry {
    const char *name; /* "CLIENT LIST" */
    const char *syntax, *summary, *since, *group;
    const helpArgument *arguments;
    int argument_count;
} helpEntry;

extern const helpEntry helpEntries[]; /* sorted by name */
extern const int helpEntryCount;

/* True for "help" and "?", which the program runs itself. */
bool helpIsCommand(const words *command);
/* Prints the help that the command asks for: general, of a group ("help @string"), or of
 * commands. */
void helpPrint(const words *command);
/* The entry that the words of the command begin with, the longest one; NULL if there is none.
 * `*used` is the number of words of its name. */
const helpEntry *helpFind(const words *command, int *used);

#endif

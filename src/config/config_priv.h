/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of the configuration: the index of names, and assigning
 * values. */
#ifndef CONFIG_CONFIG_PRIV_H
#define CONFIG_CONFIG_PRIV_H

#include "config/config.h"

typedef enum configOriginKind {
    CONFIG_FROM_DEFAULT,
    CONFIG_FROM_FILE,
    CONFIG_FROM_COMMAND_LINE,
    CONFIG_FROM_SET,
} configOriginKind;

typedef struct configOrigin {
    configOriginKind kind;
    int line;
    const char *file; /* owned by config_file.c until configUninstall() */
} configOrigin;

/* A name and its option. The index is sorted by name. */
typedef struct configEntry {
    const char *name;
    const configOption *option;
    struct configEntry *main; /* the entry of the option's own name; itself unless an alias */
    configOrigin origin;      /* of the main entry */
} configEntry;

/* NULL if the name is unknown. Finds file-only directives, too. */
configEntry *configEntryFind(slice name);
configEntry *configEntries(int *count);

/* Assigns a value given as words to an option that is not file-only. `more` as in configSpecial. */
status configAssign(const configOption *o, const slice *words, int count, bool more,
                    reason *why) MUST_USE;
/* Assigns a value given as one text, as CONFIG SET does: multi-word options split it at blanks. */
status configAssignText(const configOption *o, slice text, bool more, reason *why) MUST_USE;
/* Appends the words with blanks between them. */
void configJoinWords(const slice *words, int count, str *out);
/* Appends the default in the format of CONFIG GET; false if it is not constant. */
bool configDefault(const configOption *o, str *out);
/* Calls `apply` of all options with CONFIG_APPLY_AT_START; calls `proc` for each failure. `entry`
 * is the directive that caused it, NULL if several were set or none. */
void configApplyAtStart(void (*proc)(const configEntry *entry, const reason *why, void *arg),
                        void *arg);
/* Frees the data of config_file.c. */
void configFileForget(void);

/* True if the option has the value that this word means; false for special options. */
bool configTextIsValue(const configOption *o, slice word);

/* A line of a file that the main file includes, as it was read at start. */
typedef struct configIncluded {
    const configOption *option;
    str text;
    int include; /* number of the include directive in the main file, from 0 on */
} configIncluded;
const configIncluded *configIncludedLines(int *count);

typedef struct configNewLine {
    str text;        /* without line end */
    bool is_default; /* only replaces a line */
    bool is_placed;
} configNewLine;

/* ---- other servers' directives ---- */

typedef struct configConfig {
    int unknown_directives;
} configConfig;
extern configConfig configConf;
/* UNKNOWN_WARN: harmless directives of other servers are ignored with a warning. */
enum { UNKNOWN_REFUSE, UNKNOWN_WARN };

/* A directive that another server has. One of `here` and `advice` is set. */
typedef struct configForeign {
    const char *name;
    const char *from;   /* the server */
    const char *here;   /* the directive here with the same meaning */
    const char *advice; /* what to do instead */
    bool harmless;      /* ignoring it changes nothing that this server does */
} configForeign;
/* Returns the row for a directive; NULL: the table has none. */
const configForeign *configForeignFind(slice name);
/* Appends the advice of the row to a message that has named the directive. */
void configForeignHint(const configForeign *f, str *out);
/* The first placeholder of a template in a text, like ${PORT}; length 0: there is none. */
slice configPlaceholder(slice text);

/* Calls `proc` with a sentence for each line that was accepted and deserves a look. Returns their
 * number. */
int configEachNote(void (*proc)(const char *sentence, void *arg), void *arg);
/* Takes one line without a number as configLoad() does; an include is not followed. False: `report`
 * has the reason. For programs that end after it. */
bool configTryLine(slice line, str *report);

struct configLines {
    const char *name;
    configNewLine *lines;
    int count, cap;
};

#endif

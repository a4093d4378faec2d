/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the three files of the configuration share: the index of names, and giving an option a value. */
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
    const char *file; /* kept by config_file.c until configUninstall() */
} configOrigin;

/* A name and what it stands for. Sorted by name in the index. */
typedef struct configEntry {
    const char *name;
    const configOption *option;
    struct configEntry *main; /* the entry of the option's own name; itself unless an alias */
    configOrigin origin;      /* of the main entry */
} configEntry;

/* NULL when nothing is called that. File-only directives are found too. */
configEntry *configEntryFind(slice name);
configEntry *configEntries(int *count);

/* Gives an option that is not file-only a value in words. `more` as in configSpecial. */
status configAssign(const configOption *o, const slice *words, int count, bool more,
                    reason *why) MUST_USE;
/* Gives it a value in one text, as CONFIG SET does: multi-word options split it at each blank. */
status configAssignText(const configOption *o, slice text, bool more, reason *why) MUST_USE;
/* The default as CONFIG GET would show it; false when there is none that is always the same. */
bool configDefault(const configOption *o, str *out);
/* Calls `apply` of all options with CONFIG_APPLY_AT_START; `proc` hears of each refusal. */
void configApplyAtStart(void (*proc)(const reason *why, void *arg), void *arg);
/* Frees what config_file.c remembers. */
void configFileForget(void);

struct configLines {
    const char *name;
    str *lines; /* vector of whole lines without line end */
    int count, cap;
};

#endif

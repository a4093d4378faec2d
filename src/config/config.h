/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Configuration. Folders export const tables of options. The registry reads values from a file and
 * the command line, implements CONFIG GET, SET and REWRITE, and records the origin of each value.
 * It does not know any option by name.
 *
 * A value is stored in a static struct of the folder that owns it; only the registry writes it,
 * through the pointer in the option's row. Main thread only. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

typedef enum configKind {
    CONFIG_KIND_END,
    CONFIG_KIND_BOOL,
    CONFIG_KIND_INT,
    CONFIG_KIND_OCTAL,
    CONFIG_KIND_MEMORY,
    CONFIG_KIND_MEMORY_OR_PERCENT,
    CONFIG_KIND_ENUM,
    CONFIG_KIND_STRING,
    CONFIG_KIND_SPECIAL,
    CONFIG_KIND_FILE_ONLY,
    CONFIG_KIND_TABLE,
} configKind;

enum configFlag {
    CONFIG_IMMUTABLE = 1u << 0, /* can be set only at start */
    CONFIG_HIDDEN = 1u << 1,    /* not matched by patterns of CONFIG GET, only by its full name */
    CONFIG_PROTECTED = 1u << 2, /* CONFIG SET only if enable-protected-configs allows it */
    CONFIG_SENSITIVE = 1u << 3, /* values are redacted in MONITOR and the command log */
    CONFIG_MULTI_WORD =
        1u << 4, /* the value is a list of words, separated by blanks in CONFIG SET */
    CONFIG_NOT_WHILE_LOADING = 1u << 5,
    CONFIG_APPLY_AT_START =
        1u << 6, /* `apply` is also called once after the configuration was read */
    CONFIG_IN_CRASH_REPORT = 1u << 7,
    CONFIG_MAY_BE_BARE = 1u << 8, /* may have no value on the command line */
    CONFIG_APPLY_ALWAYS =
        1u << 9, /* CONFIG SET calls `apply` even if the value is the same: names of files */
    CONFIG_ALWAYS_WRITTEN = 1u << 10, /* CONFIG REWRITE adds a line for the default, too */
    CONFIG_OF_DATASET = 1u << 11,     /* the former only in programs with a dataset */
};

/* A word of an enum. With CONFIG_MULTI_WORD the values are bits, and the word for 0 means
 * "none". */
typedef struct configWord {
    const char *name;
    int value;
} configWord;

/* Collects the lines that CONFIG REWRITE writes for an option. */
typedef struct configLines configLines;

/* Functions of an option that no other kind can describe. */
typedef struct configOption configOption;
typedef struct configSpecial {
    /* Sets the value. If it is invalid, fails with a reason and changes nothing. `more`: the option
     * was already set during this start; options whose lines accumulate add to the value. */
    status (*set)(const slice *words, int count, bool more, reason *why);
    /* Appends the value in the format of CONFIG GET, which set() accepts (multi-word: separated by
     * blanks). */
    void (*get)(str *out);
    /* Adds the lines for CONFIG REWRITE; adding none removes the option from the file. NULL: one
     * line with the words of get(). */
    void (*rewrite)(configLines *lines);
    /* The words of a line that undoes all lines before it. CONFIG REWRITE writes it after included
     * files: if there are no lines else, and with `adds_up` always. */
    const char *reset;
    bool adds_up; /* several lines of a file accumulate */
    /* Instead of these, for rows that share their functions (settings of modules). The words are
     * joined by blanks. rewrite_of() appends what follows the name; false: no line. */
    status (*set_of)(const configOption *o, slice text, reason *why);
    void (*get_of)(const configOption *o, str *out);
    bool (*rewrite_of)(const configOption *o, str *out);
} configSpecial;

/* A directive that is allowed only in a file or on the command line, and can be repeated. */
typedef struct configFileOnly {
    int words_min, words_max; /* after the name */
    /* How many words after the name CONFIG REWRITE tells lines apart by: new lines replace the old
     * ones with the same key in their order. NULL: all have the same key. */
    int (*key_words)(const slice *words, int count);
    /* CONFIG REWRITE adds no line with the key of a line in an included file: the latter could not
     * be overridden. */
    bool once_per_key;
    /* When a line is taken: after all lines without a rank, those of lower ranks first, wherever
     * they are. NULL: where it is. */
    int (*rank)(const slice *words, int count);
    status (*take)(const slice *words, int count, reason *why);
    /* As above; NULL: CONFIG REWRITE keeps the lines unchanged. */
    void (*rewrite)(configLines *lines);
} configFileOnly;

/* One row of a table of options; made with the macros below. A table ends with CONFIG_END. */
struct configOption {
    const char *name; /* lower case */
    configKind kind;
    uint32_t flags;
    void *at; /* a bool, int, int64_t, uint64_t, char * or str, depending on kind and size */
    size_t size;
    int64_t min;
    uint64_t max;
    int64_t number;   /* default of numbers, booleans, enums */
    const char *text; /* default of strings and specials; NULL: set() is not called for it */
    const configWord *words;
    const configSpecial *special;
    const configFileOnly *file_only;
    const struct configOption *table;
    /* Optional arguments of the macros: */
    const char *alias; /* an older name */
    /* Validates a value after parsing. `text` is unquoted; `number` is set if the kind has one. */
    status (*accept)(slice text, int64_t number, reason *why);
    /* Applies a new value after CONFIG SET, once for all options of that CONFIG SET which share the
     * function. If it fails it must have changed nothing, and all values are restored. It may
     * adjust the value (clamping). */
    status (*apply)(reason *why);
    /* Why the directive is accepted but does nothing here; NULL: it has an effect. */
    const char *no_effect;
};

/* clang-format off */
/* Rows of a table. The type of the field is checked. The last arguments may be .flags, .alias,
 * .accept, .apply and .no_effect, as designated initializers. */
#define CONFIG_BOOL(name_, field, default_, ...)                                    \
    {.kind = CONFIG_KIND_BOOL, .name = (name_), CONFIG_AT_(field, bool),            \
     .number = (default_), ##__VA_ARGS__}
/* `field` is an int or an int64_t. */
#define CONFIG_INT(name_, field, default_, min_, max_, ...)                         \
    {.kind = CONFIG_KIND_INT, .name = (name_), CONFIG_AT_EITHER_(field, int, int64_t), \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* An int in octal digits, as are its limits. */
#define CONFIG_OCTAL(name_, field, default_, min_, max_, ...)                       \
    {.kind = CONFIG_KIND_OCTAL, .name = (name_), CONFIG_AT_(field, int),            \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* Bytes: 100, 1k (1000), 1kb (1024), ... `field` is an int64_t; a negative `min_` allows "-1". */
#define CONFIG_MEMORY(name_, field, default_, min_, max_, ...)                      \
    {.kind = CONFIG_KIND_MEMORY, .name = (name_), CONFIG_AT_(field, int64_t),       \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* Bytes in the full unsigned range; `field` is a uint64_t. */
#define CONFIG_MEMORY_UNSIGNED(name_, field, default_, ...)                         \
    {.kind = CONFIG_KIND_MEMORY, .name = (name_), CONFIG_AT_(field, uint64_t),      \
     .number = (default_), CONFIG_BOUNDS_(0, UINT64_MAX), ##__VA_ARGS__}
/* Bytes, or with a % sign a percentage of maxmemory, stored as a negative number (-5 is 5%) in an
 * int64_t. */
#define CONFIG_MEMORY_OR_PERCENT(name_, field, default_, ...)                       \
    {.kind = CONFIG_KIND_MEMORY_OR_PERCENT, .name = (name_), CONFIG_AT_(field, int64_t), \
     .number = (default_), CONFIG_BOUNDS_(0, INT64_MAX), ##__VA_ARGS__}
/* For maxmemory: percentages are of the machine's memory, and the errors are those of
 * CONFIG_MEMORY. Any unsigned number of bytes is allowed and stored as its bits; configLimitShare()
 * recognises percentages. */
#define CONFIG_MEMORY_LIMIT(name_, field, ...)                                      \
    {.kind = CONFIG_KIND_MEMORY_OR_PERCENT, .name = (name_), CONFIG_AT_(field, int64_t), \
     CONFIG_BOUNDS_(0, UINT64_MAX), ##__VA_ARGS__}
/* `words_` ends with a NULL name; `field` is an int. */
#define CONFIG_ENUM(name_, field, words_, default_, ...)                            \
    {.kind = CONFIG_KIND_ENUM, .name = (name_), CONFIG_AT_(field, int),             \
     .words = (words_), .number = (default_), ##__VA_ARGS__}
/* `field` is a char * (never NULL, must not contain NUL bytes) or, for secrets and values with any
 * bytes, a str. The registry owns it. */
#define CONFIG_STRING(name_, field, default_, ...)                                  \
    {.kind = CONFIG_KIND_STRING, .name = (name_), CONFIG_AT_EITHER_(field, char *, str), \
     .text = (default_), ##__VA_ARGS__}
#define CONFIG_SPECIAL(name_, special_, default_, ...)                              \
    {.kind = CONFIG_KIND_SPECIAL, .name = (name_), .special = (special_),           \
     .text = (default_), ##__VA_ARGS__}
#define CONFIG_FILE_ONLY(name_, file_only_, ...)                                    \
    {.kind = CONFIG_KIND_FILE_ONLY, .name = (name_), .file_only = (file_only_), ##__VA_ARGS__}
/* A directive of older versions: accepted and ignored. */
#define CONFIG_IGNORED(name_) \
    CONFIG_FILE_ONLY(name_, &configIgnored, .no_effect = "it is obsolete, and ignored as in Valkey")
/* Includes all rows of another table of the same folder. */
#define CONFIG_TABLE(table_) {.kind = CONFIG_KIND_TABLE, .table = (table_)}
#define CONFIG_END {.kind = CONFIG_KIND_END}

#define CONFIG_AT_(field, type) .at = _Generic(&(field), type *: &(field)), .size = sizeof(field)
#define CONFIG_AT_EITHER_(field, type, other) \
    .at = _Generic(&(field), type *: &(field), other *: &(field)), .size = sizeof(field)
#define CONFIG_BOUNDS_(min_, max_) .min = (min_), .max = (uint64_t)(max_)
/* clang-format on */

#define CONFIG_KB INT64_C(1024)
#define CONFIG_MB (1024 * CONFIG_KB)
#define CONFIG_GB (1024 * CONFIG_MB)
#define CONFIG_PORT_MAX 65535

extern const configFileOnly configIgnored;
extern const configOption configOptions[]; /* directives about the configuration itself */

/* ------------------------------------------------------------------ initialisation */

/* Registers the tables and sets all defaults. Names must be unique. Called once, before
 * configLoad(). */
void configInstall(const configOption *const *tables, int count);
/* Registers one more table while the server runs (a module's), with its defaults. ERR_EXISTS: a
 * name of it is in use, nothing has changed. */
status configAdd(const configOption *table);
/* Frees the values of such a table and unregisters it. */
void configRemove(const configOption *table);
/* Frees all values and unregisters the tables (for tests and leak checkers). */
void configUninstall(void);

/* Reads the configuration given by argv. argv[1] is the file unless it begins with '-' ("-" is
 * standard input); "--name value ..." are lines after it. All errors are reported: `report`
 * receives their texts without a headline, and ERR_SYNTAX is returned. The caller frees
 * `report`. */
status configLoad(int argc, const char *const *argv, str *report) MUST_USE;
/* Sets a value before configLoad(), for a program whose defaults differ. The default of the
 * directive remains, so that CONFIG REWRITE writes the value. It must be valid. */
void configPreset(const char *name, const char *text);
/* Values of names with a dot that no table has are kept: those of modules, which register theirs
 * later. Moves the value to `out`; false: there is none. */
bool configTakeKept(slice name, str *out);
/* The first name whose value is kept still; NULL if there is none. */
const char *configFirstKept(void);
/* Reports the lines of all values that are kept still, as configLoad() does errors. */
void configReportKept(const char *words, str *report);
/* Absolute path of the file, NULL if there is none. */
const char *configFilePath(void);
/* Where the line is that configFileOnly.take() receives. */
typedef enum configSource {
    CONFIG_IN_INCLUDED_FILE,
    CONFIG_IN_MAIN_FILE,
    CONFIG_ON_COMMAND_LINE /* or in a file that it includes */
} configSource;
configSource configLineSource(void);

/* Converts the file of another server into one for this server: `out` receives the lines, refused
 * ones as comments; `notes` a description of each change. Returns how many lines the user has to
 * decide about; -1: the file cannot be read. Sets values, so the program must end after it. */
int configMigrate(const char *path, str *out, str *notes);

/* ------------------------------------------------------------------ reading and changing values */

/* The option with that name or alias, ignoring case; NULL if there is none. */
const configOption *configFind(slice name);
/* Appends the value in the format of CONFIG GET. */
void configGet(const configOption *o, str *out);
/* Appends "default", "/etc/valkey.conf:12", "command line" or "CONFIG SET". */
void configGetOrigin(const configOption *o, str *out);
/* Calls `proc` with a sentence for each directive set at start that has no effect, each ignored
 * directive of another server, and each value that is a placeholder. Returns their number. */
int configEachWithoutEffect(void (*proc)(const char *sentence, void *arg), void *arg);
/* Calls `proc` for every name including aliases, sorted; file-only directives are omitted. */
void configEach(void (*proc)(const char *name, const configOption *o, void *arg), void *arg);

typedef struct configMatch {
    slice name; /* the option's name for a pattern, the given name otherwise */
    const configOption *option;
} configMatch;
/* The result of CONFIG GET for names and patterns: each option once, sorted by displayed name.
 * Returns their number. The caller frees *found with memFree(); its names point into `patterns` and
 * the tables. */
int configMatchAll(const slice *patterns, int count, configMatch **found);

/* Permissions of the caller of configSet(). */
enum { CONFIG_ALLOW_PROTECTED = 1, CONFIG_ALLOW_NOT_WHILE_LOADING = 2, CONFIG_ALLOW_ALL = 3 };
/* CONFIG SET: `pairs` are `count` names, each followed by its value; `allowed` are CONFIG_ALLOW_
 * bits. Changes all or nothing. On failure `error` receives the complete reply ("ERR ...").
 * ERR_NOT_FOUND: unknown name; ERR_DENIED: not permitted now; others: a value was invalid or could
 * not be applied. */
status configSet(const slice *pairs, int count, unsigned allowed, str *error) MUST_USE;
/* How often it was called; a call within another one is not counted. */
uint64_t configSetNumber(void);
/* For an `apply` that several options share, before it fails: names this one in the error. */
void configSetBlame(const configOption *o);
/* True if values of that option must not be shown in logs and MONITOR. */
bool configIsSensitive(slice name);
/* Appends "name value" lines of the options shown in crash reports. */
void configReport(str *out);

/* ------------------------------------------------------------------ CONFIG REWRITE */

enum { CONFIG_REWRITE_ALL = 1 /* also defaults */, CONFIG_REWRITE_NO_DATASET = 2 };
/* Writes the current values to the file. Comments, order and unknown lines are kept, lines of
 * directives are replaced in place, repeated ones removed, new ones appended. ERR_NOT_FOUND if
 * there is no file. */
status configRewrite(unsigned flags, reason *why) MUST_USE;
/* For configFileOnly.key_words: the first word, such as the name of a user, tells lines apart. */
int configKeyIsWord(const slice *words, int count);
/* Adds a line with the option's name and `rest`, which must not contain a line end. */
void configLinesAdd(configLines *lines, slice rest);
/* The same for a default: it replaces a line with the same key, but is not added to the file. */
void configLinesAddDefault(configLines *lines, slice rest);
/* Appends a word, quoted if necessary. */
void configAppendWord(str *out, slice word);
/* Appends "100mb" if that is exact, else digits. */
void configAppendMemory(str *out, uint64_t bytes);
/* The percentage stored in a CONFIG_MEMORY_LIMIT; 0 if it is a number of bytes. */
int configLimitShare(int64_t field);

#endif

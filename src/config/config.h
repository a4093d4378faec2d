/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Configuration: folders export const tables of options, the registry reads them from a file and the
 * command line, answers CONFIG GET, SET and REWRITE, and remembers where each value came from. It knows
 * no option by name.
 *
 * A value lives in a static struct of the folder that owns it; the registry writes it through the
 * pointer of the table's row, and only there. Main thread only. */
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
    CONFIG_IMMUTABLE = 1u << 0,  /* only at start */
    CONFIG_HIDDEN = 1u << 1,     /* patterns of CONFIG GET do not find it, its name does */
    CONFIG_PROTECTED = 1u << 2,  /* CONFIG SET only where enable-protected-configs allows it */
    CONFIG_SENSITIVE = 1u << 3,  /* its values are redacted in MONITOR and the command log */
    CONFIG_MULTI_WORD = 1u << 4, /* the value is words, parted by one blank in CONFIG SET */
    CONFIG_NOT_WHILE_LOADING = 1u << 5,
    CONFIG_APPLY_AT_START = 1u << 6, /* `apply` is also called once when everything has been read */
    CONFIG_IN_CRASH_REPORT = 1u << 7,
    CONFIG_MAY_BE_BARE =
        1u << 8, /* may stand on the command line without a value, in front of other options */
};

/* A word of an enum. With CONFIG_MULTI_WORD the values are bits, and the word of value 0 is "none". */
typedef struct configWord {
    const char *name;
    int value;
} configWord;

/* Collects the lines CONFIG REWRITE writes for one option. */
typedef struct configLines configLines;

/* How an option is handled that no kind describes. */
typedef struct configSpecial {
    /* Takes the words as the value; refuses with a reason and has changed nothing. `more` means that this
     * start has set the option before: where several lines of a file add up, these are added. */
    status (*set)(const slice *words, int count, bool more, reason *why);
    /* The value as CONFIG GET shows it, which set() takes back (parted by blanks when multi-word). */
    void (*get)(str *out);
    /* Adds its lines for CONFIG REWRITE; none removes it from the file. NULL: name and words of get(). */
    void (*rewrite)(configLines *lines);
} configSpecial;

/* A directive that only a file or the command line may hold, any number of times. */
typedef struct configFileOnly {
    int words_min, words_max; /* behind the name */
    status (*take)(const slice *words, int count, reason *why);
    /* As above; NULL: CONFIG REWRITE leaves its lines as they are. */
    void (*rewrite)(configLines *lines);
} configFileOnly;

/* One row of a folder's table; made by the macros below. A table ends with CONFIG_END. */
typedef struct configOption {
    const char *name; /* lower case */
    configKind kind;
    uint32_t flags;
    void *at; /* bool, int, int64_t, uint64_t, char * or str, by kind and size */
    size_t size;
    int64_t min;
    uint64_t max;
    int64_t number;   /* default of numbers, bools, enums */
    const char *text; /* default of strings and specials; NULL: set() is not called for it */
    const configWord *words;
    const configSpecial *special;
    const configFileOnly *file_only;
    const struct configOption *table;
    /* What the macros' optional part may name: */
    const char *alias; /* an older name with the same rights */
    /* May refuse a value that parsed: its text (quoted words undone), and its number if it has one. */
    status (*accept)(slice text, int64_t number, reason *why);
    /* Brings a new value into effect after CONFIG SET, once for all options of the same CONFIG SET that
     * share it. A refusal must have changed nothing; all values are rolled back then. May itself put a
     * value right (clamp it). */
    status (*apply)(reason *why);
} configOption;

/* clang-format off */
/* A row in a folder's table. The field's type is checked. Behind the last argument may follow .flags,
 * .alias, .accept and .apply, written as in any initializer. */
#define CONFIG_BOOL(name_, field, default_, ...)                                    \
    {.kind = CONFIG_KIND_BOOL, .name = (name_), CONFIG_AT_(field, bool),            \
     .number = (default_), ##__VA_ARGS__}
/* `field` is an int or an int64_t. */
#define CONFIG_INT(name_, field, default_, min_, max_, ...)                         \
    {.kind = CONFIG_KIND_INT, .name = (name_), CONFIG_AT_EITHER_(field, int, int64_t), \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* An int in octal digits, its bounds too. */
#define CONFIG_OCTAL(name_, field, default_, min_, max_, ...)                       \
    {.kind = CONFIG_KIND_OCTAL, .name = (name_), CONFIG_AT_(field, int),            \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* Bytes: 100, 1k (1000), 1kb (1024), ... `field` is an int64_t; a negative `min_` allows "-1". */
#define CONFIG_MEMORY(name_, field, default_, min_, max_, ...)                      \
    {.kind = CONFIG_KIND_MEMORY, .name = (name_), CONFIG_AT_(field, int64_t),       \
     .number = (default_), CONFIG_BOUNDS_(min_, max_), ##__VA_ARGS__}
/* Bytes over the whole unsigned range; `field` is a uint64_t. */
#define CONFIG_MEMORY_UNSIGNED(name_, field, default_, ...)                         \
    {.kind = CONFIG_KIND_MEMORY, .name = (name_), CONFIG_AT_(field, uint64_t),      \
     .number = (default_), CONFIG_BOUNDS_(0, UINT64_MAX), ##__VA_ARGS__}
/* Bytes, or with a % sign a share of maxmemory, kept as a negative number (-5 is 5%); an int64_t. */
#define CONFIG_MEMORY_OR_PERCENT(name_, field, default_, ...)                       \
    {.kind = CONFIG_KIND_MEMORY_OR_PERCENT, .name = (name_), CONFIG_AT_(field, int64_t), \
     .number = (default_), CONFIG_BOUNDS_(0, INT64_MAX), ##__VA_ARGS__}
/* maxmemory alone: the share is of the machine's memory, and the errors are those of CONFIG_MEMORY. Bytes may be
 * any unsigned number, kept as its bits; configLimitShare() tells a share from them. */
#define CONFIG_MEMORY_LIMIT(name_, field, ...)                                      \
    {.kind = CONFIG_KIND_MEMORY_OR_PERCENT, .name = (name_), CONFIG_AT_(field, int64_t), \
     CONFIG_BOUNDS_(0, UINT64_MAX), ##__VA_ARGS__}
/* `words_` ends with a NULL name; `field` is an int. */
#define CONFIG_ENUM(name_, field, words_, default_, ...)                            \
    {.kind = CONFIG_KIND_ENUM, .name = (name_), CONFIG_AT_(field, int),             \
     .words = (words_), .number = (default_), ##__VA_ARGS__}
/* `field` is a char * (never NULL, takes no NUL byte) or, for secrets, a str. The registry owns it. */
#define CONFIG_STRING(name_, field, default_, ...)                                  \
    {.kind = CONFIG_KIND_STRING, .name = (name_), CONFIG_AT_EITHER_(field, char *, str), \
     .text = (default_), ##__VA_ARGS__}
#define CONFIG_SPECIAL(name_, special_, default_, ...)                              \
    {.kind = CONFIG_KIND_SPECIAL, .name = (name_), .special = (special_),           \
     .text = (default_), ##__VA_ARGS__}
#define CONFIG_FILE_ONLY(name_, file_only_)                                         \
    {.kind = CONFIG_KIND_FILE_ONLY, .name = (name_), .file_only = (file_only_)}
/* A directive of older versions: read, and without effect. */
#define CONFIG_IGNORED(name_) CONFIG_FILE_ONLY(name_, &configIgnored)
/* All rows of another table of the same folder. */
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

/* ------------------------------------------------------------------ setting up */

/* Takes the tables and gives every option its default. Names must not repeat. Once, before configLoad(). */
void configInstall(const configOption *const *tables, int count);
/* Frees all values and forgets the tables (tests, leak checkers). */
void configUninstall(void);

/* Reads what a server was started with: argv[1] unless it begins with '-' (or is "-": standard input)
 * names the file, and "--name value ..." are lines behind it. All errors are found before it returns;
 * `report` gets them as people and test suites know them, without the headline. ERR_SYNTAX then.
 * `report` is the caller's to free. */
status configLoad(int argc, const char *const *argv, str *report) MUST_USE;
/* Absolute path of the file, NULL without one. */
const char *configFilePath(void);

/* ------------------------------------------------------------------ asking and changing */

/* The option of that name or alias in any case, NULL when there is none. */
const configOption *configFind(slice name);
/* The value as CONFIG GET shows it, appended. */
void configGet(const configOption *o, str *out);
/* "default", "/etc/valkey.conf:12", "command line" or "CONFIG SET", appended. */
void configGetOrigin(const configOption *o, str *out);
/* Calls `proc` for every name, aliases included, sorted; options of files only are left out. */
void configEach(void (*proc)(const char *name, const configOption *o, void *arg), void *arg);

typedef struct configMatch {
    slice name; /* as it is shown: a pattern shows the option's name, a plain name itself */
    const configOption *option;
} configMatch;
/* What CONFIG GET finds for names and patterns, each option once, sorted by shown name. Returns the
 * count; *found is the caller's to memFree, its names point into `patterns` and the tables. */
int configMatchAll(const slice *patterns, int count, configMatch **found);

/* What the caller of configSet() may change now. */
enum { CONFIG_ALLOW_PROTECTED = 1, CONFIG_ALLOW_NOT_WHILE_LOADING = 2, CONFIG_ALLOW_ALL = 3 };
/* CONFIG SET: `pairs` are `count` names, each followed by its value; `allowed` are CONFIG_ALLOW_ bits. All or
 * nothing. On failure `error` gets the whole reply ("ERR ..."). ERR_NOT_FOUND: unknown name; ERR_DENIED: not
 * allowed now; others: a value or its effect was refused. */
status configSet(const slice *pairs, int count, unsigned allowed, str *error) MUST_USE;
/* True when a value of that option must not be shown to those who watch. */
bool configIsSensitive(slice name);
/* "name value" lines of the options a crash report shows. */
void configReport(str *out);

/* ------------------------------------------------------------------ CONFIG REWRITE */

/* Writes the values into the file (with `all` those too that are what they are by default): comments, order and unknown lines stay, changed lines are changed in
 * place, repeated ones dropped, new ones appended. Old or new file, never half of one. ERR_NOT_FOUND
 * without a file. */
status configRewrite(bool all, reason *why) MUST_USE;
/* Adds a line: the option's name and `rest`, which is put down as it is (no line end in it). */
void configLinesAdd(configLines *lines, slice rest);
/* Appends a word, quoted when the reader of files would otherwise not see it as one. */
void configAppendWord(str *out, slice word);
/* "100mb" where that is exact, else digits. */
void configAppendMemory(str *out, uint64_t bytes);
/* The percent that a CONFIG_MEMORY_LIMIT's field stands for; 0: it is a number of bytes. */
int configLimitShare(int64_t field);

#endif

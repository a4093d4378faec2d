/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the configuration at start: a file, included files, the command line. Parsing continues
 * after errors, so that all are reported together.
 *
 * Invariant: a file does not include itself, directly or indirectly. Main thread only. */
#include "config/config.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>

#include "base/base.h"
#include "config/config_priv.h"
#include "io/file.h"

/* The text of Valkey for both errors; the text after it says which of them it is. */
#define BAD_DIRECTIVE "Bad directive or wrong number of arguments"

enum {
    FILE_BYTES_MAX = 64 * 1024 * 1024,
    INCLUDE_DEPTH_MAX = 16,
    SUGGEST_LEN_MAX = 64,
};

static struct {
    char *path;   /* absolute path of the main file */
    char **names; /* of all files read; origins refer to them */
    int name_count;
    configIncluded *included; /* lines of files that the main file includes */
    int included_count;
    str *notes; /* sentences on accepted lines */
    int note_count;
} files;

/* A line that is taken after others: see configFileOnly.rank. */
typedef struct rankedLine {
    int rank, number;
    configSource source;
    const char *file;
    str line;
} rankedLine;

typedef struct loader {
    str *report;
    int errors;
    const char *file;                     /* current file; NULL: the command line */
    const char *stack[INCLUDE_DEPTH_MAX]; /* absolute paths of the including files */
    int depth;
    configSource source;
    bool is_main; /* the main file is being read, and what it includes */
    int includes; /* directives in the main file so far */
    rankedLine *ranked;
    int ranked_count;
    bool takes_ranked;
    bool tries;   /* configTryLine(): lines are taken where they are, includes are not followed */
    str proposal; /* instead of a line with an error */
    str hint;     /* more about this line */
    rankedLine *foreign; /* harmless lines of other servers: refused or noted at the end */
    int foreign_count;
} loader;

static status ignoreWords(const slice *words, int count, reason *why) {
    (void)words, (void)count, (void)why; /* ignored on purpose */
    return OK;
}

const configFileOnly configIgnored = {.words_min = 1, .words_max = 1, .take = ignoreWords};

const char *configFilePath(void) { return files.path; }

static configSource line_source; /* of the line that is being taken */

configSource configLineSource(void) {
    hotCheck(threadIsMain());
    return line_source;
}

const configIncluded *configIncludedLines(int *count) {
    *count = files.included_count;
    return files.included;
}

void configFileForget(void) {
    hotCheck(threadIsMain());
    for (int i = 0; i < files.name_count; i++) memFree(files.names[i]);
    memFree(files.names);
    memFree(files.path);
    for (int i = 0; i < files.included_count; i++) strFree(&files.included[i].text);
    memFree(files.included);
    for (int i = 0; i < files.note_count; i++) strFree(&files.notes[i]);
    memFree(files.notes);
    memset(&files, 0, sizeof(files));
}

/* Copies a file name; valid as long as the origins. */
static const char *keepName(const char *name) {
    for (int i = 0; i < files.name_count; i++) {
        if (strcmp(files.names[i], name) == 0) return files.names[i];
    }
    files.names = memRealloc(files.names, sizeof(char *) * (size_t)(files.name_count + 1));
    files.names[files.name_count] = memDup(name, strlen(name));
    return files.names[files.name_count++];
}

/* ------------------------------------------------------------------ errors */

/* Damerau-Levenshtein distance: number of letters to change, insert, delete or swap. */
static int editDistance(slice from, const char *to) {
    int rows[3][SUGGEST_LEN_MAX + 1];
    int len = (int)strlen(to);
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= len; j++) last[j] = j;
    for (int i = 1; i <= (int)from.len; i++) {
        now[0] = i;
        for (int j = 1; j <= len; j++) {
            bool same = (from.ptr[i - 1] | 32) == (to[j - 1] | 32);
            int best = last[j - 1] + !same;
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && from.ptr[i - 2] == to[j - 1] && from.ptr[i - 1] == to[j - 2] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
        int *oldest = before;
        before = last, last = now, now = oldest;
    }
    return last[len];
}

/* The most similar name, NULL if none is similar enough. For options of valkey-cli, those here. */
static const char *suggestName(slice name) {
    hotCheck(name.ptr);
    if (sliceIs(name, "-p")) return "--port";
    if (sliceIs(name, "-a")) return "--requirepass";
    const char *best = NULL;
    int best_distance = name.len < 5 ? 2 : 4; /* maximum distance, exclusive */
    if (name.len == 0 || name.len > SUGGEST_LEN_MAX) return NULL;
    int count;
    const configEntry *entries = configEntries(&count);
    for (int i = 0; i < count; i++) {
        if (strlen(entries[i].name) > SUGGEST_LEN_MAX) continue;
        int distance = editDistance(name, entries[i].name);
        if (distance >= best_distance) continue;
        best_distance = distance;
        best = entries[i].name;
    }
    return best;
}

/* Appends the line as it may be shown: without the value of a secret directive. */
static void appendShown(str *out, slice line) {
    size_t len = 0;
    while (len < line.len && !memchr(" \t\"'", line.ptr[len], 4)) len++;
    slice name = sliceMake(line.ptr, len);
    bool is_secret = len < line.len && (configIsSensitive(name) || sliceIs(name, "user"));
    strAppendSlice(out, is_secret ? name : line);
    if (is_secret) strAppendText(out, " (hidden)");
}

/* The first three lines have Valkey's format, which users search the web for; additions follow. */
static void reportLine(loader *l, slice line, int number, const char *words,
                       const char *suggestion) {
    hotCheck(number >= 0);
    l->errors++;
    strAppendFormat(l->report, "Reading the configuration file, at line %d\n>>> '", number);
    appendShown(l->report, line);
    strAppendFormat(l->report, "'\n%s\n", words);
    if (l->file) {
        strAppendFormat(l->report, "    in %s", l->file);
    } else {
        strAppendText(l->report, "    on the command line");
    }
    if (l->hint.len) strAppendFormat(l->report, "; %s", strText(&l->hint));
    if (suggestion) strAppendFormat(l->report, "; did you mean '%s'?", suggestion);
    strAppendByte(l->report, '\n');
    strClear(&l->hint);
}

int configEachNote(void (*proc)(const char *sentence, void *arg), void *arg) {
    hotCheck(threadIsMain());
    for (int i = 0; i < files.note_count; i++) proc(strText(&files.notes[i]), arg);
    return files.note_count;
}

/* Begins a note with the directive and the place where it is set. */
static str *newNote(const loader *l, slice name, int number) {
    files.notes = memRealloc(files.notes, sizeof(str) * (size_t)(files.note_count + 1));
    str *note = &files.notes[files.note_count++];
    *note = STR_EMPTY;
    strAppendFormat(note, "Directive '%.*s' (", (int)name.len, name.ptr);
    if (l->file) {
        strAppendFormat(note, "%s:%d) ", l->file, number);
    } else {
        strAppendText(note, "command line) ");
    }
    return note;
}

/* ------------------------------------------------------------------ lines */

static status takeFile(loader *l, const char *path, int *newlines, reason *why);

static bool isPattern(const char *path) { return strpbrk(path, "*?[") != NULL; }

static status takeInclude(loader *l, const char *path, reason *why) {
    int newlines;
    if (!isPattern(path)) return takeFile(l, path, &newlines, why);
    glob_t found;
    int code = glob(path, GLOB_MARK, NULL, &found);
    if (code == GLOB_NOMATCH) return OK;
    if (code != 0)
        return reasonSet(why, ERR_IO, "Fatal error, can't search for config files '%s'", path);
    status st = OK;
    for (size_t i = 0; i < found.gl_pathc && st == OK; i++) {
        const char *name = found.gl_pathv[i];
        if (name[strlen(name) - 1] == '/') continue; /* a directory */
        st = takeFile(l, name, &newlines, why);
    }
    globfree(&found);
    return st;
}

static void setOrigin(const loader *l, configEntry *entry, int number) {
    hotCheck(number >= 0);
    entry->main->origin =
        (configOrigin){l->file ? CONFIG_FROM_FILE : CONFIG_FROM_COMMAND_LINE, number, l->file};
}

static status takeOption(loader *l, configEntry *entry, const slice *words, int count, int number,
                         reason *why) {
    hotCheck(count >= 0);
    hotCheck(entry->option->kind != CONFIG_KIND_END);
    const configOption *o = entry->option;
    if (o->kind == CONFIG_KIND_FILE_ONLY) {
        bool fits = count >= o->file_only->words_min && count <= o->file_only->words_max;
        if (!fits) strAppendText(&l->hint, "wrong number of arguments");
        if (!fits) return reasonSet(why, ERR_SYNTAX, BAD_DIRECTIVE);
        if (o->no_effect) setOrigin(l, entry, number);
        return o->file_only->take(words, count, why);
    }
    bool more = entry->main->origin.kind != CONFIG_FROM_DEFAULT;
    bool split = count == 1 && (o->flags & CONFIG_MULTI_WORD); /* e.g. bind "::1 127.0.0.1" */
    status st =
        split ? configAssignText(o, words[0], more, why) : configAssign(o, words, count, more, why);
    if (st == OK) setOrigin(l, entry, number);
    return st;
}

/* ------------------------------------------------------------------ values of modules */

typedef struct keptValue {
    struct keptValue *next;
    str name, text;
    const char *file; /* NULL: the command line */
    int line;
} keptValue;

static keptValue *kept;

static keptValue **findKept(slice name) {
    keptValue **at = &kept;
    while (*at && !sliceEqualFold(strSlice(&(*at)->name), name)) at = &(*at)->next;
    return at;
}

/* The value of a name that a module may register later; a later line replaces an earlier one. */
static status keepValue(const loader *l, const str *words, int count, int number, reason *why) {
    if (count < 2) return reasonSet(why, ERR_SYNTAX, "Module config specified without value");
    keptValue **at = findKept(strSlice(&words[0]));
    if (!*at) {
        *at = memNew(keptValue);
        (*at)->name = strNew(strSlice(&words[0]));
    }
    (*at)->file = l->file;
    (*at)->line = number;
    strClear(&(*at)->text);
    for (int i = 1; i < count; i++) {
        if (i > 1) strAppendByte(&(*at)->text, ' ');
        strAppendSlice(&(*at)->text, strSlice(&words[i]));
    }
    return OK;
}

bool configTakeKept(slice name, str *out) {
    hotCheck(threadIsMain());
    keptValue **at = findKept(name), *found = *at;
    if (!found) return false;
    *at = found->next;
    strAppendSlice(out, strSlice(&found->text));
    strFree(&found->name);
    strFree(&found->text);
    memFree(found);
    return true;
}

const char *configFirstKept(void) { return kept ? strText(&kept->name) : NULL; }

void configReportKept(const char *words, str *report) {
    hotCheck(threadIsMain());
    for (const keptValue *k = kept; k; k = k->next) {
        loader l = {.report = report, .file = k->file};
        /* Without the value, which may be a secret. */
        reportLine(&l, strSlice(&k->name), k->line, words, NULL);
    }
}

/* "maxmemory 2gb" for the words of "maxmemory 2 gb"; NULL if they are something else. */
static const char *joinUnit(loader *l, const configOption *o, const str *words, int count) {
    static const char *const units[] = {"b", "k", "kb", "m", "mb", "g", "gb", "%"};
    hotCheck(count > 0);
    bool is_memory = o->kind == CONFIG_KIND_MEMORY || o->kind == CONFIG_KIND_MEMORY_OR_PERCENT;
    if (!is_memory || count != 3) return NULL;
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (!sliceIs(strSlice(&words[2]), units[i])) continue;
        strClear(&l->proposal);
        strAppendFormat(&l->proposal, "%s %s%s", o->name, strText(&words[1]), units[i]);
        return strText(&l->proposal);
    }
    return NULL;
}

/* Fails for an unknown name, with a hint for the user. */
static status takeUnknown(loader *l, slice name, const char **suggestion, reason *why) {
    const configForeign *foreign = configForeignFind(name);
    bool is_include = sliceIs(name, "include"); /* include is in no table */
    strAppendText(&l->hint, is_include ? "wrong number of arguments" : "unknown directive");
    if (foreign) {
        strAppendByte(&l->hint, ' ');
        configForeignHint(foreign, &l->hint);
    } else if (!is_include) {
        *suggestion = suggestName(name);
    }
    return reasonSet(why, ERR_NOT_FOUND, BAD_DIRECTIVE);
}

static status takeWords(loader *l, const str *words, int count, int number, const char **suggestion,
                        reason *why) {
    hotCheck(count > 0);
    slice name = strSlice(&words[0]);
    if (sliceIs(name, "include") && count == 2) {
        if (l->tries) return OK;
        l->includes += l->source == CONFIG_IN_MAIN_FILE;
        return takeInclude(l, strText(&words[1]), why);
    }
    configEntry *entry = configEntryFind(name);
    if (!entry && memchr(name.ptr, '.', name.len)) return keepValue(l, words, count, number, why);
    if (!entry) return takeUnknown(l, name, suggestion, why);
    slice *values = memNewArray(slice, (size_t)count);
    for (int i = 1; i < count; i++) values[i - 1] = strSlice(&words[i]);
    status st = takeOption(l, entry, values, count - 1, number, why);
    memFree(values);
    if (st != OK) *suggestion = joinUnit(l, entry->option, words, count);
    return st;
}

static slice trim(slice line) {
    while (line.len && memchr(" \t\r\n", line.ptr[0], 4)) line.ptr++, line.len--;
    while (line.len && memchr(" \t\r\n", line.ptr[line.len - 1], 4)) line.len--;
    return line;
}

/* True if the line was put aside. */
static bool putAside(loader *l, slice line, int number, const str *words, int count) {
    const configEntry *entry = configEntryFind(strSlice(&words[0]));
    const configOption *o = entry ? entry->option : NULL;
    if (l->takes_ranked || !o || o->kind != CONFIG_KIND_FILE_ONLY || !o->file_only->rank)
        return false;
    slice *values = memNewArray(slice, (size_t)count);
    for (int i = 1; i < count; i++) values[i - 1] = strSlice(&words[i]);
    l->ranked = memRealloc(l->ranked, sizeof(rankedLine) * (size_t)(l->ranked_count + 1));
    l->ranked[l->ranked_count++] = (rankedLine){.rank = o->file_only->rank(values, count - 1),
                                                .number = number,
                                                .source = l->source,
                                                .file = l->file,
                                                .line = strNew(line)};
    memFree(values);
    return true;
}

/* Puts a line of another server that may be ignored aside, until all lines have been read. */
static bool putForeignAside(loader *l, slice line, int number, const str *words) {
    slice name = strSlice(&words[0]);
    bool known = configEntryFind(name) != NULL;
    const configForeign *foreign = known ? NULL : configForeignFind(name);
    if (l->tries || !foreign || !foreign->harmless) return false;
    l->foreign = memRealloc(l->foreign, sizeof(rankedLine) * (size_t)(l->foreign_count + 1));
    l->foreign[l->foreign_count++] =
        (rankedLine){.number = number, .source = l->source, .file = l->file, .line = strNew(line)};
    return true;
}

/* Notes a value that is nothing but a placeholder. Passwords are not checked, as they may look like
 * one. */
static void notePlaceholder(const loader *l, const str *words, int count, int number) {
    slice name = strSlice(&words[0]);
    if (configIsSensitive(name) || sliceIs(name, "user")) return;
    for (int i = 1; i < count; i++) {
        slice word = strSlice(&words[i]), found = configPlaceholder(word);
        if (!found.len || found.len != word.len) continue;
        strAppendFormat(newNote(l, name, number),
                        "has the value '%.*s', a placeholder that nothing has replaced",
                        (int)word.len, word.ptr);
    }
}

/* Stores a line of an included file: CONFIG REWRITE compares it with the value at that time. */
static void noteIncluded(const loader *l, slice line, const str *words) {
    hotCheck(line.len > 0);
    const configEntry *entry = configEntryFind(strSlice(&words[0]));
    if (l->source != CONFIG_IN_INCLUDED_FILE || l->takes_ranked || !entry) return;
    check(l->includes > 0);
    files.included =
        memRealloc(files.included, sizeof(configIncluded) * (size_t)(files.included_count + 1));
    files.included[files.included_count++] =
        (configIncluded){entry->option, strNew(line), l->includes - 1};
}

/* Adds to the hint that a value of a line with an error has a placeholder. */
static void hintPlaceholder(loader *l, const str *words, int count) {
    for (int i = 0; i < count; i++) {
        slice found = configPlaceholder(strSlice(&words[i]));
        if (!found.len || configIsSensitive(strSlice(&words[0]))) continue;
        if (l->hint.len) strAppendText(&l->hint, "; ");
        strAppendFormat(&l->hint, "'%.*s' is a placeholder that nothing has replaced",
                        (int)found.len, found.ptr);
        return;
    }
}

static void takeLine(loader *l, slice line, int number) {
    line = trim(line);
    if (line.len == 0 || line.ptr[0] == '#') return;
    str *words;
    int count;
    if (!strSplitWords(line, &words, &count)) {
        reportLine(l, line, number, "Unbalanced quotes in configuration line", NULL);
        return;
    }
    reason why = {""};
    const char *suggestion = NULL;
    line_source = l->source;
    if (count) noteIncluded(l, line, words);
    bool aside = count && (putAside(l, line, number, words, count) ||
                           putForeignAside(l, line, number, words));
    if (count && !aside) {
        if (takeWords(l, words, count, number, &suggestion, &why) == OK) {
            notePlaceholder(l, words, count, number);
        } else {
            hintPlaceholder(l, words, count);
            reportLine(l, line, number, why.text, suggestion);
        }
    }
    strFreeWords(words, count);
}

/* True if `r` is taken before `other`, which was read earlier. */
static bool precedes(const rankedLine *r, const rankedLine *other) {
    return r->rank != other->rank ? r->rank < other->rank : r->source < other->source;
}

/* Takes ranked lines by rank. Among lines of one rank, those of the main file come after included
 * ones, as CONFIG REWRITE writes only to the main file; else they keep the order of the reading. */
static void takeRanked(loader *l) {
    l->takes_ranked = true;
    for (int taken = 0; taken < l->ranked_count; taken++) {
        rankedLine *next = NULL;
        for (int i = 0; i < l->ranked_count; i++) {
            rankedLine *r = &l->ranked[i];
            if (r->line.len && (!next || precedes(r, next))) next = r;
        }
        l->file = next->file;
        l->source = next->source;
        takeLine(l, strSlice(&next->line), next->number);
        strFree(&next->line);
    }
    l->file = NULL;
    l->source = CONFIG_ON_COMMAND_LINE;
    memFree(l->ranked);
}

/* Refuses or notes the lines of other servers that were put aside. */
static void endForeign(loader *l) {
    bool refuses = configConf.unknown_directives == UNKNOWN_REFUSE;
    reason why;
    for (int i = 0; i < l->foreign_count; i++) {
        rankedLine *line = &l->foreign[i];
        slice text = strSlice(&line->line);
        size_t len = 0;
        const char *suggestion = NULL;
        while (len < text.len && !memchr(" \t", text.ptr[len], 2)) len++;
        slice name = sliceMake(text.ptr, len);
        l->file = line->file;
        if (refuses) {
            (void)takeUnknown(l, name, &suggestion, &why); /* fails always */
            reportLine(l, text, line->number, why.text, suggestion);
        } else {
            str *note = newNote(l, name, line->number);
            strAppendText(note, "is unknown and ignored; it is ");
            configForeignHint(configForeignFind(name), note);
        }
        strFree(&line->line);
    }
    l->file = NULL;
    memFree(l->foreign);
}

static int takeLines(loader *l, slice content) {
    int number = 0, newlines = 0;
    while (content.len) {
        const char *end = memchr(content.ptr, '\n', content.len);
        size_t len = end ? (size_t)(end - content.ptr) : content.len;
        takeLine(l, sliceMake(content.ptr, len), ++number);
        newlines += end != NULL;
        len += end != NULL;
        content = sliceMake(content.ptr + len, content.len - len);
    }
    return newlines;
}

/* ------------------------------------------------------------------ files */

/* Processes all lines of a file; `*newlines` is set to the number of line ends. */
static status takeFile(loader *l, const char *path, int *newlines, reason *why) {
    *newlines = 0;
    bool is_stdin = strcmp(path, "-") == 0;
    char *absolute = is_stdin ? memDup("standard input", 14) : fileAbsolute(path);
    const char *name = keepName(absolute);
    memFree(absolute);
    for (int i = 0; i < l->depth; i++) {
        if (l->stack[i] == name)
            return reasonSet(why, ERR_SYNTAX, "Config file '%s' includes itself", name);
    }
    if (l->depth == INCLUDE_DEPTH_MAX)
        return reasonSet(why, ERR_LIMIT, "Config files are nested too deeply");
    str content = STR_EMPTY;
    reason detail = {""};
    status st = fileReadAll(path, FILE_BYTES_MAX, &content, &detail);
    if (st != OK) {
        const char *words = st == ERR_LIMIT ? detail.text : strerror(errno);
        return reasonSet(why, ERR_IO, "Fatal error, can't open config file '%s': %s", name, words);
    }
    const char *outer = l->file;
    configSource outer_source = l->source;
    l->stack[l->depth++] = name;
    l->file = name;
    if (l->is_main) l->source = l->depth > 1 ? CONFIG_IN_INCLUDED_FILE : CONFIG_IN_MAIN_FILE;
    *newlines = takeLines(l, strSlice(&content));
    l->source = outer_source;
    l->file = outer;
    l->depth--;
    strFree(&content);
    return OK;
}

/* Processes the main file or standard input. If it cannot be read, there is no line to show in the
 * error. */
static int takeMain(loader *l, const char *path) {
    reason why;
    int newlines;
    if (takeFile(l, path, &newlines, &why) != OK) {
        l->errors++;
        strAppendFormat(l->report, "%s\n", why.text);
    }
    return newlines;
}

/* ------------------------------------------------------------------ command line */

/* True if `arg` starts a new option after `values` values of the one in `line`. The first word
 * after an option is its value even if it looks like an option (a password "--x"), unless the
 * option may have no value. */
static bool startsOption(const char *arg, slice line, int values) {
    hotCheck(values >= 0);
    if (strncmp(arg, "--", 2) != 0) return false;
    if (line.len == 0 || values > 0 || memchr(line.ptr, ' ', line.len)) return true;
    const configEntry *entry = configEntryFind(line);
    return entry && (entry->option->flags & CONFIG_MAY_BE_BARE);
}

/* Converts the arguments to lines as in a file, numbered from `newlines` + 1 on. */
static void takeArguments(loader *l, int argc, const char *const *argv, int newlines) {
    hotCheck(argc >= 0);
    str line = STR_EMPTY;
    int values = 0, number = newlines + 1;
    for (int i = 0; i < argc; i++) {
        if (i == 0 || startsOption(argv[i], strSlice(&line), values)) {
            if (i) takeLine(l, strSlice(&line), ++number);
            strClear(&line);
            values = 0;
        }
        if (line.len == 0 && strncmp(argv[i], "--", 2) == 0) {
            strAppendText(&line, argv[i] + 2);
        } else {
            if (line.len) strAppendByte(&line, ' ');
            strAppendQuoted(&line, sliceOf(argv[i]));
            values++;
        }
    }
    if (argc) takeLine(l, strSlice(&line), ++number);
    strFree(&line);
}

static void reportApply(const configEntry *entry, const reason *why, void *arg) {
    loader *l = arg;
    if (!entry) {
        l->errors++;
        strAppendFormat(l->report, "%s\n", why->text);
        return;
    }
    str line = STR_EMPTY;
    strAppendFormat(&line, "%s ", entry->name);
    configGet(entry->option, &line);
    l->file = entry->origin.file;
    reportLine(l, strSlice(&line), entry->origin.line, why->text, NULL);
    l->file = NULL;
    strFree(&line);
}

status configLoad(int argc, const char *const *argv, str *report) {
    hotCheck(threadIsMain());
    loader l = {.report = report, .source = CONFIG_ON_COMMAND_LINE};
    int newlines = 0, first = 1;
    if (argc > 1 && (argv[1][0] != '-' || argv[1][1] == 0)) {
        first = 2;
        /* Must precede the `dir` directive, which changes the current directory. */
        if (argv[1][0] && argv[1][0] != '-') files.path = fileAbsolute(argv[1]);
        l.is_main = files.path != NULL;
        if (argv[1][0]) newlines += takeMain(&l, argv[1]); /* an empty name means no file */
        l.is_main = false;
    }
    if (argc > first && strcmp(argv[argc - 1], "-") == 0) {
        argc--;
        newlines += takeMain(&l, "-");
    }
    if (argc > first) takeArguments(&l, argc - first, argv + first, newlines);
    takeRanked(&l);
    endForeign(&l);
    if (l.errors == 0) configApplyAtStart(reportApply, &l);
    strFree(&l.proposal);
    strFree(&l.hint);
    if (l.errors > 1) strAppendFormat(report, "%d errors in the configuration\n", l.errors);
    return l.errors ? ERR_SYNTAX : OK;
}

bool configTryLine(slice line, str *report) {
    hotCheck(threadIsMain());
    loader l = {.report = report, .takes_ranked = true, .tries = true};
    takeLine(&l, line, 0);
    strFree(&l.proposal);
    strFree(&l.hint);
    return l.errors == 0;
}

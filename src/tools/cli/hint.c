/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hints (hint.h): the words typed so far are matched with the arguments of the command; what
 * follows is the hint. The depth of arguments, and so of the recursion, is bounded by the specs. */
#include "tools/cli/hint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/help.h"

enum { OPTIONS_MAX = 64 };

/* Words still to be matched. */
typedef struct typedWords {
    const str *items;
    int count;
} typedWords;

/* Result of matching an argument or a sequence: words used (0: no match), whether only optional
 * parts remain, and the text of what remains. */
typedef struct match {
    int used;
    bool complete;
    str rest;
} match;

static match matchSequence(const helpArgument *args, int count, typedWords words);

static typedWords after(typedWords words, int used) {
    return (typedWords){words.items + used, words.count - used};
}

/* ------------------------------------------------------------------ texts of arguments */

static void appendArgument(str *out, const helpArgument *a);

/* An argument without its token, repetition and brackets. */
static void appendValue(str *out, const helpArgument *a) {
    if (a->type != HELP_ONEOF && a->type != HELP_BLOCK) {
        if (a->type != HELP_TOKEN) strAppendText(out, a->name);
        return;
    }
    for (int i = 0; i < a->child_count; i++) {
        if (i > 0) strAppendByte(out, a->type == HELP_ONEOF ? '|' : ' ');
        appendArgument(out, &a->children[i]);
    }
}

static void appendOnce(str *out, const helpArgument *a, bool with_token) {
    if (a->token && with_token) {
        strAppendText(out, a->token);
        if (a->type != HELP_TOKEN) strAppendByte(out, ' ');
    }
    appendValue(out, a);
}

/* " [key ...]" */
static void appendRepetition(str *out, const helpArgument *a) {
    strAppendByte(out, '[');
    appendOnce(out, a, a->flags & HELP_MULTIPLE_TOKEN);
    strAppendText(out, " ...]");
}

static void appendArgument(str *out, const helpArgument *a) {
    if (a->flags & HELP_OPTIONAL) strAppendByte(out, '[');
    appendOnce(out, a, true);
    if (a->flags & HELP_MULTIPLE) {
        strAppendByte(out, ' ');
        appendRepetition(out, a);
    }
    if (a->flags & HELP_OPTIONAL) strAppendByte(out, ']');
}

/* ------------------------------------------------------------------ matching */

static bool isNumber(const helpArgument *a, const str *word) {
    char *end;
    if (a->type != HELP_INTEGER && a->type != HELP_DOUBLE) return true;
    errno = 0;
    if (a->type == HELP_INTEGER) {
        strtoll(strText(word), &end, 10);
    } else {
        strtod(strText(word), &end);
    }
    return word->len > 0 && *end == '\0' && errno == 0;
}

static match matchArgument(const helpArgument *a, typedWords words);

/* The first alternative that matches. */
static match matchOneof(const helpArgument *a, typedWords words) {
    for (int i = 0; i < a->child_count; i++) {
        match m = matchArgument(&a->children[i], words);
        if (m.used > 0) return m;
        strFree(&m.rest);
    }
    return (match){0};
}

static match matchValue(const helpArgument *a, typedWords words) {
    if (a->type == HELP_ONEOF) return matchOneof(a, words);
    if (a->type == HELP_BLOCK) return matchSequence(a->children, a->child_count, words);
    if (words.count > 0 && isNumber(a, &words.items[0]))
        return (match){.used = 1, .complete = true};
    return (match){0};
}

/* Matches one occurrence of an argument. */
static match matchOnce(const helpArgument *a, typedWords words, bool with_token) {
    int tokens = a->token && with_token ? 1 : 0;
    if (words.count == 0) return (match){0};
    if (tokens) {
        const char *token = strcmp(a->token, "\"\"") ? a->token : "";
        if (!sliceIs(strSlice(&words.items[0]), token)) return (match){0};
        if (a->type == HELP_TOKEN) return (match){.used = 1, .complete = true};
    }
    match m = matchValue(a, after(words, tokens));
    if (m.used == 0 && tokens) {
        strClear(&m.rest);
        appendValue(&m.rest, a);
        m.complete = false;
    }
    if (m.used > 0 || tokens) m.used += tokens;
    return m;
}

static match matchArgument(const helpArgument *a, typedWords words) {
    match m = matchOnce(a, words, true);
    if (m.used == 0 || !(a->flags & HELP_MULTIPLE)) return m;
    while (m.complete && m.used < words.count) {
        match next = matchOnce(a, after(words, m.used), a->flags & HELP_MULTIPLE_TOKEN);
        if (next.used == 0) {
            strFree(&next.rest);
            break;
        }
        next.used += m.used;
        strFree(&m.rest);
        m = next;
    }
    if (m.rest.len > 0) strAppendByte(&m.rest, ' ');
    appendRepetition(&m.rest, a);
    if (a->flags & HELP_OPTIONAL) strAppendByte(&m.rest, ']');
    return m;
}

/* The end of a sequence: appends the arguments from `first` on, except those in `used`. */
static void appendRemaining(match *m, const helpArgument *args, int count, int first,
                            const bool *used) {
    for (int i = first; i < count; i++) {
        if (used && used[i - first]) continue;
        if (!(args[i].flags & HELP_OPTIONAL)) m->complete = false;
        appendArgument(&m->rest, &args[i]);
        strAppendByte(&m->rest, ' ');
    }
    if (m->rest.len > 0) strCut(&m->rest, m->rest.len - 1);
}

/* Matches consecutive optional arguments, in any order. `used` tells which; `last->used` is 0 if
 * none matched. */
static match matchOptional(const helpArgument *args, int count, typedWords words, bool *used) {
    match last = {.complete = true};
    for (int i = 0; i < count && last.used < words.count && last.complete;) {
        match m = used[i] ? (match){0} : matchArgument(&args[i], after(words, last.used));
        if (m.used == 0) {
            strFree(&m.rest);
            i++;
            continue;
        }
        used[i] = true;
        m.used += last.used;
        strFree(&last.rest);
        last = m;
        i = 0;
    }
    return last;
}

static match matchSequence(const helpArgument *args, int count, typedWords words) {
    match m = {.complete = true};
    int i = 0;
    bool used[OPTIONS_MAX] = {false};
    while (i < count && m.used < words.count && m.complete) {
        int run = 0;
        while (i + run < count && run < OPTIONS_MAX && args[i + run].flags & HELP_OPTIONAL) run++;
        memset(used, 0, sizeof(used));
        match next = run ? matchOptional(args + i, run, after(words, m.used), used)
                         : matchArgument(&args[i], after(words, m.used));
        if (next.used == 0 && !run) {
            strFree(&next.rest);
            break;
        }
        next.used += m.used;
        strFree(&m.rest);
        m = next;
        if (run && m.used == words.count) break; /* the others of the run may follow */
        memset(used, 0, sizeof(used));
        i += run ? run : 1;
    }
    if (m.used < words.count) return m; /* some words do not match: nothing to show */
    str before = m.rest;
    m.rest = STR_EMPTY;
    appendRemaining(&m, args, count, i, used);
    if (before.len > 0 && m.rest.len > 0) strAppendByte(&before, ' ');
    strAppendSlice(&before, strSlice(&m.rest));
    strFree(&m.rest);
    m.rest = before;
    return m;
}

void hintFor(slice line, str *out) {
    words typed = {0};
    if (line.len == 0 || !wordsSplit(line, &typed)) return;
    int name_words;
    const helpEntry *e = helpFind(&typed, &name_words);
    /* The word being typed is not matched yet. */
    bool ends_with_blank = line.ptr[line.len - 1] == ' ';
    int count = typed.count - name_words - !ends_with_blank;
    if (e && count >= 0) {
        typedWords words = {typed.items + name_words, count};
        match m = matchSequence(e->arguments, e->argument_count, words);
        if (m.used == count) strAppendSlice(out, strSlice(&m.rest));
        strFree(&m.rest);
    }
    wordsClear(&typed);
}

int hintMisfit(const words *command) {
    int name_words;
    const helpEntry *e = helpFind(command, &name_words);
    if (!e) return 0;
    typedWords words = {command->items + name_words, command->count - name_words};
    match m = matchSequence(e->arguments, e->argument_count, words);
    strFree(&m.rest);
    return m.used < words.count ? name_words + m.used : 0;
}

int hintPrint(const char *line) {
    str hint = STR_EMPTY;
    hintFor(sliceOf(line), &hint);
    puts(strText(&hint));
    strFree(&hint);
    return 0;
}

int hintCheckFile(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "Can't open file '%s': %s\n", path, strerror(errno));
        return 1;
    }
    char line[4096];
    int passed = 0, failed = 0;
    while (fgets(line, sizeof(line), file)) {
        words row = {0};
        if (line[0] == '#' || !wordsSplit(sliceOf(line), &row)) continue;
        if (row.count == 2) {
            str hint = STR_EMPTY;
            hintFor(strSlice(&row.items[0]), &hint);
            bool same = sliceEqual(strSlice(&hint), strSlice(&row.items[1]));
            passed += same;
            failed += !same;
            if (!same)
                printf("Test case '%s' FAILED: expected '%s', got '%s'\n", strText(&row.items[0]),
                       strText(&row.items[1]), strText(&hint));
            strFree(&hint);
        }
        wordsClear(&row);
    }
    fclose(file);
    printf("%s: %d/%d passed\n", failed ? "FAILURE" : "SUCCESS", passed, passed + failed);
    return failed != 0;
}

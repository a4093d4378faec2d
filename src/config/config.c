/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registry of directives: names, parsing, limits, CONFIG GET and SET.
 *
 * Invariant: between calls every value has passed the checks of its option, and after a failed
 * CONFIG SET all values and effects are as before. A lookup takes O(log n) steps. Main thread
 * only. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/base.h"
#include "base/glob.h"
#include "base/number.h"
#include "config/config_priv.h"

/* Limit of words per value. */
enum { WORDS_MAX = 64 * 1024 };

static struct {
    configEntry *entries; /* sorted by name */
    int count;
} registry;

/* ------------------------------------------------------------------ names */

static int compareEntries(const void *a, const void *b) {
    return strcmp(((const configEntry *)a)->name, ((const configEntry *)b)->name);
}

static int compareFolded(slice name, const char *entry_name) {
    int order = strncasecmp(name.ptr, entry_name, name.len);
    return order ? order : -(entry_name[name.len] != 0);
}

configEntry *configEntryFind(slice name) {
    hotCheck(threadIsMain());
    if (memchr(name.ptr, 0, name.len)) return NULL;
    int low = 0, high = registry.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = compareFolded(name, registry.entries[middle].name);
        if (order == 0) return &registry.entries[middle];
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

configEntry *configEntries(int *count) {
    *count = registry.count;
    return registry.entries;
}

const configOption *configFind(slice name) {
    const configEntry *entry = configEntryFind(name);
    return entry && entry->option->kind != CONFIG_KIND_FILE_ONLY ? entry->option : NULL;
}

void configEach(void (*proc)(const char *name, const configOption *o, void *arg), void *arg) {
    hotCheck(threadIsMain());
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        if (entry->option->kind != CONFIG_KIND_FILE_ONLY) proc(entry->name, entry->option, arg);
    }
}

bool configIsSensitive(slice name) {
    const configOption *o = configFind(name);
    return o && (o->flags & CONFIG_SENSITIVE);
}

/* ------------------------------------------------------------------ stored values */

static int64_t loadNumber(const configOption *o) {
    hotCheck(o->kind != CONFIG_KIND_STRING);
    if (o->kind == CONFIG_KIND_BOOL) return *(const bool *)o->at;
    if (o->size == sizeof(int)) return *(const int *)o->at;
    return *(const int64_t *)o->at;
}

static void storeNumber(const configOption *o, int64_t number) {
    hotCheck(o->kind != CONFIG_KIND_STRING);
    if (o->kind == CONFIG_KIND_BOOL) {
        *(bool *)o->at = number != 0;
    } else if (o->size == sizeof(int)) {
        *(int *)o->at = (int)number;
    } else {
        *(int64_t *)o->at = number;
    }
}

static bool isByteString(const configOption *o) { return o->size == sizeof(str); }

static slice loadString(const configOption *o) {
    hotCheck(o->kind == CONFIG_KIND_STRING);
    if (isByteString(o)) return strSlice(o->at);
    return sliceOf(*(char *const *)o->at);
}

static void storeString(const configOption *o, slice text) {
    hotCheck(o->kind == CONFIG_KIND_STRING);
    if (isByteString(o)) {
        str *value = o->at;
        strFree(value);
        *value = strNew(text);
    } else {
        char **value = o->at;
        memFree(*value);
        *value = memDup(text.ptr, text.len);
    }
}

static void freeValue(const configOption *o) {
    if (o->kind != CONFIG_KIND_STRING) return;
    if (isByteString(o)) {
        strFree(o->at);
    } else {
        memFree(*(char **)o->at);
        *(char **)o->at = NULL;
    }
}

/* ------------------------------------------------------------------ text to value */

static status refuseBounds(const configOption *o, reason *why) {
    if (o->kind == CONFIG_KIND_OCTAL) {
        return reasonSet(why, ERR_RANGE, "argument must be between %llo and %llo inclusive",
                         (unsigned long long)o->min, (unsigned long long)o->max);
    }
    return reasonSet(why, ERR_RANGE, "argument must be between %lld and %llu inclusive",
                     (long long)o->min, (unsigned long long)o->max);
}

/* Unsigned numbers above INT64_MAX are passed with the same bits. */
static status checkBounds(const configOption *o, int64_t number, reason *why) {
    hotCheck(o->min <= (int64_t)(o->max > INT64_MAX ? INT64_MAX : o->max));
    if (o->max > INT64_MAX) return OK;
    if (number < o->min) return refuseBounds(o, why);
    if (number > (int64_t)o->max) return refuseBounds(o, why);
    return OK;
}

static status parseInt(const configOption *o, slice text, int64_t *out, reason *why) {
    hotCheck(o->kind != CONFIG_KIND_STRING);
    if (!numberParseInt(text, out)) {
        return reasonSet(why, ERR_SYNTAX, "argument couldn't be parsed into an integer");
    }
    return checkBounds(o, *out, why);
}

static status parseOctal(const configOption *o, slice text, int64_t *out, reason *why) {
    hotCheck(o->kind == CONFIG_KIND_OCTAL);
    bool negative = text.len > 1 && text.ptr[0] == '-';
    int64_t number = 0;
    for (size_t i = negative; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7' || number > INT32_MAX) {
            return reasonSet(why, ERR_SYNTAX, "argument couldn't be parsed as an octal number");
        }
        number = number * 8 + (text.ptr[i] - '0');
    }
    *out = negative ? -number : number;
    return checkBounds(o, *out, why);
}

static status parseMemory(const configOption *o, slice text, int64_t *out, reason *why) {
    bool negative = o->min < 0 && text.len > 1 && text.ptr[0] == '-';
    slice digits = {text.ptr + negative, text.len - negative};
    uint64_t bytes;
    if (!numberParseMemory(digits, &bytes)) {
        return reasonSet(why, ERR_SYNTAX, "argument must be a memory value");
    }
    if (bytes > INT64_MAX && o->max <= INT64_MAX) return refuseBounds(o, why);
    *out = negative ? -(int64_t)bytes : (int64_t)bytes;
    return checkBounds(o, *out, why);
}

/* A CONFIG_MEMORY_LIMIT stores percentages in a range of values that are not realistic numbers of
 * bytes. */
enum { SHARE_MAX = 100 };
static const int64_t limit_shares = (int64_t)0xF000000000000000;

int configLimitShare(int64_t field) {
    return field > limit_shares && field <= limit_shares + SHARE_MAX ? (int)(field - limit_shares)
                                                                     : 0;
}

static int64_t keepShare(const configOption *o, int percent) {
    hotCheck(percent >= 0);
    bool is_limit = o->max > INT64_MAX;
    return is_limit && percent ? limit_shares + percent : -percent;
}

static status parseMemoryOrPercent(const configOption *o, slice text, int64_t *out, reason *why) {
    uint64_t number;
    if (text.len > 1 && text.ptr[text.len - 1] == '%') {
        if (!numberParseUint(sliceMake(text.ptr, text.len - 1), &number)) goto refuse;
        if (number > SHARE_MAX) {
            return reasonSet(why, ERR_RANGE, "percentage argument must be less or equal to 100");
        }
        *out = keepShare(o, (int)number);
        return OK;
    }
    if (!numberParseMemory(text, &number)) goto refuse;
    if (number > INT64_MAX && o->max <= INT64_MAX) return refuseBounds(o, why);
    *out = (int64_t)number;
    return OK;
refuse:
    if (o->max > INT64_MAX) return reasonSet(why, ERR_SYNTAX, "argument must be a memory value");
    return reasonSet(why, ERR_SYNTAX, "argument must be a memory or percent value");
}

static status parseBool(slice text, int64_t *out, reason *why) {
    if (sliceIs(text, "yes")) {
        *out = 1;
    } else if (sliceIs(text, "no")) {
        *out = 0;
    } else {
        return reasonSet(why, ERR_SYNTAX, "argument must be 'yes' or 'no'");
    }
    return OK;
}

static status parseEnum(const configOption *o, const slice *words, int count, int64_t *out,
                        reason *why) {
    hotCheck(o->kind == CONFIG_KIND_ENUM);
    hotCheck(count >= 0);
    int64_t bits = 0;
    bool known = count > 0;
    for (int i = 0; i < count && known; i++) {
        const configWord *word = o->words;
        while (word->name && !sliceIs(words[i], word->name)) word++;
        known = word->name != NULL;
        bits |= word->value;
    }
    if (known) {
        *out = bits;
        return OK;
    }
    str list = STR_EMPTY;
    for (const configWord *word = o->words; word->name; word++) {
        strAppendFormat(&list, "%s%s", list.len ? ", " : "", word->name);
    }
    reasonSet(why, ERR_SYNTAX, "argument(s) must be one of the following: %s", strText(&list));
    strFree(&list);
    return ERR_SYNTAX;
}

static status parseNumber(const configOption *o, const slice *words, int count, int64_t *out,
                          reason *why) {
    hotCheck(o->kind != CONFIG_KIND_STRING);
    switch (o->kind) {
    case CONFIG_KIND_BOOL: return parseBool(words[0], out, why);
    case CONFIG_KIND_INT: return parseInt(o, words[0], out, why);
    case CONFIG_KIND_OCTAL: return parseOctal(o, words[0], out, why);
    case CONFIG_KIND_MEMORY: return parseMemory(o, words[0], out, why);
    case CONFIG_KIND_MEMORY_OR_PERCENT: return parseMemoryOrPercent(o, words[0], out, why);
    case CONFIG_KIND_ENUM: return parseEnum(o, words, count, out, why);
    default: panic("option %s has no number", o->name);
    }
}

static status assignString(const configOption *o, slice text, reason *why) {
    hotCheck(o->kind == CONFIG_KIND_STRING);
    status st = o->accept ? o->accept(text, 0, why) : OK;
    if (st == OK && !isByteString(o) && memchr(text.ptr, 0, text.len))
        return reasonSet(why, ERR_SYNTAX, "%s contains invalid character", o->name);
    if (st == OK) storeString(o, text);
    return st;
}

void configJoinWords(const slice *words, int count, str *out) {
    hotCheck(count >= 0);
    for (int i = 0; i < count; i++) {
        if (i) strAppendByte(out, ' ');
        strAppendSlice(out, words[i]);
    }
}

status configAssign(const configOption *o, const slice *words, int count, bool more, reason *why) {
    hotCheck(threadIsMain());
    check(o->kind != CONFIG_KIND_FILE_ONLY);
    if (count != 1 && !(o->flags & CONFIG_MULTI_WORD)) {
        return reasonSet(why, ERR_SYNTAX, "wrong number of arguments");
    }
    if (o->kind == CONFIG_KIND_SPECIAL && o->special->set_of) {
        str text = STR_EMPTY;
        configJoinWords(words, count, &text);
        status st = o->special->set_of(o, strSlice(&text), why);
        strFree(&text);
        return st;
    }
    if (o->kind == CONFIG_KIND_SPECIAL) return o->special->set(words, count, more, why);
    if (o->kind == CONFIG_KIND_STRING) return assignString(o, words[0], why);
    int64_t number = 0;
    status st = parseNumber(o, words, count, &number, why);
    if (st == OK && o->accept) st = o->accept(count ? words[0] : SLICE(""), number, why);
    if (st == OK) storeNumber(o, number);
    return st;
}

status configAssignText(const configOption *o, slice text, bool more, reason *why) {
    hotCheck(threadIsMain());
    if (!(o->flags & CONFIG_MULTI_WORD)) return configAssign(o, &text, 1, more, why);
    int count = text.len > 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == ' ';
        if (count > WORDS_MAX) return reasonSet(why, ERR_LIMIT, "wrong number of arguments");
    }
    slice *words = memNewArray(slice, (size_t)count + 1);
    const char *from = text.ptr;
    for (int i = 0; i < count; i++) {
        const char *end = text.ptr + text.len;
        const char *blank = memchr(from, ' ', (size_t)(end - from));
        words[i] = sliceMake(from, (size_t)((blank ? blank : end) - from));
        from = blank ? blank + 1 : end;
    }
    status st = configAssign(o, words, count, more, why);
    memFree(words);
    return st;
}

/* ------------------------------------------------------------------ value to text */

static void printEnum(const configOption *o, int64_t number, str *out) {
    hotCheck(o->kind == CONFIG_KIND_ENUM);
    bool is_set = (o->flags & CONFIG_MULTI_WORD) && number != 0;
    size_t start = out->len;
    for (const configWord *word = o->words; word->name; word++) {
        bool shown = is_set ? (word->value & number) != 0 : word->value == number;
        if (!shown) continue;
        strAppendFormat(out, "%s%s", out->len > start ? " " : "", word->name);
        if (!is_set) return; /* other words with this value are synonyms */
    }
}

static void printMemoryOrPercent(const configOption *o, int64_t number, str *out) {
    bool is_limit = o->max > INT64_MAX;
    int percent = is_limit ? configLimitShare(number) : number < 0 ? (int)-number : 0;
    if (percent) {
        strAppendFormat(out, "%d%%", percent);
    } else {
        strAppendFormat(out, "%llu", (unsigned long long)number);
    }
}

static void printNumber(const configOption *o, int64_t number, str *out) {
    hotCheck(o->kind != CONFIG_KIND_STRING);
    switch (o->kind) {
    case CONFIG_KIND_BOOL: strAppendText(out, number ? "yes" : "no"); break;
    case CONFIG_KIND_OCTAL: strAppendFormat(out, "%llo", (unsigned long long)number); break;
    case CONFIG_KIND_ENUM: printEnum(o, number, out); break;
    case CONFIG_KIND_MEMORY_OR_PERCENT: printMemoryOrPercent(o, number, out); break;
    default:
        if (o->max > INT64_MAX) {
            strAppendFormat(out, "%llu", (unsigned long long)number);
        } else {
            strAppendInt(out, number);
        }
    }
}

void configGet(const configOption *o, str *out) {
    hotCheck(threadIsMain());
    check(o->kind != CONFIG_KIND_FILE_ONLY);
    if (o->kind == CONFIG_KIND_SPECIAL && o->special->get_of) {
        o->special->get_of(o, out);
    } else if (o->kind == CONFIG_KIND_SPECIAL) {
        o->special->get(out);
    } else if (o->kind == CONFIG_KIND_STRING) {
        strAppendSlice(out, loadString(o));
    } else {
        printNumber(o, loadNumber(o), out);
    }
}

bool configTextIsValue(const configOption *o, slice word) {
    hotCheck(threadIsMain());
    reason why;
    int64_t number;
    if (o->kind == CONFIG_KIND_SPECIAL || o->kind == CONFIG_KIND_FILE_ONLY) return false;
    if (o->kind == CONFIG_KIND_STRING) return sliceEqual(loadString(o), word);
    return parseNumber(o, &word, 1, &number, &why) == OK && number == loadNumber(o);
}

bool configDefault(const configOption *o, str *out) {
    hotCheck(threadIsMain());
    if (o->kind == CONFIG_KIND_SPECIAL || o->kind == CONFIG_KIND_STRING) {
        if (!o->text) return false;
        strAppendText(out, o->text);
    } else {
        printNumber(o, o->number, out);
    }
    return true;
}

void configGetOrigin(const configOption *o, str *out) {
    hotCheck(threadIsMain());
    const configOrigin *origin = &configEntryFind(sliceOf(o->name))->origin;
    switch (origin->kind) {
    case CONFIG_FROM_DEFAULT: strAppendText(out, "default"); break;
    case CONFIG_FROM_FILE: strAppendFormat(out, "%s:%d", origin->file, origin->line); break;
    case CONFIG_FROM_COMMAND_LINE: strAppendText(out, "command line"); break;
    case CONFIG_FROM_SET: strAppendText(out, "CONFIG SET"); break;
    }
}

static bool isDefault(const configOption *o) {
    str value = STR_EMPTY, standard = STR_EMPTY;
    bool same = o->kind != CONFIG_KIND_FILE_ONLY && configDefault(o, &standard);
    if (same) {
        configGet(o, &value);
        same = sliceEqual(strSlice(&value), strSlice(&standard));
    }
    strFree(&value);
    strFree(&standard);
    return same;
}

int configEachWithoutEffect(void (*proc)(const char *sentence, void *arg), void *arg) {
    hotCheck(threadIsMain());
    int count = 0;
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        const configOption *o = entry->option;
        if (!o->no_effect || entry->main != entry) continue;
        if (entry->origin.kind == CONFIG_FROM_DEFAULT || isDefault(o)) continue;
        str sentence = STR_EMPTY;
        strAppendFormat(&sentence, "Directive '%s' (", entry->name);
        configGetOrigin(o, &sentence);
        strAppendFormat(&sentence, ") has no effect: %s", o->no_effect);
        proc(strText(&sentence), arg);
        strFree(&sentence);
        count++;
    }
    return count + configEachNote(proc, arg);
}

void configReport(str *out) {
    hotCheck(threadIsMain());
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        if (!(entry->option->flags & CONFIG_IN_CRASH_REPORT)) continue;
        strAppendFormat(out, "%s ", entry->name);
        configGet(entry->option, out);
        strAppendByte(out, '\n');
    }
}

/* ------------------------------------------------------------------ installing */

static void setDefault(const configOption *o) {
    if (o->kind == CONFIG_KIND_FILE_ONLY) return;
    bool is_int = o->kind == CONFIG_KIND_INT && o->size == sizeof(int);
    if (is_int) check(o->min >= INT32_MIN);
    if (is_int) check(o->max <= INT32_MAX);
    if (o->kind == CONFIG_KIND_STRING) {
        storeString(o, sliceOf(o->text));
    } else if (o->kind != CONFIG_KIND_SPECIAL) {
        storeNumber(o, o->number);
    } else if (o->text) {
        reason why;
        status st = configAssignText(o, sliceOf(o->text), false, &why);
        check(st == OK);
    }
}

static void addEntry(const char *name, const configOption *o) {
    registry.entries =
        memRealloc(registry.entries, sizeof(configEntry) * (size_t)(registry.count + 1));
    registry.entries[registry.count++] = (configEntry){.name = name, .option = o};
}

/* The option is one of the table's. */
static bool isOf(const configOption *table, const configOption *option) {
    for (; table->kind != CONFIG_KIND_END; table++) {
        if (table == option) return true;
        if (table->kind == CONFIG_KIND_TABLE && isOf(table->table, option)) return true;
    }
    return false;
}

static void addTable(const configOption *o) {
    for (; o->kind != CONFIG_KIND_END; o++) {
        if (o->kind == CONFIG_KIND_TABLE) {
            addTable(o->table);
            continue;
        }
        addEntry(o->name, o);
        if (o->alias) addEntry(o->alias, o);
    }
}

/* Sorts the entries and connects each with that of its option's name. Sets the defaults of a
 * table's options. */
static void settle(const configOption *added) {
    qsort(registry.entries, (size_t)registry.count, sizeof(configEntry), compareEntries);
    for (int i = 0; i < registry.count; i++) {
        configEntry *entry = &registry.entries[i];
        if (i) check(strcmp(entry[-1].name, entry->name) != 0);
        entry->main = configEntryFind(sliceOf(entry->option->name));
        bool is_new = !added || isOf(added, entry->option);
        if (is_new && entry == entry->main) setDefault(entry->option);
    }
}

void configInstall(const configOption *const *tables, int count) {
    hotCheck(threadIsMain());
    check(registry.entries == NULL);
    for (int t = 0; t < count; t++) addTable(tables[t]);
    settle(NULL);
}

/* A name of the table is registered. */
static bool isTaken(const configOption *o) {
    for (; o->kind != CONFIG_KIND_END; o++) {
        if (o->kind == CONFIG_KIND_TABLE) {
            if (isTaken(o->table)) return true;
        } else if (configEntryFind(sliceOf(o->name)) ||
                   (o->alias && configEntryFind(sliceOf(o->alias)))) {
            return true;
        }
    }
    return false;
}

status configAdd(const configOption *table) {
    hotCheck(threadIsMain());
    if (isTaken(table)) return ERR_EXISTS;
    addTable(table);
    settle(table);
    return OK;
}

void configRemove(const configOption *table) {
    hotCheck(threadIsMain());
    int kept = 0;
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        if (isOf(table, entry->option)) {
            if (!strcmp(entry->name, entry->option->name)) freeValue(entry->option);
        } else {
            registry.entries[kept++] = *entry;
        }
    }
    registry.count = kept;
    for (int i = 0; i < kept; i++) {
        registry.entries[i].main = configEntryFind(sliceOf(registry.entries[i].option->name));
    }
}

void configUninstall(void) {
    hotCheck(threadIsMain());
    for (int i = 0; i < registry.count; i++) {
        configEntry *entry = &registry.entries[i];
        if (entry == entry->main) freeValue(entry->option);
    }
    memFree(registry.entries);
    registry.entries = NULL;
    registry.count = 0;
    configFileForget();
}

/* The only one of the options with that `apply` that was set, NULL if there are others. */
static const configEntry *onlyCause(status (*apply)(reason *why)) {
    hotCheck(apply);
    const configEntry *cause = NULL;
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        if (entry->main != entry || entry->option->apply != apply) continue;
        if (entry->origin.kind == CONFIG_FROM_DEFAULT) continue;
        if (cause) return NULL;
        cause = entry;
    }
    return cause;
}

void configApplyAtStart(void (*proc)(const configEntry *entry, const reason *why, void *arg),
                        void *arg) {
    hotCheck(threadIsMain());
    for (int i = 0; i < registry.count; i++) {
        const configOption *o = registry.entries[i].option;
        if (!(o->flags & CONFIG_APPLY_AT_START)) continue;
        bool done = false; /* several options may share one `apply` */
        for (int j = 0; j < i && !done; j++) {
            const configOption *before = registry.entries[j].option;
            done = (before->flags & CONFIG_APPLY_AT_START) && before->apply == o->apply;
        }
        reason why = {""};
        if (!done && o->apply(&why) != OK) proc(onlyCause(o->apply), &why, arg);
    }
}

/* ------------------------------------------------------------------ CONFIG GET */

static bool isPattern(slice text) {
    for (size_t i = 0; i < text.len; i++) {
        if (memchr("*?[", text.ptr[i], 3)) return true;
    }
    return false;
}

static int compareMatches(const void *a, const void *b) {
    slice x = ((const configMatch *)a)->name, y = ((const configMatch *)b)->name;
    int order = memcmp(x.ptr, y.ptr, sizeMin(x.len, y.len));
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

/* Adds the matches of one name or pattern that are not in `seen` (indexed by entry) yet. */
static int addMatches(slice pattern, bool *seen, configMatch *found) {
    if (!isPattern(pattern)) {
        const configEntry *entry = configEntryFind(pattern);
        if (!entry || entry->option->kind == CONFIG_KIND_FILE_ONLY) return 0;
        if (seen[entry - registry.entries]) return 0;
        seen[entry - registry.entries] = true;
        found[0] = (configMatch){pattern, entry->option};
        return 1;
    }
    int count = 0;
    for (int i = 0; i < registry.count; i++) {
        const configEntry *entry = &registry.entries[i];
        if (seen[i] || entry->option->kind == CONFIG_KIND_FILE_ONLY) continue;
        if (entry->option->flags & CONFIG_HIDDEN) continue;
        if (!globMatchFold(pattern, sliceOf(entry->name))) continue;
        seen[i] = true;
        found[count++] = (configMatch){sliceOf(entry->name), entry->option};
    }
    return count;
}

int configMatchAll(const slice *patterns, int count, configMatch **found) {
    hotCheck(threadIsMain());
    hotCheck(count >= 0);
    bool *seen = memNewArray(bool, (size_t)registry.count + 1);
    *found = memNewArray(configMatch, (size_t)registry.count + 1);
    int matches = 0;
    for (int i = 0; i < count; i++) matches += addMatches(patterns[i], seen, *found + matches);
    qsort(*found, (size_t)matches, sizeof(configMatch), compareMatches);
    memFree(seen);
    return matches;
}

/* ------------------------------------------------------------------ CONFIG SET */

typedef struct change {
    configEntry *entry;
    slice value;
    str old; /* in the format of configGet() */
    bool differs;
} change;

static struct {
    uint64_t number; /* of CONFIG SET so far */
    int depth;       /* a module's function may use it, too */
    const configOption *blamed;
} configSetNow;

uint64_t configSetNumber(void) { return configSetNow.number; }

void configSetBlame(const configOption *o) { configSetNow.blamed = o; }

static status refuseName(const configEntry *entry, slice name, unsigned allowed, str *error) {
    const char *words = NULL;
    if (!entry || entry->option->kind == CONFIG_KIND_FILE_ONLY) {
        strAppendText(error, "ERR Unknown option or number of arguments for CONFIG SET - '");
        strAppendSlice(error, name);
        strAppendByte(error, '\'');
        return ERR_NOT_FOUND;
    }
    uint32_t flags = entry->option->flags;
    if (flags & CONFIG_IMMUTABLE) {
        words = "can't set immutable config";
    } else if ((flags & CONFIG_PROTECTED) && !(allowed & CONFIG_ALLOW_PROTECTED)) {
        words = "can't set protected config";
    } else if ((flags & CONFIG_NOT_WHILE_LOADING) && !(allowed & CONFIG_ALLOW_NOT_WHILE_LOADING)) {
        strAppendText(error, "LOADING Valkey is loading the dataset in memory");
        return ERR_DENIED;
    }
    if (!words) return OK;
    strAppendText(error, "ERR CONFIG SET failed (possibly related to argument '");
    strAppendSlice(error, name);
    strAppendFormat(error, "') - %s", words);
    return ERR_DENIED;
}

/* Looks up all names before any value is parsed. */
static status findChanges(const slice *pairs, int count, unsigned allowed, change *changes,
                          str *error) {
    for (int i = 0; i < count; i++) {
        slice name = pairs[2 * i];
        configEntry *entry = configEntryFind(name);
        status st = refuseName(entry, name, allowed, error);
        if (st != OK) return st;
        for (int j = 0; j < i; j++) {
            if (changes[j].entry != entry) continue;
            strAppendText(error, "ERR CONFIG SET failed (possibly related to argument '");
            strAppendSlice(error, name);
            strAppendText(error, "') - duplicate parameter");
            return ERR_EXISTS;
        }
        changes[i] = (change){.entry = entry, .value = pairs[2 * i + 1]};
    }
    return OK;
}

static void refuseChange(const char *name, const reason *why, str *error) {
    strAppendFormat(error, "ERR CONFIG SET failed (possibly related to argument '%s') - %s", name,
                    why->text);
}

/* Restores the values of changes[0..count), in the order in which they were set. */
static void restoreValues(change *changes, int count) {
    hotCheck(count >= 0);
    for (int i = 0; i < count; i++) {
        reason why;
        status st =
            configAssignText(changes[i].entry->option, strSlice(&changes[i].old), false, &why);
        if (st != OK)
            logWarning("Can't restore %s after a failed CONFIG SET: %s", changes[i].entry->name,
                       why.text);
    }
}

static status assignChanges(change *changes, int count, str *error) {
    for (int i = 0; i < count; i++) {
        change *c = &changes[i];
        const configOption *o = c->entry->option;
        configGet(o, &c->old);
        reason why = {""};
        status st = configAssignText(o, c->value, false, &why);
        if (st != OK) {
            refuseChange(c->entry->name, &why, error);
            /* A module may have taken the value, and have refused it afterwards. */
            str now = STR_EMPTY;
            configGet(o, &now);
            bool was_taken = !sliceEqual(strSlice(&now), strSlice(&c->old));
            strFree(&now);
            restoreValues(changes, i + was_taken);
            return st;
        }
        str now = STR_EMPTY;
        configGet(o, &now);
        c->differs =
            o->flags & CONFIG_APPLY_ALWAYS || !sliceEqual(strSlice(&now), strSlice(&c->old));
        strFree(&now);
    }
    return OK;
}

/* True if changes[i] is the first change with its `apply` that must be called. */
static bool isFirstOfEffect(const change *changes, int i) {
    hotCheck(i >= 0);
    if (!changes[i].differs || !changes[i].entry->option->apply) return false;
    for (int j = 0; j < i; j++) {
        if (changes[j].differs &&
            changes[j].entry->option->apply == changes[i].entry->option->apply)
            return false;
    }
    return true;
}

static status applyChanges(change *changes, int count, str *error) {
    for (int i = 0; i < count; i++) {
        if (!isFirstOfEffect(changes, i)) continue;
        reason why = {""};
        configSetNow.blamed = NULL;
        status st = changes[i].entry->option->apply(&why);
        if (st == OK) continue;
        const configOption *blamed = configSetNow.blamed;
        refuseChange(blamed ? blamed->name : changes[i].entry->name, &why, error);
        restoreValues(changes, count);
        /* That of `i` as well: it may have done a part, and options of modules share it. */
        for (int j = 0; j <= i; j++) {
            if (!isFirstOfEffect(changes, j)) continue;
            if (changes[j].entry->option->apply(&why) == OK) continue;
            logWarning("Can't undo the effect of %s after a failed CONFIG SET: %s",
                       changes[j].entry->name, why.text);
        }
        return st;
    }
    return OK;
}

void configPreset(const char *name, const char *text) {
    hotCheck(threadIsMain());
    reason why;
    const configOption *o = configFind(sliceOf(name));
    check(o != NULL);
    check(configAssignText(o, sliceOf(text), false, &why) == OK);
}

status configSet(const slice *pairs, int count, unsigned allowed, str *error) {
    hotCheck(threadIsMain());
    change *changes = memNewArray(change, (size_t)count + 1);
    if (configSetNow.depth++ == 0) configSetNow.number++;
    status st = findChanges(pairs, count, allowed, changes, error);
    if (st == OK) st = assignChanges(changes, count, error);
    if (st == OK) st = applyChanges(changes, count, error);
    for (int i = 0; i < count; i++) {
        if (st == OK) changes[i].entry->main->origin = (configOrigin){.kind = CONFIG_FROM_SET};
        strFree(&changes[i].old);
    }
    configSetNow.depth--;
    memFree(changes);
    return st;
}

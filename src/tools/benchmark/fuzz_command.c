/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random commands for --fuzz, following the argument trees of COMMAND DOCS. */
#include "tools/benchmark/fuzz_command.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"

enum { KEYS = 5, REPEAT_MAX = 3, DEPTH_MAX = 6 };

typedef struct entry {
    const char *name;        /* "xgroup|create" */
    const valkeyReply *docs; /* flat array or map of properties */
} entry;

struct fuzzCatalog {
    valkeyReply *docs;
    entry *entries;
    int count;
    bool malformed;
};

/* What would end the connection or the server, block it, change its role, or keep data from being
 * read back. */
static const char *const excluded[] = {
    "shutdown",         "debug",       "monitor",       "subscribe",      "psubscribe",
    "ssubscribe",       "sync",        "psync",         "replicaof",      "slaveof",
    "failover",         "quit",        "reset",         "module",         "migrate",
    "replconf",         "client|kill", "client|pause",  "client|reply",   "client|tracking",
    "client|no-touch",  "cluster",     "hello",         "auth",           "acl|setuser",
    "acl|deluser",      "acl|load",    "acl|save",      "save",           "bgsave",
    "bgrewriteaof",     "script|kill", "function|kill", "script|debug",   "config|rewrite",
    "config|resetstat", "wait",        "waitaof",       "latency|reset",  "swapdb",
    "select",           "sentinel",    "asking",        "restore-asking", "pfdebug",
    "pfselftest",
};

static bool isExcluded(const char *name, const fuzzOptions *o) {
    if (!o->config && !strncmp(name, "config|set", 10)) return true;
    for (size_t i = 0; i < sizeof(excluded) / sizeof(*excluded); i++) {
        size_t len = strlen(excluded[i]);
        if (!strncmp(name, excluded[i], len) && (name[len] == '\0' || name[len] == '|'))
            return true;
    }
    return false;
}

/* The value of a property, or NULL. */
static const valkeyReply *property(const valkeyReply *docs, const char *name) {
    for (size_t i = 0; docs && i + 1 < docs->elements; i += 2) {
        const valkeyReply *key = docs->element[i];
        if (key->str && !strcmp(key->str, name)) return docs->element[i + 1];
    }
    return NULL;
}

static const char *text(const valkeyReply *docs, const char *name) {
    const valkeyReply *r = property(docs, name);
    return r && r->str ? r->str : "";
}

static void addEntries(fuzzCatalog *c, const valkeyReply *list, const fuzzOptions *o) {
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        const char *name = list->element[i]->str;
        const valkeyReply *docs = list->element[i + 1],
                          *subcommands = property(docs, "subcommands");
        if (!name || isExcluded(name, o)) continue;
        if (subcommands) {
            addEntries(c, subcommands, o);
            continue;
        }
        c->entries = memRealloc(c->entries, (size_t)(c->count + 1) * sizeof(*c->entries));
        c->entries[c->count++] = (entry){name, docs};
    }
}

fuzzCatalog *fuzzCatalogNew(valkeyReply *take_docs, const fuzzOptions *o) {
    fuzzCatalog *c = memNew(fuzzCatalog);
    c->docs = take_docs;
    c->malformed = o->malformed;
    if (take_docs && (take_docs->type == VALKEY_REPLY_ARRAY || take_docs->type == VALKEY_REPLY_MAP))
        addEntries(c, take_docs, o);
    if (c->count > 0) return c;
    fuzzCatalogFree(c);
    return NULL;
}

void fuzzCatalogFree(fuzzCatalog *c) {
    freeReplyObject(c->docs);
    memFree(c->entries);
    memFree(c);
}

/* ------------------------------------------------------------------ words */

static uint64_t below(uint64_t n) { return randomUniform(n); }
static bool chance(unsigned percent) { return below(100) < percent; }

static void addWord(fuzzCommand *out, const char *word, size_t len) {
    if (out->argc == FUZZ_WORDS_MAX || len > FUZZ_WORD_SIZE) return;
    memcpy(out->words[out->argc], word, len);
    out->lens[out->argc++] = len;
}

static void addFormat(fuzzCommand *out, const char *format, ...) {
    char word[FUZZ_WORD_SIZE];
    va_list ap;
    va_start(ap, format);
    int len = vsnprintf(word, sizeof(word), format, ap);
    va_end(ap);
    addWord(out, word, (size_t)len);
}

/* Keys are named by type, so that most commands find the type they expect. */
static void addKey(fuzzCommand *out, const char *group) {
    static const struct {
        const char *group, *prefix;
    } prefixes[] = {{"string", "string"},    {"list", "list"}, {"set", "set"},
                    {"sorted-set", "zset"},  {"hash", "hash"}, {"stream", "stream"},
                    {"bitmap", "bitmap"},    {"geo", "geo"},   {"hyperloglog", "hll"},
                    {"pathhash", "pathhash"}};
    const char *prefix = NULL;
    int count = (int)(sizeof(prefixes) / sizeof(*prefixes));
    for (int i = 0; i < count; i++) {
        if (!strcmp(group, prefixes[i].group)) prefix = prefixes[i].prefix;
    }
    if (!prefix || chance(3)) prefix = prefixes[below((uint64_t)count)].prefix;
    addFormat(out, "%s:%d", prefix, (int)below(KEYS));
}

static void addString(fuzzCommand *out, const char *name) {
    if (strstr(name, "id")) {
        addFormat(out, chance(30) ? "*" : "%d-%d", (int)below(100), (int)below(10));
    } else if (chance(10)) {
        char bytes[FUZZ_WORD_SIZE];
        size_t len = below(FUZZ_WORD_SIZE + 1);
        for (size_t i = 0; i < len; i++) bytes[i] = (char)below(256);
        addWord(out, bytes, len);
    } else if (chance(40)) {
        addFormat(out, "%d", (int)below(100));
    } else {
        addFormat(out, "%s:%d", name, (int)below(20));
    }
}

static int64_t randomInteger(void) {
    static const int64_t borders[] = {0,         -1,         INT64_MAX,  INT64_MIN, INT32_MAX,
                                      INT32_MIN, UINT32_MAX, 4294967296, 65536,     -65536};
    if (chance(8)) return borders[below(sizeof(borders) / sizeof(*borders))];
    return (int64_t)below(50);
}

static void addArguments(fuzzCommand *out, const valkeyReply *list, const char *group, int depth);

/* The value of an argument, without its token. */
static void addValue(fuzzCommand *out, const valkeyReply *argument, const char *group, int depth) {
    const char *type = text(argument, "type"), *name = text(argument, "name");
    if (!strcmp(type, "key")) {
        addKey(out, group);
    } else if (!strcmp(type, "integer")) {
        addFormat(out, "%lld", (long long)randomInteger());
    } else if (!strcmp(type, "double")) {
        /* Small numbers: they may be timeouts. */
        addFormat(out, "%f",
                  strstr(name, "timeout") ? (double)below(50) / 1000
                                          : (double)below(100000) / 1000);
    } else if (!strcmp(type, "unix-time")) {
        addFormat(out, "%lld", (long long)(clockWallMs() / 1000 + (int64_t)below(1000)));
    } else if (!strcmp(type, "pattern")) {
        addWord(out, "*", 1);
    } else if (!strcmp(type, "oneof")) {
        const valkeyReply *choices = property(argument, "arguments");
        if (!choices || choices->elements == 0) return;
        valkeyReply one = *choices, *chosen = choices->element[below(choices->elements)];
        one.elements = 1;
        one.element = &chosen;
        addArguments(out, &one, group, depth + 1);
    } else if (!strcmp(type, "block")) {
        const valkeyReply *items = property(argument, "arguments");
        if (items) addArguments(out, items, group, depth + 1);
    } else if (strcmp(type, "pure-token") != 0) {
        addString(out, name);
    }
}

static bool hasFlag(const valkeyReply *argument, const char *flag) {
    const valkeyReply *flags = property(argument, "flags");
    for (size_t i = 0; flags && i < flags->elements; i++) {
        if (flags->element[i]->str && !strcmp(flags->element[i]->str, flag)) return true;
    }
    return false;
}

static void addArguments(fuzzCommand *out, const valkeyReply *list, const char *group, int depth) {
    if (depth > DEPTH_MAX) return;
    for (size_t i = 0; i < list->elements; i++) {
        const valkeyReply *argument = list->element[i];
        const char *token = text(argument, "token");
        if (hasFlag(argument, "optional") && chance(60)) continue;
        int repeat = hasFlag(argument, "multiple") ? 1 + (int)below(REPEAT_MAX) : 1;
        for (int k = 0; k < repeat; k++) {
            bool again = k == 0 || hasFlag(argument, "multiple_token");
            if (token[0] && again) addWord(out, token, strlen(token));
            addValue(out, argument, group, depth);
        }
    }
}

/* ------------------------------------------------------------------ commands */

/* Drops, repeats or replaces words. */
static void damage(fuzzCommand *out) {
    for (int changes = 1 + (int)below(3); changes > 0; changes--) {
        int at = (int)below((uint64_t)out->argc);
        switch (below(4)) {
        case 0:
            if (out->argc > 1) out->argc--;
            break;
        case 1: addWord(out, out->words[at], out->lens[at]); break;
        case 2: out->lens[at] = below(out->lens[at] + 1); break;
        default:
            if (out->lens[at] > 0) out->words[at][below(out->lens[at])] = (char)below(256);
        }
    }
}

void fuzzCompose(const fuzzCatalog *c, fuzzCommand *out) {
    const entry *e = &c->entries[below((uint64_t)c->count)];
    out->argc = 0;
    const char *bar = strchr(e->name, '|');
    addWord(out, e->name, bar ? (size_t)(bar - e->name) : strlen(e->name));
    if (bar) addWord(out, bar + 1, strlen(bar + 1));
    const valkeyReply *arguments = property(e->docs, "arguments");
    if (arguments) addArguments(out, arguments, text(e->docs, "group"), 0);
    if (c->malformed && chance(30)) damage(out);
}

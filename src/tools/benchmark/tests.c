/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The built-in tests: titles and commands of Valkey. */
#include "tools/benchmark/tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tools/similar.h"

enum { WORDS_MAX = 32 };

typedef struct builtinTest {
    const char *names; /* separated by commas */
    const char *title;
    const char *command; /* words separated by blanks; {t} is ":{tag}" in a cluster, else nothing */
} builtinTest;

static const builtinTest tests[] = {
    {"ping_inline,ping", "PING_INLINE", NULL},
    {"ping_mbulk,ping", "PING_MBULK", "PING"},
    {"set", "SET", "SET key{t}:__rand_int__ __data__"},
    {"get", "GET", "GET key{t}:__rand_int__"},
    {"incr", "INCR", "INCR counter{t}:__rand_int__"},
    {"lpush", "LPUSH", "LPUSH mylist{t} __data__"},
    {"rpush", "RPUSH", "RPUSH mylist{t} __data__"},
    {"lpop", "LPOP", "LPOP mylist{t}"},
    {"rpop", "RPOP", "RPOP mylist{t}"},
    {"sadd", "SADD", "SADD myset{t} element:__rand_int__"},
    {"hset", "HSET", "HSET myhash{t} element:__rand_int__ __data__"},
    {"spop", "SPOP", "SPOP myset{t}"},
    {"zadd", "ZADD", "ZADD myzset{t} {score} element:__rand_1st__"},
    {"zpopmin", "ZPOPMIN", "ZPOPMIN myzset{t}"},
    {"lrange,lrange_100,lrange_300,lrange_500,lrange_600", "LPUSH (needed to benchmark LRANGE)",
     "LPUSH mylist{t} __data__"},
    {"lrange,lrange_100", "LRANGE_100 (first 100 elements)", "LRANGE mylist{t} 0 99"},
    {"lrange,lrange_300", "LRANGE_300 (first 300 elements)", "LRANGE mylist{t} 0 299"},
    {"lrange,lrange_500", "LRANGE_500 (first 500 elements)", "LRANGE mylist{t} 0 499"},
    {"lrange,lrange_600", "LRANGE_600 (first 600 elements)", "LRANGE mylist{t} 0 599"},
    {"mset", "MSET (10 keys)", "MSET {10 pairs}"},
    {"mget", "MGET (10 keys)", "MGET {10 keys}"},
    {"xadd", "XADD", "XADD mystream{t} * myfield __data__"},
    {"function_load", "FUNCTION LOAD", "function load replace {library}"},
    {"fcall", "FCALL", "fcall foo1 {function keys}"},
};
enum { TESTS = sizeof(tests) / sizeof(*tests) };

/* Words of a command; all are allocated. */
typedef struct words {
    const char **items;
    int count, capacity;
} words;

static void addWord(words *w, const char *text, size_t len) {
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? w->capacity * 2 : WORDS_MAX;
        w->items = memRealloc(w->items, (size_t)w->capacity * sizeof(*w->items));
    }
    w->items[w->count++] = memDup(text, len);
}

static void addKey(words *w, const benchOptions *o, const char *prefix, const char *rest) {
    char text[64];
    int len = snprintf(text, sizeof(text), "%s%s%s", prefix, o->cluster ? ":{tag}" : "", rest);
    addWord(w, text, (size_t)len);
}

/* A library of `count` functions that return 0, or of one that returns its first key. */
static void addLibrary(words *w, int count, bool with_keys) {
    str text = STR_EMPTY;
    strAppendFormat(&text, "#!lua name=benchlib\n");
    for (int i = count; i > 0; i--) {
        if (with_keys) {
            strAppendFormat(&text, "local function foo%d(keys, args)\nreturn keys[0]\nend\n", i);
        } else {
            strAppendFormat(&text, "local function foo%d()\nreturn 0\nend\n", i);
        }
        strAppendFormat(&text, "server.register_function('foo%d', foo%d)\n", i, i);
    }
    addWord(w, text.ptr, text.len);
    strFree(&text);
}

static void addFunctionKeys(words *w, const benchOptions *o) {
    char text[32];
    addWord(w, text, (size_t)snprintf(text, sizeof(text), "%d", o->function_keys));
    for (int i = 1; i <= o->function_keys; i++) {
        snprintf(text, sizeof(text), "%d", i);
        addKey(w, o, "key", text);
    }
}

static void addSpecial(words *w, const benchOptions *o, const char *name) {
    if (!strncmp(name, "{10", 3)) {
        for (int i = 0; i < 10; i++) {
            addKey(w, o, "key", ":__rand_int__");
            if (!strcmp(name, "{10 pairs}")) addWord(w, "__data__", 8);
        }
    } else if (!strcmp(name, "{library}")) {
        addLibrary(w, o->functions, false);
    } else if (!strcmp(name, "{function keys}")) {
        addFunctionKeys(w, o);
    } else {
        addWord(w, o->random_keys ? "__rand_int__" : "0", o->random_keys ? 12 : 1);
    }
}

/* Splits at blanks outside of braces. */
static void splitCommand(words *w, const benchOptions *o, const char *command) {
    while (*command) {
        const char *end = command;
        bool inside = false;
        for (; *end && (*end != ' ' || inside); end++) {
            if (*end == '{') inside = true;
            if (*end == '}') inside = false;
        }
        char word[64];
        snprintf(word, sizeof(word), "%.*s", (int)(end - command), command);
        char *tag = strstr(word, "{t}");
        if (tag) {
            *tag = '\0';
            addKey(w, o, word, tag + 3);
        } else if (word[0] == '{') {
            addSpecial(w, o, word);
        } else {
            addWord(w, word, strlen(word));
        }
        command = *end ? end + 1 : end;
    }
}

static operation *compileTest(const benchOptions *o, const builtinTest *t) {
    if (!t->command) return operationCompileInline("PING\r\n");
    words w = {0};
    const char *error;
    splitCommand(&w, o, t->command);
    operation *op = operationCompile(o, w.count, w.items, &error);
    check(!error);
    for (int i = 0; i < w.count; i++) memFree((char *)w.items[i]);
    memFree(w.items);
    return op;
}

/* True if one of the names is in the list ",a,b,". */
static bool isListed(const char *list, const char *names) {
    while (*names) {
        size_t len = strcspn(names, ",");
        char name[40];
        snprintf(name, sizeof(name), ",%.*s,", (int)len, names);
        if (strstr(list, name)) return true;
        names += len + (names[len] == ',');
    }
    return false;
}

/* Calls `each` for the names of all tests, until it returns true. Returns that. */
static bool eachName(bool (*each)(slice name, void *arg), void *arg) {
    for (int i = 0; i < TESTS; i++) {
        for (const char *at = tests[i].names; *at;
             at += strcspn(at, ",") + (strchr(at, ',') != 0)) {
            if (each(sliceMake(at, strcspn(at, ",")), arg)) return true;
        }
    }
    return false;
}

/* A name that was given, and the one that is most like it. */
typedef struct nameSearch {
    slice given, best;
    int distance;
} nameSearch;

static bool compareName(slice name, void *arg) {
    nameSearch *s = arg;
    int distance = similarDistance(s->given, name);
    if (distance < s->distance) {
        s->distance = distance;
        s->best = name;
    }
    return sliceEqual(s->given, name);
}

/* Adds a name to a list with blanks around each, unless it is there. */
static bool addName(slice name, void *arg) {
    str *list = arg;
    char item[48];
    snprintf(item, sizeof(item), " %.*s ", (int)name.len, name.ptr);
    if (!strstr(strText(list), item)) strAppendText(list, list->len ? item + 1 : item);
    return false;
}

void testsCheck(const char *list) {
    for (const char *at = list + 1; *at; at += strcspn(at, ",") + 1) {
        nameSearch s = {.given = sliceMake(at, strcspn(at, ",")), .distance = SIMILAR_NEVER};
        if (eachName(compareName, &s)) continue;
        fprintf(stderr, "Unknown test \"%.*s\".", (int)s.given.len, s.given.ptr);
        if (s.distance < SIMILAR_NEVER)
            fprintf(stderr, " Did you mean %.*s?", (int)s.best.len, s.best.ptr);
        str names = STR_EMPTY; /* the program ends */
        (void)eachName(addName, &names);
        fprintf(stderr, "\nTests:%s\n", strText(&names));
        exit(1);
    }
}

void testsRun(const benchOptions *o, testPrepareProc *prepare, testRunProc *run, void *arg) {
    for (int i = 0; i < TESTS; i++) {
        if (o->tests && !isListed(o->tests, tests[i].names)) continue;
        if (!strcmp(tests[i].title, "FCALL")) {
            /* The library that has the function. */
            words w = {0};
            addWord(&w, "FUNCTION", 8);
            addWord(&w, "LOAD", 4);
            addWord(&w, "REPLACE", 7);
            addLibrary(&w, 1, true);
            prepare(arg, w.count, w.items);
            for (int k = 0; k < w.count; k++) memFree((char *)w.items[k]);
            memFree(w.items);
        }
        workload w;
        workloadInit(&w, tests[i].title, o->data_size, compileTest(o, &tests[i]));
        run(arg, &w);
        workloadClear(&w);
    }
}

static const builtinTest *findTest(const char *name) {
    char list[48];
    snprintf(list, sizeof(list), ",%s,", name);
    for (int i = 0; i < TESTS; i++) {
        if (tests[i].title[strcspn(tests[i].title, " ")] == ' ' &&
            !strncmp(tests[i].title, "LPUSH (", 7))
            continue; /* a preparation */
        if (isListed(list, tests[i].names)) return &tests[i];
    }
    return NULL;
}

void testsMix(const benchOptions *o, workload *w) {
    workloadInit(w, o->mix, o->data_size, NULL);
    char *copy = memDup(o->mix, strlen(o->mix)), *rest = NULL;
    for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(part, ':');
        long weight = colon ? strtol(colon + 1, NULL, 10) : 0;
        if (colon) *colon = '\0';
        const builtinTest *t = findTest(part);
        if (!t || weight < 1 || weight > 1000000) {
            fprintf(stderr,
                    "Invalid mix \"%s\": use names of tests and weights, e.g. get:80,set:20\n",
                    o->mix);
            exit(1);
        }
        workloadAdd(w, compileTest(o, t), t->title, (unsigned)weight);
    }
    memFree(copy);
    if (w->count == 0) {
        fprintf(stderr, "Invalid mix \"%s\": it has no tests\n", o->mix);
        exit(1);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is sent; see the header. */
#include "tools/benchmark/workload.h"

#include <stdlib.h>
#include <string.h>

#include <valkey/valkey.h>

#include "base/base.h"
#include "base/number.h"
#include "tools/benchmark/keys.h"

char *dataMake(size_t len) {
    char *data = memAlloc(len + 1);
    uint32_t state = 1234; /* a linear congruential generator: the same bytes as Valkey's */
    for (size_t i = 0; i < len; i++) {
        state = state * 1103515245 + 12345;
        data[i] = (char)('0' + (state >> 16 & 63));
    }
    data[len] = '\0';
    return data;
}

/* ------------------------------------------------------------------ classes of replies */

static replyClass classOf(const char *command) {
    static const struct {
        const char *name;
        replyClass reply;
    } classes[] = {
        {"GET", CLASS_BULK},          {"INCR", CLASS_INTEGER},       {"DECR", CLASS_INTEGER},
        {"INCRBY", CLASS_INTEGER},    {"APPEND", CLASS_INTEGER},     {"STRLEN", CLASS_INTEGER},
        {"MSET", CLASS_STATUS},       {"MGET", CLASS_AGGREGATE},     {"SETEX", CLASS_STATUS},
        {"SETNX", CLASS_INTEGER},     {"GETSET", CLASS_BULK},        {"GETDEL", CLASS_BULK},
        {"DEL", CLASS_INTEGER},       {"UNLINK", CLASS_INTEGER},     {"EXISTS", CLASS_INTEGER},
        {"EXPIRE", CLASS_INTEGER},    {"TTL", CLASS_INTEGER},        {"LPUSH", CLASS_INTEGER},
        {"RPUSH", CLASS_INTEGER},     {"LLEN", CLASS_INTEGER},       {"LRANGE", CLASS_AGGREGATE},
        {"LINDEX", CLASS_BULK},       {"SADD", CLASS_INTEGER},       {"SREM", CLASS_INTEGER},
        {"SCARD", CLASS_INTEGER},     {"SMEMBERS", CLASS_AGGREGATE}, {"HSET", CLASS_INTEGER},
        {"HGET", CLASS_BULK},         {"HDEL", CLASS_INTEGER},       {"HLEN", CLASS_INTEGER},
        {"HGETALL", CLASS_AGGREGATE}, {"HMGET", CLASS_AGGREGATE},    {"ZCARD", CLASS_INTEGER},
        {"ZREM", CLASS_INTEGER},      {"ZPOPMIN", CLASS_AGGREGATE},  {"ZRANGE", CLASS_AGGREGATE},
        {"XLEN", CLASS_INTEGER},      {"XRANGE", CLASS_AGGREGATE},   {"ECHO", CLASS_BULK},
        {"PFADD", CLASS_INTEGER},     {"SETRANGE", CLASS_INTEGER},   {"GETRANGE", CLASS_BULK},
        {"PUBLISH", CLASS_INTEGER},   {"MULTI", CLASS_STATUS},       {"DBSIZE", CLASS_INTEGER},
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        if (sliceIs(sliceOf(command), classes[i].name)) return classes[i].reply;
    }
    return CLASS_ANY;
}

/* ------------------------------------------------------------------ compiling */

/* A sequence being compiled. */
typedef struct compiler {
    operation *op;
    const char *data; /* of __data__ */
    size_t data_len;
    bool in_transaction; /* replies are +QUEUED */
} compiler;

/* `argument` with __data__ replaced; the caller frees it. */
static char *expandData(const compiler *c, const char *argument, size_t *len) {
    static const char mark[] = "__data__";
    str out = STR_EMPTY;
    const char *p = argument, *found;
    while ((found = strstr(p, mark))) {
        strAppend(&out, p, (size_t)(found - p));
        strAppend(&out, c->data, c->data_len);
        p = found + strlen(mark);
    }
    strAppend(&out, p, strlen(p));
    *len = out.len;
    char *text = memDup(strText(&out), out.len);
    strFree(&out);
    return text;
}

static void appendCommand(compiler *c, int argc, const char **argv) {
    operation *op = c->op;
    const char **args = memNewArray(const char *, (size_t)argc);
    size_t *lens = memNewArray(size_t, (size_t)argc);
    for (int i = 0; i < argc; i++) args[i] = expandData(c, argv[i], &lens[i]);
    char *bytes;
    long long len = valkeyFormatCommandArgv(&bytes, argc, args, lens);
    check(len > 0);
    op->bytes = memRealloc(op->bytes, op->len + (size_t)len);
    memcpy(op->bytes + op->len, bytes, (size_t)len);
    op->classes = memRealloc(op->classes, (size_t)op->commands + 1);
    op->classes[op->commands++] = (uint8_t)(c->in_transaction ? CLASS_ANY : classOf(argv[0]));
    if (sliceIs(sliceOf(argv[0]), "MULTI")) c->in_transaction = true;
    if (sliceIs(sliceOf(argv[0]), "EXEC") || sliceIs(sliceOf(argv[0]), "DISCARD"))
        c->in_transaction = false;
    op->len += (size_t)len;
    valkeyFreeCommand(bytes);
    for (int i = 0; i < argc; i++) memFree((char *)args[i]);
    memFree(args);
    memFree(lens);
}

static void addHole(operation *op, size_t offset, int kind, bool first) {
    op->holes = memRealloc(op->holes, (size_t)(op->hole_count + 1) * sizeof(*op->holes));
    op->holes[op->hole_count++] = (hole){.offset = offset, .kind = (uint8_t)kind, .first = first};
}

/* The kind of the placeholder at `p`, or -1; `*len` is its length, `*offset` where it is
 * replaced. */
static int holeAt(const benchOptions *o, const char *p, size_t rest, size_t *len, size_t *offset) {
    static const char *const numbers[] = {
        "__rand_int__", "__rand_1st__", "__rand_2nd__", "__rand_3rd__", "__rand_4th__",
        "__rand_5th__", "__rand_6th__", "__rand_7th__", "__rand_8th__", "__rand_9th__"};
    *offset = 0;
    if (*p == '{' && o->cluster && rest >= 5 && !memcmp(p, "{tag}", 5)) {
        *len = 5;
        *offset = 1;
        return HOLE_TAG;
    }
    if (*p != '_' || !o->random_keys || rest < KEY_DIGITS) return -1;
    *len = KEY_DIGITS;
    for (int kind = 0; kind < 10; kind++) {
        if (!memcmp(p, numbers[kind], KEY_DIGITS)) return kind;
    }
    return -1;
}

/* Finds the placeholders in the bytes from `from` on, which are one command. */
static void findHoles(const benchOptions *o, operation *op, size_t from) {
    bool first = true;
    for (size_t i = from; i < op->len;) {
        size_t len, offset;
        int kind = holeAt(o, op->bytes + i, op->len - i, &len, &offset);
        if (kind < 0) {
            i++;
            continue;
        }
        addHole(op, i + offset, kind, first);
        first = false;
        i += len;
    }
}

/* A number before a command repeats it. */
static int takeRepeat(int *argc, const char ***argv) {
    int64_t repeat;
    if (!numberParseInt(sliceOf((*argv)[0]), &repeat) || repeat < 1 || repeat > 1000000) return 1;
    ++*argv;
    --*argc;
    return (int)repeat;
}

operation *operationCompile(const benchOptions *o, int argc, const char **argv,
                            const char **error) {
    char *data = dataMake((size_t)o->data_size);
    compiler c = {.op = memNew(operation), .data = data, .data_len = (size_t)o->data_size};
    *error = NULL;
    while (argc > 0 && !*error) {
        int words = 0;
        /* The first word of a command is never a separator. */
        while (words < argc && (words == 0 || strcmp(argv[words], ";") != 0)) words++;
        const char **command = argv;
        int count = words;
        int repeat = takeRepeat(&count, &command);
        if (count == 0) *error = "A number of repetitions needs a command";
        for (int i = 0; i < repeat && !*error; i++) {
            size_t from = c.op->len;
            appendCommand(&c, count, command);
            findHoles(o, c.op, from);
        }
        argv += words + (words < argc);
        argc -= words + (words < argc);
    }
    memFree(data);
    return c.op;
}

operation *operationCompileInline(const char *text) {
    operation *op = memNew(operation);
    op->len = strlen(text);
    op->bytes = memDup(text, op->len);
    op->classes = memAlloc(1);
    op->classes[0] = CLASS_ANY;
    op->commands = 1;
    return op;
}

/* ------------------------------------------------------------------ workloads */

void workloadInit(workload *w, const char *title, int64_t payload, operation *take) {
    *w = (workload){.title = title, .payload = payload};
    if (take) workloadAdd(w, take, title, 1);
}

void workloadAdd(workload *w, operation *take, const char *name, unsigned weight) {
    take->name = name;
    take->weight = weight;
    for (int i = 0; i < take->hole_count; i++) w->has_tags |= take->holes[i].kind == HOLE_TAG;
    w->operations = memRealloc(w->operations, (size_t)(w->count + 1) * sizeof(*w->operations));
    w->operations[w->count++] = *take;
    w->weights += weight;
    memFree(take);
}

void workloadClear(workload *w) {
    for (int i = 0; i < w->count; i++) {
        memFree(w->operations[i].bytes);
        memFree(w->operations[i].holes);
        memFree(w->operations[i].classes);
    }
    memFree(w->operations);
    *w = (workload){0};
}

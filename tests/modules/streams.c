/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: keys with a stream. `mode` is that of OpenKey(); each reply of a function is
 * its result and the name of errno, "0" if it was left alone. `-` for an id passes NULL.
 *
 *     STREAMS.ADD key mode flags id [field value]...      and the id
 *     STREAMS.MANY key count                              this many entries with one handle
 *     STREAMS.DELETE key mode id
 *     STREAMS.TRIM key mode flags LENGTH|ID threshold
 *     STREAMS.RANGE key mode flags start end [DELETE|ADD]
 *                                    the entries; deletes each one, or adds one meanwhile
 *     STREAMS.WRONG key              errors of the functions of an iteration */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

static const char *errnoName(void) {
    switch (errno) {
    case 0: return "0";
    case EINVAL: return "EINVAL";
    case ENOTSUP: return "ENOTSUP";
    case EBADF: return "EBADF";
    case EDOM: return "EDOM";
    case EFBIG: return "EFBIG";
    case ENOENT: return "ENOENT";
    case ERANGE: return "ERANGE";
    default: return "other";
    }
}

static void replyResult(ValkeyModuleCtx *ctx, long long result) {
    const char *name = errnoName();
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, result);
    ValkeyModule_ReplyWithCString(ctx, name);
}

static long long numberOf(ValkeyModuleString *s) {
    long long n = 0;
    (void)ValkeyModule_StringToLongLong(s, &n);
    return n;
}

/* NULL for "-". */
static ValkeyModuleStreamID *idOf(ValkeyModuleString *s, ValkeyModuleStreamID *id) {
    size_t len;
    const char *text = ValkeyModule_StringPtrLen(s, &len);
    *id = (ValkeyModuleStreamID){0, 0};
    if (!strcmp(text, "-")) return NULL;
    (void)ValkeyModule_StringToStreamID(s, id);
    return id;
}

static int add(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 5) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], (int)numberOf(argv[2]));
    ValkeyModuleStreamID id, *given = idOf(argv[4], &id);
    errno = 0;
    int fields = (argc - 5) / 2;
    int result = ValkeyModule_StreamAdd(key, (int)numberOf(argv[3]), given,
                                        fields ? argv + 5 : NULL, fields);
    ValkeyModule_ReplyWithArray(ctx, 2);
    replyResult(ctx, result);
    ValkeyModule_ReplyWithString(ctx, ValkeyModule_CreateStringFromStreamID(ctx, &id));
    return VALKEYMODULE_OK;
}

static int many(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModuleString *words[2] = {argv[1], argv[2]};
    long long count = numberOf(argv[2]), added = 0;
    while (added < count &&
           !ValkeyModule_StreamAdd(key, VALKEYMODULE_STREAM_ADD_AUTOID, NULL, words, 1))
        added++;
    ValkeyModule_CloseKey(key);
    return ValkeyModule_ReplyWithLongLong(ctx, added);
}

static int deleteEntry(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 4) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], (int)numberOf(argv[2]));
    ValkeyModuleStreamID id, *given = idOf(argv[3], &id);
    errno = 0;
    replyResult(ctx, ValkeyModule_StreamDelete(key, given));
    return VALKEYMODULE_OK;
}

static int trim(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 6) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], (int)numberOf(argv[2]));
    int flags = (int)numberOf(argv[3]);
    errno = 0;
    if (!strcasecmp(ValkeyModule_StringPtrLen(argv[4], NULL), "length")) {
        replyResult(ctx, ValkeyModule_StreamTrimByLength(key, flags, numberOf(argv[5])));
    } else {
        ValkeyModuleStreamID id, *given = idOf(argv[5], &id);
        replyResult(ctx, ValkeyModule_StreamTrimByID(key, flags, given));
    }
    return VALKEYMODULE_OK;
}

static void addOne(ValkeyModuleKey *key, ValkeyModuleString *field, ValkeyModuleString *value) {
    ValkeyModuleString *words[2] = {field, value};
    ValkeyModule_StreamAdd(key, VALKEYMODULE_STREAM_ADD_AUTOID, NULL, words, 1);
}

/* The current entry of the iteration; `how` is done in the middle of its fields. */
static void replyEntry(ValkeyModuleCtx *ctx, ValkeyModuleKey *key, ValkeyModuleStreamID *id,
                       long fields, const char *how) {
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    ValkeyModule_ReplyWithString(ctx, ValkeyModule_CreateStringFromStreamID(ctx, id));
    ValkeyModule_ReplyWithLongLong(ctx, fields);
    long items = 2;
    ValkeyModuleString *field, *value;
    while (ValkeyModule_StreamIteratorNextField(key, &field, &value) == VALKEYMODULE_OK) {
        ValkeyModule_ReplyWithString(ctx, field);
        ValkeyModule_ReplyWithString(ctx, value);
        items += 2;
        if (items == 4 && !strcasecmp(how, "add")) addOne(key, field, value);
    }
    if (!strcasecmp(how, "delete")) {
        errno = 0;
        replyResult(ctx, ValkeyModule_StreamIteratorDelete(key));
        items++;
    }
    ValkeyModule_ReplySetArrayLength(ctx, items);
}

static int range(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 6) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    const char *how = argc > 6 ? ValkeyModule_StringPtrLen(argv[6], NULL) : "";
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], (int)numberOf(argv[2]));
    ValkeyModuleStreamID start, end, *from = idOf(argv[4], &start), *to = idOf(argv[5], &end), id;
    errno = 0;
    int result = ValkeyModule_StreamIteratorStart(key, (int)numberOf(argv[3]), from, to);
    if (result != VALKEYMODULE_OK) {
        replyResult(ctx, result);
        return VALKEYMODULE_OK;
    }
    long entries = 0, fields;
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    while (entries < 100 && !ValkeyModule_StreamIteratorNextID(key, &id, &fields)) {
        replyEntry(ctx, key, &id, fields, how);
        entries++;
    }
    replyResult(ctx, ValkeyModule_StreamIteratorStop(key));
    ValkeyModule_ReplySetArrayLength(ctx, entries + 1);
    return VALKEYMODULE_OK;
}

#define REPLY(call) \
    do { \
        errno = 0; \
        replyResult(ctx, call); \
        count++; \
    } while (0)

static int wrong(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    ValkeyModuleStreamID id;
    ValkeyModuleString *field, *value;
    long fields, count = 0;
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    REPLY(ValkeyModule_StreamIteratorStop(key));
    REPLY(ValkeyModule_StreamIteratorNextID(key, &id, &fields));
    REPLY(ValkeyModule_StreamIteratorNextField(key, &field, &value));
    REPLY(ValkeyModule_StreamIteratorDelete(key));
    REPLY(ValkeyModule_StreamIteratorStart(key, 4, NULL, NULL));
    REPLY(ValkeyModule_StreamIteratorStart(key, 0, NULL, NULL));
    REPLY(ValkeyModule_StreamIteratorStart(key, 0, NULL, NULL));
    REPLY(ValkeyModule_StreamIteratorNextField(key, &field, &value));
    REPLY(ValkeyModule_StreamIteratorDelete(key));
    REPLY(ValkeyModule_StreamIteratorNextID(key, NULL, NULL));
    REPLY(ValkeyModule_StreamIteratorDelete(key));
    REPLY(ValkeyModule_StreamDelete(key, &id));
    REPLY(ValkeyModule_StreamIteratorStart(NULL, 0, NULL, NULL));
    REPLY(ValkeyModule_StreamIteratorNextID(NULL, &id, &fields));
    REPLY(ValkeyModule_StreamIteratorStop(NULL));
    ValkeyModule_ReplySetArrayLength(ctx, count);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    VALKEYMODULE_NOT_USED(argv);
    VALKEYMODULE_NOT_USED(argc);
    static const struct {
        const char *name;
        ValkeyModuleCmdFunc proc;
    } commands[] = {
        {"streams.add", add},   {"streams.many", many},   {"streams.delete", deleteEntry},
        {"streams.trim", trim}, {"streams.range", range}, {"streams.wrong", wrong}};
    if (ValkeyModule_Init(ctx, "streams", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].proc, "write", 1, 1, 1) ==
            VALKEYMODULE_ERR)
            return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

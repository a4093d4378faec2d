/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: keys with lists, hashes and sorted sets. What fails is replied as the name of
 * its errno.
 *
 *     LIST.PUSH key end value     LIST.POP key end         LIST.GET key index
 *     LIST.SET key index value    LIST.INSERT key index value    LIST.DELETE key index
 *     HASH.SET key flags field value   (value `delete`: removes it)    HASH.GET key field
 *     HASH.COPY key field to           a text with its value, if there is one; replicated as it is
 *     ZSET.ADD key flags score member   ZSET.INCRBY key flags score member   the result, the flags
 *     ZSET.REM key member   ZSET.SCORE key member
 *     ZSET.WALK key FIRST|LAST SCORE|LEX min max [REM]   the range; REM removes what it meets
 *     ELEMENTS.SCAN [key]   all keys, deleting them; or all elements, and errno after the end */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "replies.h"
#include "valkeymodule.h"

enum { BOTH = VALKEYMODULE_READ | VALKEYMODULE_WRITE };

static int replyString(ValkeyModuleCtx *ctx, ValkeyModuleString *s) {
    return s ? ValkeyModule_ReplyWithString(ctx, s) : replyErrno(ctx);
}

static int list(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    const char *name = ValkeyModule_StringPtrLen(argv[0], NULL) + 5;
    long long at = 0;
    ValkeyModule_StringToLongLong(argv[2], &at);
    ValkeyModuleString *value = argc > 3 ? argv[3] : NULL;
    errno = 0;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], BOTH);
    if (!strcasecmp(name, "push"))
        return replyResult(ctx, ValkeyModule_ListPush(key, (int)at, value));
    if (!strcasecmp(name, "pop")) return replyString(ctx, ValkeyModule_ListPop(key, (int)at));
    if (!strcasecmp(name, "get")) return replyString(ctx, ValkeyModule_ListGet(key, (long)at));
    if (!strcasecmp(name, "set"))
        return replyResult(ctx, ValkeyModule_ListSet(key, (long)at, value));
    if (!strcasecmp(name, "insert"))
        return replyResult(ctx, ValkeyModule_ListInsert(key, (long)at, value));
    return replyResult(ctx, ValkeyModule_ListDelete(key, (long)at));
}

static int hashSet(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long flags;
    if (argc != 5 || ValkeyModule_StringToLongLong(argv[2], &flags))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    int deletes = strcmp(ValkeyModule_StringPtrLen(argv[4], NULL), "delete") == 0;
    ValkeyModuleString *value = deletes ? VALKEYMODULE_HASH_DELETE : argv[4];
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], BOTH);
    errno = 0;
    int count = flags & VALKEYMODULE_HASH_CFIELDS
                    ? ValkeyModule_HashSet(key, (int)flags,
                                           ValkeyModule_StringPtrLen(argv[3], NULL), value, NULL)
                    : ValkeyModule_HashSet(key, (int)flags, argv[3], value, NULL);
    return count ? ValkeyModule_ReplyWithLongLong(ctx, count) : replyErrno(ctx);
}

static int hashGet(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    ValkeyModuleString *value = NULL;
    int exists = -1;
    if (ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, argv[2], &value, NULL) ||
        ValkeyModule_HashGet(key, VALKEYMODULE_HASH_EXISTS, argv[2], &exists, NULL))
        return ValkeyModule_ReplyWithSimpleString(ctx, "wrong type");
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, exists);
    return value ? ValkeyModule_ReplyWithString(ctx, value) : ValkeyModule_ReplyWithNull(ctx);
}

static int hashCopy(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 4) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    ValkeyModuleString *value = NULL;
    (void)ValkeyModule_HashGet(key, VALKEYMODULE_HASH_NONE, argv[2], &value, NULL);
    if (value) {
        ValkeyModuleKey *to = ValkeyModule_OpenKey(ctx, argv[3], VALKEYMODULE_WRITE);
        ValkeyModule_StringSet(to, value);
    }
    ValkeyModule_ReplicateVerbatim(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, value != NULL);
}

static int zsetAdd(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long given;
    double score;
    if (argc != 5 || ValkeyModule_StringToLongLong(argv[2], &given))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    score = strtod(ValkeyModule_StringPtrLen(argv[3], NULL), NULL);
    int increments = strcasecmp(ValkeyModule_StringPtrLen(argv[0], NULL), "zset.incrby") == 0;
    int flags = (int)given;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], BOTH);
    int result = increments ? ValkeyModule_ZsetIncrby(key, score, argv[4], &flags, &score)
                            : ValkeyModule_ZsetAdd(key, score, argv[4], &flags);
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, result);
    ValkeyModule_ReplyWithLongLong(ctx, flags);
    return ValkeyModule_ReplyWithString(ctx, ValkeyModule_CreateStringFromDouble(ctx, score));
}

static int zsetMember(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], BOTH);
    if (strcasecmp(ValkeyModule_StringPtrLen(argv[0], NULL), "zset.rem") == 0) {
        int deleted = -1;
        int result = ValkeyModule_ZsetRem(key, argv[2], &deleted);
        return ValkeyModule_ReplyWithLongLong(ctx, result ? -1 : deleted);
    }
    double score;
    if (ValkeyModule_ZsetScore(key, argv[2], &score)) return ValkeyModule_ReplyWithNull(ctx);
    return ValkeyModule_ReplyWithString(ctx, ValkeyModule_CreateStringFromDouble(ctx, score));
}

static int zsetWalk(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 6) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    int last = strcasecmp(ValkeyModule_StringPtrLen(argv[2], NULL), "last") == 0;
    int lex = strcasecmp(ValkeyModule_StringPtrLen(argv[3], NULL), "lex") == 0;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], BOTH);
    int result;
    if (lex) {
        result = last ? ValkeyModule_ZsetLastInLexRange(key, argv[4], argv[5])
                      : ValkeyModule_ZsetFirstInLexRange(key, argv[4], argv[5]);
    } else {
        double min = strtod(ValkeyModule_StringPtrLen(argv[4], NULL), NULL);
        double max = strtod(ValkeyModule_StringPtrLen(argv[5], NULL), NULL);
        result = last ? ValkeyModule_ZsetLastInScoreRange(key, min, max, 0, 1)
                      : ValkeyModule_ZsetFirstInScoreRange(key, min, max, 0, 1);
    }
    if (result) return ValkeyModule_ReplyWithSimpleString(ctx, "no range");
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    long count = 0;
    while (!ValkeyModule_ZsetRangeEndReached(key)) {
        ValkeyModuleString *member = ValkeyModule_ZsetRangeCurrentElement(key, NULL);
        ValkeyModule_ReplyWithString(ctx, member);
        count++;
        if (argc == 7) {
            ValkeyModule_ZsetRem(key, member, NULL);
        } else {
            last ? ValkeyModule_ZsetRangePrev(key) : ValkeyModule_ZsetRangeNext(key);
        }
    }
    ValkeyModule_ZsetRangeStop(key);
    ValkeyModule_ReplySetArrayLength(ctx, count);
    return VALKEYMODULE_OK;
}

static void sawKey(ValkeyModuleCtx *ctx, ValkeyModuleString *name, ValkeyModuleKey *key,
                   void *arg) {
    ValkeyModule_ReplyWithString(ctx, name);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KeyType(key));
    ValkeyModuleKey *own = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_WRITE);
    ValkeyModule_DeleteKey(own);
    ValkeyModule_CloseKey(own);
    *(long *)arg += 2;
}

typedef struct elementScan {
    ValkeyModuleCtx *ctx;
    long count;
} elementScan;

static void sawElement(ValkeyModuleKey *key, ValkeyModuleString *name, ValkeyModuleString *value,
                       void *arg) {
    elementScan *scan = arg;
    (void)key;
    ValkeyModule_ReplyWithString(scan->ctx, name);
    scan->count++;
    if (!value) return;
    ValkeyModule_ReplyWithString(scan->ctx, value);
    scan->count++;
}

static int scanAll(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    ValkeyModuleScanCursor *cursor = ValkeyModule_ScanCursorCreate();
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    elementScan scan = {ctx, 0};
    if (argc == 1) {
        while (ValkeyModule_Scan(ctx, cursor, sawKey, &scan.count)) continue;
        ValkeyModule_Scan(ctx, cursor, sawKey, &scan.count);
    } else {
        ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
        while (ValkeyModule_ScanKey(key, cursor, sawElement, &scan)) continue;
        ValkeyModule_ScanKey(key, cursor, sawElement, &scan);
        ValkeyModule_CloseKey(key);
    }
    replyErrno(ctx);
    ValkeyModule_ReplySetArrayLength(ctx, scan.count + 1);
    ValkeyModule_ScanCursorDestroy(cursor);
    return VALKEYMODULE_OK;
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"list.push", list},      {"list.pop", list},         {"list.get", list},
                {"list.set", list},       {"list.insert", list},      {"list.delete", list},
                {"hash.set", hashSet},    {"hash.get", hashGet},      {"zset.add", zsetAdd},
                {"zset.incrby", zsetAdd}, {"zset.rem", zsetMember},   {"zset.score", zsetMember},
                {"zset.walk", zsetWalk},  {"elements.scan", scanAll}, {"hash.copy", hashCopy}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "elements", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *flags = strcmp(commands[i].name, "zset.score") ? "write" : "";
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, flags, 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

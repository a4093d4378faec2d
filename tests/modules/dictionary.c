/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: one dictionary, whose functions are commands.
 *
 *     DICT.SET key value   DICT.REPLACE key value   DICT.GET key   DICT.DEL key   DICT.SIZE
 *     DICT.WALK op key NEXT|PREV            the keys from there on, with values
 *     DICT.WALK op key NEXT|PREV DELETING   the same, deleting each key that was returned
 *     DICT.COMPARE op key                   of the first key in the dictionary */
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

static ValkeyModuleDict *dict;

static int set(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    size_t len;
    int replaces = strcasecmp(ValkeyModule_StringPtrLen(argv[0], &len), "dict.replace") == 0;
    ValkeyModule_RetainString(NULL, argv[2]);
    int nokey;
    ValkeyModuleString *old = ValkeyModule_DictGet(dict, argv[1], &nokey);
    int result = replaces ? ValkeyModule_DictReplace(dict, argv[1], argv[2])
                          : ValkeyModule_DictSet(dict, argv[1], argv[2]);
    if (replaces && !nokey) ValkeyModule_FreeString(NULL, old);
    if (!replaces && result != VALKEYMODULE_OK) ValkeyModule_FreeString(NULL, argv[2]);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static int get(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    int nokey;
    ValkeyModuleString *value = ValkeyModule_DictGet(dict, argv[1], &nokey);
    return nokey ? ValkeyModule_ReplyWithNull(ctx) : ValkeyModule_ReplyWithString(ctx, value);
}

static int del(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleString *value = NULL;
    int result = ValkeyModule_DictDel(dict, argv[1], &value);
    if (value) ValkeyModule_FreeString(NULL, value);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static int size(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)ValkeyModule_DictSize(dict));
}

static int walk(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 4 && argc != 5) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    int forward = !strcasecmp(ValkeyModule_StringPtrLen(argv[3], NULL), "next");
    ValkeyModuleDictIter *iter =
        ValkeyModule_DictIteratorStart(dict, ValkeyModule_StringPtrLen(argv[1], NULL), argv[2]);
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    long count = 0;
    void *value;
    ValkeyModuleString *key;
    while ((key = forward ? ValkeyModule_DictNext(ctx, iter, &value)
                          : ValkeyModule_DictPrev(ctx, iter, &value))) {
        ValkeyModule_ReplyWithString(ctx, key);
        ValkeyModule_ReplyWithString(ctx, value);
        count += 2;
        if (argc < 5) continue;
        ValkeyModule_DictDel(dict, key, NULL);
        ValkeyModule_FreeString(NULL, value);
    }
    ValkeyModule_DictIteratorStop(iter);
    ValkeyModule_ReplySetArrayLength(ctx, count);
    return VALKEYMODULE_OK;
}

static int compare(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleDictIter *iter = ValkeyModule_DictIteratorStartC(dict, "^", NULL, 0);
    int result = ValkeyModule_DictCompare(iter, ValkeyModule_StringPtrLen(argv[1], NULL), argv[2]);
    int reseek = ValkeyModule_DictIteratorReseekC(iter, "^", NULL, 0);
    ValkeyModule_DictIteratorStop(iter);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, result);
    return ValkeyModule_ReplyWithLongLong(ctx, reseek);
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"dict.set", set},        {"dict.replace", set}, {"dict.get", get},
                {"dict.del", del},        {"dict.size", size},   {"dict.walk", walk},
                {"dict.compare", compare}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "dictionary", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    dict = ValkeyModule_CreateDict(NULL);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    ValkeyModuleDictIter *iter = ValkeyModule_DictIteratorStartC(dict, "^", NULL, 0);
    void *value;
    while (ValkeyModule_DictNextC(iter, NULL, &value)) ValkeyModule_FreeString(NULL, value);
    ValkeyModule_DictIteratorStop(iter);
    ValkeyModule_FreeDict(ctx, dict);
    return VALKEYMODULE_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: keys of any type and keys with a string.
 *
 *     KEYS.GET key mode                 the text by a handle of this mode; type and length
 *     KEYS.SET key value                KEYS.TRUNCATE key length        KEYS.POKE key at byte
 *     KEYS.DEL key                      KEYS.UNLINK key
 *     KEYS.EXPIRE key ms [ABS]          the result, and the time that is read again
 *     KEYS.LRU key [ms]                 KEYS.LFU key [counter]
 *     KEYS.TWICE key                    one handle, while Call() changes the key below it
 *     KEYS.WRONG key                    the wrong use of handles that only read; of none
 *     KEYS.RANDOM   KEYS.SIZE   KEYS.EXISTS key   KEYS.RESET async
 *     KEYS.APPEND text more             bytes saved by TrimStringAllocation(), and the length
 *     KEYS.TOUCH key                    opens it for writing and changes nothing */
#include <strings.h>

#include "valkeymodule.h"

static int get(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long mode;
    if (argc != 3 || ValkeyModule_StringToLongLong(argv[2], &mode))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], (int)mode);
    if (!key) return ValkeyModule_ReplyWithNull(ctx);
    size_t len = 0;
    char *text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ);
    ValkeyModule_ReplyWithArray(ctx, 3);
    if (text) {
        ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
    } else {
        ValkeyModule_ReplyWithCString(ctx, "wrong type");
    }
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KeyType(key));
    ValkeyModule_ReplyWithLongLong(ctx, (long long)ValkeyModule_ValueLength(key));
    ValkeyModule_CloseKey(key);
    return VALKEYMODULE_OK;
}

/* The speed of a command like GET: nothing but the value. */
static int fastGet(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    size_t len;
    char *text = key ? ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ) : NULL;
    if (text) {
        ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
    } else {
        ValkeyModule_ReplyWithNull(ctx);
    }
    ValkeyModule_CloseKey(key);
    return VALKEYMODULE_OK;
}

static int set(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_StringSet(key, argv[2]));
}

static int truncateTo(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long len;
    if (argc != 3 || ValkeyModule_StringToLongLong(argv[2], &len))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_StringTruncate(key, (size_t)len));
}

static int poke(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long at;
    if (argc != 4 || ValkeyModule_StringToLongLong(argv[2], &at))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    size_t len;
    char *text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_WRITE);
    if (!text || at < 0 || (size_t)at >= len)
        return ValkeyModule_ReplyWithError(ctx, "ERR no such byte");
    text[at] = *ValkeyModule_StringPtrLen(argv[3], NULL);
    text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ);
    return ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
}

static int del(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    int unlinks = strcasecmp(ValkeyModule_StringPtrLen(argv[0], NULL), "keys.unlink") == 0;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, unlinks ? ValkeyModule_UnlinkKey(key)
                                                : ValkeyModule_DeleteKey(key));
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KeyType(key));
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_StringSet(key, argv[1])); /* it stays usable */
    ValkeyModule_DeleteKey(key);
    ValkeyModule_CloseKey(key);
    return VALKEYMODULE_OK;
}

static int expire(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc < 3 || ValkeyModule_StringToLongLong(argv[2], &ms))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, argc == 4 ? ValkeyModule_SetAbsExpire(key, ms)
                                                  : ValkeyModule_SetExpire(key, ms));
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetExpire(key));
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetAbsExpire(key));
}

static int access(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long value = 0;
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    if (argc == 3) ValkeyModule_StringToLongLong(argv[2], &value);
    int is_lru = strcasecmp(ValkeyModule_StringPtrLen(argv[0], NULL), "keys.lru") == 0;
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE | VALKEYMODULE_OPEN_KEY_NOTOUCH);
    mstime_t idle = -2;
    long long counter = -2;
    int result = 0;
    if (argc == 3)
        result = is_lru ? ValkeyModule_SetLRU(key, value) : ValkeyModule_SetLFU(key, value);
    result |= 2 * (is_lru ? ValkeyModule_GetLRU(key, &idle) : ValkeyModule_GetLFU(key, &counter));
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, result);
    return ValkeyModule_ReplyWithLongLong(ctx, is_lru ? idle : counter);
}

static int twice(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    static const char *const values[] = {"short", NULL, "12",
                                         "a longer text than the one before it"};
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    ValkeyModule_ReplyWithArray(ctx, 4);
    for (int i = 0; i < 4; i++) {
        if (values[i]) {
            ValkeyModule_Call(ctx, "SET", "sc", argv[1], values[i]);
        } else {
            ValkeyModule_Call(ctx, "DEL", "s", argv[1]);
        }
        size_t len;
        char *text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ);
        ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
    }
    return VALKEYMODULE_OK;
}

/* keys.both key other: opens the key to read, then to write as well, and another one to write.
 * Replies what the first handle shows. */
static int both(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *first = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    for (int i = 1; i < argc; i++)
        (void)ValkeyModule_OpenKey(ctx, argv[i], VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, (long long)ValkeyModule_ValueLength(first));
    size_t len;
    char *text = ValkeyModule_StringDMA(first, &len, VALKEYMODULE_READ);
    return ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
}

static int wrong(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleKey *keys[] = {ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ), NULL};
    for (int i = 0; i < 2; i++) {
        mstime_t idle;
        long long counter;
        if (!ValkeyModule_StringSet(keys[i], argv[1]) || !ValkeyModule_StringTruncate(keys[i], 3) ||
            !ValkeyModule_DeleteKey(keys[i]) || !ValkeyModule_UnlinkKey(keys[i]) ||
            !ValkeyModule_SetExpire(keys[i], 1000) || !ValkeyModule_SetAbsExpire(keys[i], 1000) ||
            !ValkeyModule_SetLRU(NULL, 1) || !ValkeyModule_GetLRU(NULL, &idle) ||
            !ValkeyModule_SetLFU(NULL, 1) || !ValkeyModule_GetLFU(NULL, &counter))
            return ValkeyModule_ReplyWithError(ctx, "ERR accepted");
    }
    size_t len;
    if (ValkeyModule_KeyType(NULL) || ValkeyModule_ValueLength(NULL) ||
        ValkeyModule_GetExpire(NULL) != -1 || ValkeyModule_GetAbsExpire(NULL) != -1 ||
        ValkeyModule_StringDMA(NULL, &len, VALKEYMODULE_READ) ||
        ValkeyModule_GetKeyNameFromModuleKey(NULL) || ValkeyModule_GetDbIdFromModuleKey(NULL) != -1)
        return ValkeyModule_ReplyWithError(ctx, "ERR no handle has a value");
    ValkeyModule_CloseKey(NULL);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetDbIdFromModuleKey(keys[0]));
}

static int whole(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    const char *name = ValkeyModule_StringPtrLen(argv[0], NULL);
    ValkeyModule_AutoMemory(ctx);
    if (argc == 2 && strcasecmp(name, "keys.exists") == 0)
        return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KeyExists(ctx, argv[1]));
    if (argc == 2 && strcasecmp(name, "keys.touch") == 0)
        return ValkeyModule_ReplyWithLongLong(
            ctx, ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE) != NULL);
    if (argc == 2 && strcasecmp(name, "keys.reset") == 0) {
        long long async = 0;
        ValkeyModule_StringToLongLong(argv[1], &async);
        ValkeyModule_ResetDataset(1, (int)async);
        return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    }
    if (strcasecmp(name, "keys.size") == 0)
        return ValkeyModule_ReplyWithLongLong(ctx, (long long)ValkeyModule_DbSize(ctx));
    ValkeyModuleString *key = ValkeyModule_RandomKey(ctx);
    return key ? ValkeyModule_ReplyWithString(ctx, key) : ValkeyModule_ReplyWithNull(ctx);
}

/* How much less a string occupies when its allocation is trimmed, and its length. */
static int append(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleString *s = ValkeyModule_CreateStringFromString(ctx, argv[1]);
    size_t len;
    const char *more = ValkeyModule_StringPtrLen(argv[2], &len);
    ValkeyModule_StringAppendBuffer(ctx, s, more, len);
    size_t before = ValkeyModule_MallocSizeString(s);
    ValkeyModule_TrimStringAllocation(s);
    size_t after = ValkeyModule_MallocSizeString(s);
    ValkeyModule_StringPtrLen(s, &len);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, (long long)before - (long long)after);
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)len);
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"keys.get", get},      {"keys.fastget", fastGet},
                {"keys.set", set},      {"keys.truncate", truncateTo},
                {"keys.poke", poke},    {"keys.del", del},
                {"keys.unlink", del},   {"keys.expire", expire},
                {"keys.lru", access},   {"keys.lfu", access},
                {"keys.twice", twice},  {"keys.wrong", wrong},
                {"keys.both", both},    {"keys.exists", whole},
                {"keys.touch", whole},  {"keys.reset", whole},
                {"keys.size", whole},   {"keys.random", whole},
                {"keys.append", append}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "keys", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        int first = commands[i].func == whole || commands[i].func == append ? 0 : 1;
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "write", first,
                                       first, first))
            return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

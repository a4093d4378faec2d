/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: what concerns the dataset as a whole. What fails is replied as the name of
 * its errno.
 *
 *     DATASET.SAVE file [flags]     DATASET.LOAD file [flags]      OK
 *     DATASET.FORK exit-code        a child that ends at once; -1: it waits to be killed. Its pid
 *     DATASET.KILL pid              DATASET.FORKED   how often children have ended, exit code,
 *                                   signal
 *     DATASET.REFER key field text  HashSetStringRef() with a buffer that lives on
 *     DATASET.REFERS key field      HashHasStringRef()
 *     DATASET.FREE                  the buffers are overwritten and freed
 *     DATASET.ADD key count         a value of its type: so many blocks; 777: its rewrite fails
 *     DATASET.LENGTH key            the sum of its blocks
 *     DATASET.MOVES                 what its defrag callbacks have done: values, late calls,
 *                                   wrong keys, global calls, strings that got a new address
 *     DATASET.SLOW count            the next values that are loaded serve clients until
 *                                   DATASET.CONTINUE, which replies how many do
 *     DATASET.CATEGORY name         AddACLCategory() outside of OnLoad
 *
 * Arguments of the load are categories to add; `options N` sets the module's options, `fail` makes
 * the load fail, `commands` makes each command one of the last category. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replies.h"
#include "valkeymodule.h"

static long long numberOf(ValkeyModuleString *s) {
    long long n = 0;
    (void)ValkeyModule_StringToLongLong(s, &n);
    return n;
}

/* ------------------------------------------------------------------ files */

static int fileCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                       int (*what)(ValkeyModuleCtx *, ValkeyModuleRdbStream *, int)) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleRdbStream *file =
        ValkeyModule_RdbStreamCreateFromFile(ValkeyModule_StringPtrLen(argv[1], NULL));
    int result = what(ctx, file, argc > 2 ? (int)numberOf(argv[2]) : 0);
    int error = errno;
    ValkeyModule_RdbStreamFree(file);
    errno = error;
    return replyResult(ctx, result);
}

static int save(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return fileCommand(ctx, argv, argc, ValkeyModule_RdbSave);
}

static int load(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return fileCommand(ctx, argv, argc, ValkeyModule_RdbLoad);
}

/* ------------------------------------------------------------------ children */

static int ended, exit_code, by_signal;

static void childEnded(int code, int signal, void *user_data) {
    if (user_data != &ended) return;
    ended++;
    exit_code = code;
    by_signal = signal;
}

static int forkCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    long long code = numberOf(argv[1]);
    int pid = ValkeyModule_Fork(childEnded, &ended);
    if (pid < 0) return ValkeyModule_ReplyWithError(ctx, "ERR no child");
    if (pid > 0) return ValkeyModule_ReplyWithLongLong(ctx, pid);
    ValkeyModule_SendChildHeartbeat(0.5);
    while (code < 0) pause();
    ValkeyModule_ExitFromChild((int)code);
    return VALKEYMODULE_OK;
}

static int killCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KillForkChild((int)numberOf(argv[1])));
}

static int forked(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, ended);
    ValkeyModule_ReplyWithLongLong(ctx, exit_code);
    return ValkeyModule_ReplyWithLongLong(ctx, by_signal);
}

/* ------------------------------------------------------------------ values that are referred to */

enum { BUFFERS = 256 };
static char *buffers[BUFFERS];
static int buffer_count;

static int refer(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 4 || buffer_count == BUFFERS) return ValkeyModule_WrongArity(ctx);
    size_t len;
    const char *text = ValkeyModule_StringPtrLen(argv[3], &len);
    char *copy = ValkeyModule_Alloc(len + 1);
    memcpy(copy, text, len + 1);
    buffers[buffer_count++] = copy;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    int result = ValkeyModule_HashSetStringRef(key, argv[2], copy, len);
    ValkeyModule_CloseKey(key);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static int refers(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    int result = ValkeyModule_HashHasStringRef(key, argv[2]);
    ValkeyModule_CloseKey(key);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static void freeBuffers(void) {
    while (buffer_count) {
        char *each = buffers[--buffer_count];
        memset(each, '!', strlen(each));
        ValkeyModule_Free(each);
    }
}

static int freeCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    freeBuffers();
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

/* ------------------------------------------------------------------ a type of blocks */

enum { UNKNOWN_COMMAND = 777 }; /* a value of so many emits it */

typedef struct blocks {
    size_t count;
    long long **items;
    ValkeyModuleString *name;
} blocks;

static ValkeyModuleType *type;
static long long moved_values, late_calls, wrong_keys, global_calls, moved_strings;

static blocks *blocksNew(size_t count) {
    blocks *b = ValkeyModule_Alloc(sizeof(*b));
    b->count = count;
    b->items = ValkeyModule_Alloc(count * sizeof(*b->items));
    for (size_t i = 0; i < count; i++) {
        b->items[i] = ValkeyModule_Calloc(1, 48);
        *b->items[i] = (long long)i;
    }
    b->name = ValkeyModule_CreateString(NULL, "blocks", 6);
    return b;
}

static void blocksFree(void *value) {
    blocks *b = value;
    for (size_t i = 0; i < b->count; i++) ValkeyModule_Free(b->items[i]);
    ValkeyModule_Free(b->items);
    ValkeyModule_FreeString(NULL, b->name);
    ValkeyModule_Free(b);
}

static void blocksSave(ValkeyModuleIO *io, void *value) {
    ValkeyModule_SaveUnsigned(io, ((blocks *)value)->count);
}

static int slow_loads;   /* so many values wait when they are loaded */
static int waits, go_on; /* one does; it is to end */

/* Serves clients until DATASET.CONTINUE, or for a minute. */
static void waitInLoad(ValkeyModuleIO *io) {
    ValkeyModuleCtx *ctx = ValkeyModule_GetContextFromIO(io);
    long long end = ValkeyModule_Milliseconds() + 60000;
    waits++;
    while (!go_on && ValkeyModule_Milliseconds() < end)
        ValkeyModule_Yield(ctx, VALKEYMODULE_YIELD_FLAG_CLIENTS, "reading blocks");
    go_on = 0;
    waits--;
}

static void blocksDigest(ValkeyModuleDigest *md, void *value) {
    ValkeyModule_DigestAddLongLong(md, (long long)((blocks *)value)->count);
    ValkeyModule_DigestEndSequence(md);
}

static void *blocksLoad(ValkeyModuleIO *io, int version) {
    (void)version;
    uint64_t count = ValkeyModule_LoadUnsigned(io);
    if (ValkeyModule_IsIOError(io)) return NULL;
    if (slow_loads && slow_loads--) waitInLoad(io);
    return blocksNew(count);
}

static void blocksRewrite(ValkeyModuleIO *io, ValkeyModuleString *key, void *value) {
    size_t count = ((blocks *)value)->count;
    const char *name = count == UNKNOWN_COMMAND ? "dataset.unknown" : "dataset.add";
    ValkeyModule_EmitAOF(io, name, "sl", key, (long long)count);
}

static size_t blocksEffort(ValkeyModuleString *key, const void *value) {
    (void)key;
    return ((const blocks *)value)->count;
}

static int blocksDefrag(ValkeyModuleDefragCtx *ctx, ValkeyModuleString *key, void **value) {
    unsigned long at = 0;
    if (key != ValkeyModule_GetKeyNameFromDefragCtx(ctx)) wrong_keys++;
    if (ValkeyModule_GetDbIdFromDefragCtx(ctx) < 0) wrong_keys++;
    int is_late = ValkeyModule_DefragCursorGet(ctx, &at) == VALKEYMODULE_OK;
    if (is_late) late_calls++;
    blocks *b = *value;
    if (at == 0) {
        moved_values++;
        blocks *moved = ValkeyModule_DefragAlloc(ctx, b);
        if (moved) *value = b = moved;
        long long **items = ValkeyModule_DefragAlloc(ctx, b->items);
        if (items) b->items = items;
        ValkeyModuleString *name = ValkeyModule_DefragValkeyModuleString(ctx, b->name);
        if (name) {
            b->name = name;
            moved_strings++;
        }
    }
    for (unsigned done = 0; at < b->count; at++, done++) {
        if (is_late && (done == 100 || (done && ValkeyModule_DefragShouldStop(ctx)))) {
            ValkeyModule_DefragCursorSet(ctx, at);
            return 1;
        }
        long long *item = ValkeyModule_DefragAlloc(ctx, b->items[at]);
        if (item) b->items[at] = item;
    }
    if (is_late) ValkeyModule_DefragCursorSet(ctx, 0);
    return 0;
}

static void defragGlobal(ValkeyModuleDefragCtx *ctx) {
    unsigned long cursor;
    global_calls++;
    if (ValkeyModule_GetDbIdFromDefragCtx(ctx) != -1) wrong_keys++;
    if (ValkeyModule_GetKeyNameFromDefragCtx(ctx)) wrong_keys++;
    if (ValkeyModule_DefragCursorGet(ctx, &cursor) == VALKEYMODULE_OK) wrong_keys++;
    if (ValkeyModule_DefragCursorSet(ctx, 1) == VALKEYMODULE_OK) wrong_keys++;
    if (ValkeyModule_DefragShouldStop(ctx)) wrong_keys++;
}

static int addCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModule_ModuleTypeSetValue(key, type, blocksNew((size_t)numberOf(argv[2])));
    ValkeyModule_CloseKey(key);
    ValkeyModule_ReplicateVerbatim(ctx);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int length(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    long long sum = 0;
    if (key && ValkeyModule_ModuleTypeGetType(key) == type) {
        const blocks *b = ValkeyModule_ModuleTypeGetValue(key);
        size_t len;
        const char *name = ValkeyModule_StringPtrLen(b->name, &len);
        if (len != 6 || memcmp(name, "blocks", 6)) sum = -1000000000;
        for (size_t i = 0; i < b->count; i++) sum += *b->items[i] + 1;
    }
    ValkeyModule_CloseKey(key);
    return ValkeyModule_ReplyWithLongLong(ctx, sum);
}

static int slow(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    slow_loads = (int)numberOf(argv[1]);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int continueCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    go_on = waits;
    return ValkeyModule_ReplyWithLongLong(ctx, waits);
}

static int moves(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 5);
    ValkeyModule_ReplyWithLongLong(ctx, moved_values);
    ValkeyModule_ReplyWithLongLong(ctx, late_calls);
    ValkeyModule_ReplyWithLongLong(ctx, wrong_keys);
    ValkeyModule_ReplyWithLongLong(ctx, global_calls);
    return ValkeyModule_ReplyWithLongLong(ctx, moved_strings);
}

/* ------------------------------------------------------------------ categories, load */

static int category(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    errno = 0;
    return replyResult(ctx,
                       ValkeyModule_AddACLCategory(ctx, ValkeyModule_StringPtrLen(argv[1], NULL)));
}

static int makeCommands(ValkeyModuleCtx *ctx, const char *categories) {
    static const struct {
        const char *name;
        ValkeyModuleCmdFunc func;
        const char *flags;
        int first_key;
    } commands[] = {{"dataset.save", save, "", 0},
                    {"dataset.load", load, "", 0},
                    {"dataset.fork", forkCommand, "", 0},
                    {"dataset.kill", killCommand, "", 0},
                    {"dataset.forked", forked, "", 0},
                    {"dataset.refer", refer, "write", 1},
                    {"dataset.refers", refers, "", 1},
                    {"dataset.free", freeCommand, "", 0},
                    {"dataset.add", addCommand, "write", 1},
                    {"dataset.length", length, "", 1},
                    {"dataset.moves", moves, "", 0},
                    {"dataset.category", category, "", 0},
                    {"dataset.slow", slow, "", 0},
                    {"dataset.continue", continueCommand, "allow-loading", 0}};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        int key = commands[i].first_key;
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, commands[i].flags,
                                       key, key, key) == VALKEYMODULE_ERR)
            return VALKEYMODULE_ERR;
        if (!categories) continue;
        ValkeyModuleCommand *c = ValkeyModule_GetCommand(ctx, commands[i].name);
        if (ValkeyModule_SetCommandACLCategories(c, categories) == VALKEYMODULE_ERR)
            return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_Init(ctx, "dataset", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    ValkeyModuleTypeMethods methods = {.version = VALKEYMODULE_TYPE_METHOD_VERSION,
                                       .rdb_load = blocksLoad,
                                       .rdb_save = blocksSave,
                                       .aof_rewrite = blocksRewrite,
                                       .free = blocksFree,
                                       .digest = blocksDigest,
                                       .free_effort = blocksEffort,
                                       .defrag = blocksDefrag};
    const char *last = NULL;
    int fails = 0, is_used = 0;
    long long options = VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS;
    for (int i = 0; i < argc; i++) {
        const char *word = ValkeyModule_StringPtrLen(argv[i], NULL);
        if (!strcmp(word, "fail")) {
            fails = 1;
        } else if (!strcmp(word, "commands")) {
            is_used = 1;
        } else if (!strcmp(word, "options") && i + 1 < argc) {
            options = numberOf(argv[++i]);
        } else if (ValkeyModule_AddACLCategory(ctx, word) == VALKEYMODULE_ERR) {
            ValkeyModule_Log(ctx, "warning", "category %s: errno %s", word,
                             errno == EBUSY    ? "EBUSY"
                             : errno == EINVAL ? "EINVAL"
                             : errno == ENOMEM ? "ENOMEM"
                                               : "other");
            return VALKEYMODULE_ERR;
        } else {
            last = word;
        }
    }
    ValkeyModule_SetModuleOptions(ctx, (int)options);
    ValkeyModule_RegisterDefragFunc(ctx, defragGlobal);
    if (makeCommands(ctx, is_used ? last : NULL) == VALKEYMODULE_ERR) return VALKEYMODULE_ERR;
    if (fails) return VALKEYMODULE_ERR;
    type = ValkeyModule_CreateDataType(ctx, "test-blks", 0, &methods);
    return type ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    freeBuffers();
    return VALKEYMODULE_OK;
}

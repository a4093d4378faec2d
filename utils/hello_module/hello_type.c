/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module with a type of values of its own: a growing row of numbers.
 *
 *     HELLO.ROW.ADD key number...   appends; the length
 *     HELLO.ROW.GET key             all numbers
 *     HELLO.ROW.COPY key            the value through a string, as another key's could be made */
#include <string.h>

#include "valkeymodule.h"

static ValkeyModuleType *row_type;

typedef struct row {
    size_t count, max;
    long long *numbers;
} row;

static row *rowNew(void) { return ValkeyModule_Calloc(1, sizeof(row)); }

static void rowFree(void *value) {
    row *r = value;
    ValkeyModule_Free(r->numbers);
    ValkeyModule_Free(r);
}

static void rowAdd(row *r, long long number) {
    if (r->count == r->max) {
        r->max = r->max ? r->max * 2 : 4;
        r->numbers = ValkeyModule_Realloc(r->numbers, r->max * sizeof(r->numbers[0]));
    }
    r->numbers[r->count++] = number;
}

/* ---- how values are saved, copied and measured ---- */

static void *rowLoad(ValkeyModuleIO *io, int encver) {
    if (encver != 0) return NULL;
    row *r = rowNew();
    uint64_t count = ValkeyModule_LoadUnsigned(io);
    while (count-- && !ValkeyModule_IsIOError(io)) rowAdd(r, ValkeyModule_LoadSigned(io));
    if (!ValkeyModule_IsIOError(io)) return r;
    rowFree(r);
    return NULL;
}

static void rowSave(ValkeyModuleIO *io, void *value) {
    const row *r = value;
    ValkeyModule_SaveUnsigned(io, r->count);
    for (size_t i = 0; i < r->count; i++) ValkeyModule_SaveSigned(io, r->numbers[i]);
}

static void rowRewrite(ValkeyModuleIO *io, ValkeyModuleString *key, void *value) {
    const row *r = value;
    for (size_t i = 0; i < r->count; i++)
        ValkeyModule_EmitAOF(io, "HELLO.ROW.ADD", "sl", key, r->numbers[i]);
}

static size_t rowMemory(const void *value) {
    const row *r = value;
    return sizeof(*r) + r->max * sizeof(r->numbers[0]);
}

static void rowDigest(ValkeyModuleDigest *digest, void *value) {
    const row *r = value;
    for (size_t i = 0; i < r->count; i++) ValkeyModule_DigestAddLongLong(digest, r->numbers[i]);
    ValkeyModule_DigestEndSequence(digest);
}

static void *rowCopy(ValkeyModuleString *from, ValkeyModuleString *to, const void *value) {
    (void)from, (void)to;
    const row *r = value;
    row *copy = rowNew();
    for (size_t i = 0; i < r->count; i++) rowAdd(copy, r->numbers[i]);
    return copy;
}

static size_t rowFreeEffort(ValkeyModuleString *key, const void *value) {
    (void)key;
    return ((const row *)value)->count;
}

/* ---- commands ---- */

/* The value of the key; false: it has another type, which was replied. NULL: it has none. */
static int rowOf(ValkeyModuleCtx *ctx, ValkeyModuleKey *key, row **out) {
    *out = NULL;
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_EMPTY) return 1;
    if (ValkeyModule_ModuleTypeGetType(key) != row_type) {
        ValkeyModule_ReplyWithError(ctx, VALKEYMODULE_ERRORMSG_WRONGTYPE);
        return 0;
    }
    *out = ValkeyModule_ModuleTypeGetValue(key);
    return 1;
}

static int add(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    long long number;
    for (int i = 2; i < argc; i++) {
        if (ValkeyModule_StringToLongLong(argv[i], &number) != VALKEYMODULE_OK)
            return ValkeyModule_ReplyWithError(ctx, "ERR value is not an integer");
    }
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    row *r;
    if (!rowOf(ctx, key, &r)) return VALKEYMODULE_OK;
    if (!r) {
        r = rowNew();
        ValkeyModule_ModuleTypeSetValue(key, row_type, r);
    }
    for (int i = 2; i < argc; i++) {
        ValkeyModule_StringToLongLong(argv[i], &number);
        rowAdd(r, number);
    }
    ValkeyModule_ReplicateVerbatim(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)r->count);
}

static int replyRow(ValkeyModuleCtx *ctx, const row *r) {
    ValkeyModule_ReplyWithArray(ctx, r ? (long)r->count : 0);
    for (size_t i = 0; r && i < r->count; i++) ValkeyModule_ReplyWithLongLong(ctx, r->numbers[i]);
    return VALKEYMODULE_OK;
}

static int get(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    row *r;
    if (!rowOf(ctx, ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ), &r))
        return VALKEYMODULE_OK;
    return replyRow(ctx, r);
}

static int copy(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    row *r;
    if (!rowOf(ctx, ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ), &r) || !r)
        return ValkeyModule_ReplyWithNull(ctx);
    ValkeyModuleString *text = ValkeyModule_SaveDataTypeToString(ctx, r, row_type);
    row *made = ValkeyModule_LoadDataTypeFromString(text, row_type);
    size_t len;
    const char *bytes = ValkeyModule_StringPtrLen(text, &len);
    ValkeyModuleString *cut = ValkeyModule_CreateString(ctx, bytes, len - 1);
    if (ValkeyModule_LoadDataTypeFromString(cut, row_type))
        return ValkeyModule_ReplyWithError(ctx, "ERR a part was read as a whole");
    replyRow(ctx, made);
    rowFree(made);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "hellotype", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    /* rowLoad() checks what it reads, and nothing is kept besides the values: slots may move. */
    ValkeyModule_SetModuleOptions(ctx, VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                           VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION);
    ValkeyModuleTypeMethods methods = {.version = VALKEYMODULE_TYPE_METHOD_VERSION,
                                       .rdb_load = rowLoad,
                                       .rdb_save = rowSave,
                                       .aof_rewrite = rowRewrite,
                                       .mem_usage = rowMemory,
                                       .digest = rowDigest,
                                       .free = rowFree,
                                       .copy = rowCopy,
                                       .free_effort = rowFreeEffort};
    row_type = ValkeyModule_CreateDataType(ctx, "hello-row", 0, &methods);
    if (!row_type) return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "hello.row.add", add, "write deny-oom", 1, 1, 1) ||
        ValkeyModule_CreateCommand(ctx, "hello.row.get", get, "readonly", 1, 1, 1) ||
        ValkeyModule_CreateCommand(ctx, "hello.row.copy", copy, "readonly", 1, 1, 1))
        return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}

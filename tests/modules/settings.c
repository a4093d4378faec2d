/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: settings of each kind, and a function for other modules.
 *
 *     SETTINGS.CALLS      how often a value was set, and how often changes were applied
 *     SETTINGS.TRACE      the values given since the last time, refused ones included, and `apply`
 *     SETTINGS.LATE name  0: a setting could be registered after the load, else errno
 *
 * The argument `unloaded` of the load omits LoadConfigs(); `twice` registers a name twice;
 * `name` one with a blank. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "valkeymodule.h"

static ValkeyModuleString *greeting;
static int is_on, colour, bits, fixed;
static long long number, memory;
static long long unlimited;
static unsigned long long large;
static long long sets, applies;

static char trace[2000];

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
    size_t len = strlen(trace);
    va_list args;
    va_start(args, format);
    vsnprintf(trace + len, sizeof(trace) - len, format, args);
    va_end(args);
}

static ValkeyModuleString *getText(const char *name, void *privdata) {
    (void)name, (void)privdata;
    return greeting;
}

static int setText(const char *name, ValkeyModuleString *value, void *privdata,
                   ValkeyModuleString **err) {
    (void)privdata;
    note("%s=%s ", name, ValkeyModule_StringPtrLen(value, NULL));
    if (!strcmp(ValkeyModule_StringPtrLen(value, NULL), "bad")) {
        *err = ValkeyModule_CreateString(NULL, "no bad greetings", 16);
        return VALKEYMODULE_ERR;
    }
    if (greeting) ValkeyModule_FreeString(NULL, greeting);
    ValkeyModule_RetainString(NULL, value);
    greeting = value;
    sets++;
    return VALKEYMODULE_OK;
}

static int getInt(const char *name, void *privdata) {
    (void)name;
    return *(int *)privdata;
}

static int setInt(const char *name, int value, void *privdata, ValkeyModuleString **err) {
    (void)err;
    note("%s=%d ", name, value);
    *(int *)privdata = value;
    sets++;
    return VALKEYMODULE_OK;
}

static long long getNumber(const char *name, void *privdata) {
    (void)name;
    return *(long long *)privdata;
}

static int setNumber(const char *name, long long value, void *privdata, ValkeyModuleString **err) {
    note("%s=%lld ", name, value);
    if (value == 13) {
        *err = ValkeyModule_CreateString(NULL, "not thirteen", 12);
        return VALKEYMODULE_ERR;
    }
    *(long long *)privdata = value;
    if (value == 14) { /* too late */
        *err = ValkeyModule_CreateString(NULL, "not fourteen", 12);
        return VALKEYMODULE_ERR;
    }
    sets++;
    return VALKEYMODULE_OK;
}

static unsigned long long getLarge(const char *name, void *privdata) {
    (void)name;
    return *(unsigned long long *)privdata;
}

static int setLarge(const char *name, unsigned long long value, void *privdata,
                    ValkeyModuleString **err) {
    (void)err;
    note("%s=%llu ", name, value);
    *(unsigned long long *)privdata = value;
    sets++;
    return VALKEYMODULE_OK;
}

static int apply(ValkeyModuleCtx *ctx, void *privdata, ValkeyModuleString **err) {
    (void)ctx;
    applies++;
    note("apply ");
    if (privdata != &number || number != 99) return VALKEYMODULE_OK;
    *err = ValkeyModule_CreateString(NULL, "cannot be applied", 17);
    return VALKEYMODULE_ERR;
}

static int readTrace(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithCString(ctx, trace);
    trace[0] = '\0';
    return VALKEYMODULE_OK;
}

static int calls(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, sets);
    return ValkeyModule_ReplyWithLongLong(ctx, applies);
}

static int late(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    errno = 0;
    int failed = ValkeyModule_RegisterBoolConfig(ctx, ValkeyModule_StringPtrLen(argv[1], NULL), 0,
                                                 0, getInt, setInt, NULL, &fixed);
    return ValkeyModule_ReplyWithSimpleString(ctx, !failed          ? "OK"
                                                   : errno == EBUSY ? "EBUSY"
                                                                    : "other");
}

static long long twice(long long value) { return value * 2; }

static int registerAll(ValkeyModuleCtx *ctx) {
    static const char *colours[] = {"red", "green", "blue"};
    static const int colour_values[] = {1, 2, 3};
    static const char *words[] = {"none", "update", "read", "write", "change"};
    static const int word_values[] = {0, 12, 1, 2, 4};
    return ValkeyModule_RegisterStringConfig(ctx, "greeting", "hello", 0, getText, setText, apply,
                                             NULL) ||
           ValkeyModule_RegisterBoolConfig(ctx, "on", 1, 0, getInt, setInt, apply, &is_on) ||
           ValkeyModule_RegisterEnumConfig(ctx, "colour", 2, 0, colours, colour_values, 3, getInt,
                                           setInt, apply, &colour) ||
           ValkeyModule_RegisterEnumConfig(ctx, "bits", 0, VALKEYMODULE_CONFIG_BITFLAGS, words,
                                           word_values, 5, getInt, setInt, NULL, &bits) ||
           ValkeyModule_RegisterNumericConfig(ctx, "number", 5, 0, -10, 100, getNumber, setNumber,
                                              apply, &number) ||
           ValkeyModule_RegisterNumericConfig(ctx, "memory", 1024, VALKEYMODULE_CONFIG_MEMORY, 0,
                                              1 << 30, getNumber, setNumber, NULL, &memory) ||
           ValkeyModule_RegisterNumericConfig(ctx, "unlimited", -1, VALKEYMODULE_CONFIG_MEMORY, -1,
                                              1 << 30, getNumber, setNumber, NULL, &unlimited) ||
           ValkeyModule_RegisterUnsignedNumericConfig(ctx, "large", 1, VALKEYMODULE_CONFIG_UNSIGNED,
                                                      0, UINT64_MAX, getLarge, setLarge, NULL,
                                                      &large) ||
           ValkeyModule_RegisterBoolConfig(ctx, "fixed", 0, VALKEYMODULE_CONFIG_IMMUTABLE, getInt,
                                           setInt, NULL, &fixed);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_Init(ctx, "settings", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    const char *word = argc ? ValkeyModule_StringPtrLen(argv[0], NULL) : "";
    if (ValkeyModule_CreateCommand(ctx, "settings.calls", calls, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "settings.trace", readTrace, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "settings.late", late, "", 0, 0, 0) || registerAll(ctx))
        return VALKEYMODULE_ERR;
    errno = 0;
    if (!strcmp(word, "twice") &&
        ValkeyModule_RegisterBoolConfig(ctx, "on", 1, 0, getInt, setInt, NULL, &is_on))
        return errno == EALREADY ? VALKEYMODULE_ERR : VALKEYMODULE_OK;
    if (!strcmp(word, "name") &&
        ValkeyModule_RegisterBoolConfig(ctx, "two words", 1, 0, getInt, setInt, NULL, &is_on))
        return errno == EINVAL ? VALKEYMODULE_ERR : VALKEYMODULE_OK;
    if (!strcmp(word, "unloaded")) return VALKEYMODULE_OK;
    ValkeyModule_ExportSharedAPI(ctx, "settings.twice", (void *)twice);
    if (ValkeyModule_LoadConfigs(ctx) == VALKEYMODULE_OK) return VALKEYMODULE_OK;
    if (greeting) ValkeyModule_FreeString(ctx, greeting); /* OnUnload is not called then */
    greeting = NULL;
    return VALKEYMODULE_ERR;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    if (greeting) ValkeyModule_FreeString(ctx, greeting);
    greeting = NULL;
    return VALKEYMODULE_OK;
}

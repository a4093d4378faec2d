/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kind of module: a command filter, which sees each request before its command is looked up and
 * may rewrite it.
 *
 *     HELLO.FILTER ON|OFF       starts and ends the filter
 *     HELLO.SEEN                how many requests it has seen
 *
 * While it is on, `@name` as an argument of SET, GET or DEL becomes `user:<name>`, `hello.swap a b`
 * becomes `RENAME a b`, and `-` at the end of any request is dropped. What the module itself calls
 * is not filtered (NOSELF). */
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

static ValkeyModuleCommandFilter *filter;
static long long seen;

static const char *arg(ValkeyModuleCommandFilterCtx *request, int i, size_t *len) {
    return ValkeyModule_StringPtrLen(ValkeyModule_CommandFilterArgGet(request, i), len);
}

static int isNamed(ValkeyModuleCommandFilterCtx *request, const char *name) {
    size_t len;
    const char *text = arg(request, 0, &len);
    return len == strlen(name) && !strncasecmp(text, name, len);
}

static void expandNames(ValkeyModuleCommandFilterCtx *request) {
    for (int i = 1; i < ValkeyModule_CommandFilterArgsCount(request); i++) {
        size_t len;
        const char *text = arg(request, i, &len);
        if (len < 2 || text[0] != '@') continue;
        ValkeyModuleString *key =
            ValkeyModule_CreateStringPrintf(NULL, "user:%.*s", (int)len - 1, text + 1);
        /* The string belongs to the server from here on. */
        ValkeyModule_CommandFilterArgReplace(request, i, key);
    }
}

static void rewrite(ValkeyModuleCommandFilterCtx *request) {
    seen++;
    int last = ValkeyModule_CommandFilterArgsCount(request) - 1;
    size_t len;
    const char *text = arg(request, last, &len);
    if (last > 0 && len == 1 && *text == '-') ValkeyModule_CommandFilterArgDelete(request, last);
    if (isNamed(request, "hello.swap")) {
        ValkeyModule_CommandFilterArgDelete(request, 0);
        ValkeyModule_CommandFilterArgInsert(request, 0,
                                            ValkeyModule_CreateString(NULL, "RENAME", 6));
    }
    if (isNamed(request, "set") || isNamed(request, "get") || isNamed(request, "del"))
        expandNames(request);
}

static int filterCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    int on = !strcasecmp(ValkeyModule_StringPtrLen(argv[1], NULL), "on");
    if (on && !filter)
        filter = ValkeyModule_RegisterCommandFilter(ctx, rewrite, VALKEYMODULE_CMDFILTER_NOSELF);
    if (!on && filter && ValkeyModule_UnregisterCommandFilter(ctx, filter) == VALKEYMODULE_OK)
        filter = NULL;
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int seenCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    if (argc != 1) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "PING", ""); /* it is not counted */
    if (reply) ValkeyModule_FreeCallReply(reply);
    return ValkeyModule_ReplyWithLongLong(ctx, seen);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "hellofilter", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "hello.filter", filterCommand, "", 0, 0, 0) ==
        VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "hello.seen", seenCommand, "", 0, 0, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: memory of the C library is freed by the allocator that made it, and functions
 * with names of functions of the server are the module's own.
 *
 *     SYMBOLS.FREE   frees what functions of the C library have allocated
 *     SYMBOLS.OWN    calls functions of this file, which the server has, too: 1, 2, 3 */
#define _GNU_SOURCE /* asprintf() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "valkeymodule.h"

#define EXPORTED __attribute__((visibility("default"), noinline))

/* These have other parameters in the server, which may crash if it is called instead. */
EXPORTED int memAlloc(void);
EXPORTED int memAlloc(void) { return 1; }
EXPORTED int dbFind(void);
EXPORTED int dbFind(void) { return 2; }
EXPORTED int moduleLoad(void);
EXPORTED int moduleLoad(void) { return 3; }

/* Read at run time, so that the compiler does not call the functions by itself. */
static int (*volatile const own[])(void) = {memAlloc, dbFind, moduleLoad};

static int callOwn(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 3);
    for (int i = 0; i < 3; i++) ValkeyModule_ReplyWithLongLong(ctx, own[i]());
    return VALKEYMODULE_OK;
}

/* The text has been allocated by the C library itself. */
static void replyAndFree(ValkeyModuleCtx *ctx, char *text) {
    ValkeyModule_ReplyWithCString(ctx, text ? text : "no memory");
    free(text);
}

static int freeTexts(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    char *printed = NULL, *written = NULL;
    size_t size;
    if (asprintf(&printed, "%d printed", 1) < 0) printed = NULL;
    FILE *stream = open_memstream(&written, &size);
    if (stream) {
        fputs("written", stream);
        fclose(stream);
    }
    char *grown = strdup("grown");
    char *larger = grown ? realloc(grown, 1000) : NULL;
    if (!larger) free(grown);
    ValkeyModule_ReplyWithArray(ctx, 5);
    replyAndFree(ctx, strdup("copied"));
    replyAndFree(ctx, printed);
    replyAndFree(ctx, written);
    replyAndFree(ctx, larger);
    replyAndFree(ctx, realpath("/", NULL));
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "symbols", 1, VALKEYMODULE_APIVER_1)) return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "symbols.free", freeTexts, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "symbols.own", callOwn, "", 0, 0, 0);
}

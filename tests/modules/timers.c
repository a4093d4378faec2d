/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: timers, descriptors, and calls ordered by another thread.
 *
 *     TIMERS.CREATE ms key    its id; when it expires, the key is incremented
 *     TIMERS.STOP id          0: stopped, and the key
 *     TIMERS.INFO id          the rest of its time in ms
 *     TIMERS.MANY count ms    makes so many timers, stops each second one, and asks for the others
 *     TIMERS.PIPE text        writes into a pipe that is watched
 *     TIMERS.THREAD           another thread orders a call
 *     TIMERS.SEEN             what was read from the pipe, and the number of calls made
 *
 * It is unloaded with a watched descriptor that is ready, and with an ordered call. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "valkeymodule.h"

static int ends[2];
static char seen[256];
static long long calls;

static void expired(ValkeyModuleCtx *ctx, void *data) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!s", data);
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_FreeString(ctx, data);
}

static int create(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc != 3 || ValkeyModule_StringToLongLong(argv[1], &ms))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_RetainString(ctx, argv[2]);
    return ValkeyModule_ReplyWithLongLong(
        ctx, (long long)ValkeyModule_CreateTimer(ctx, ms, expired, argv[2]));
}

static int stop(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long id;
    void *data = NULL;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &id))
        return ValkeyModule_WrongArity(ctx);
    int result = ValkeyModule_StopTimer(ctx, (ValkeyModuleTimerID)id, &data);
    if (result) return ValkeyModule_ReplyWithLongLong(ctx, result);
    ValkeyModule_ReplyWithString(ctx, data);
    ValkeyModule_FreeString(ctx, data);
    return VALKEYMODULE_OK;
}

static int info(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long id;
    uint64_t remaining;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &id))
        return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_GetTimerInfo(ctx, (ValkeyModuleTimerID)id, &remaining, NULL))
        return ValkeyModule_ReplyWithNull(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)remaining);
}

static void counted(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx;
    calls += *(int *)data;
}

static int one = 1;

static int many(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long count, ms, found = 0;
    if (argc != 3 || ValkeyModule_StringToLongLong(argv[1], &count) ||
        ValkeyModule_StringToLongLong(argv[2], &ms))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModuleTimerID *ids = ValkeyModule_Alloc((size_t)count * sizeof(*ids));
    for (long long i = 0; i < count; i++) ids[i] = ValkeyModule_CreateTimer(ctx, ms, counted, &one);
    for (long long i = 0; i < count; i += 2) ValkeyModule_StopTimer(ctx, ids[i], NULL);
    for (long long i = 0; i < count; i++)
        found += ValkeyModule_GetTimerInfo(ctx, ids[i], NULL, NULL) == VALKEYMODULE_OK;
    ValkeyModule_Free(ids);
    return ValkeyModule_ReplyWithLongLong(ctx, found);
}

static void readable(int fd, void *user_data, int mask) {
    char *text = user_data;
    size_t len = strlen(text);
    if (mask != VALKEYMODULE_EVENTLOOP_READABLE) return;
    ssize_t got = read(fd, text + len, sizeof(seen) - len - 1);
    if (got > 0) text[len + (size_t)got] = '\0';
    if (strchr(text, '.')) ValkeyModule_EventLoopDel(fd, VALKEYMODULE_EVENTLOOP_READABLE);
}

static int writePipe(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    size_t len;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    const char *text = ValkeyModule_StringPtrLen(argv[1], &len);
    return ValkeyModule_ReplyWithLongLong(ctx, write(ends[1], text, len));
}

static void ordered(void *user_data) { calls += *(int *)user_data; }

static void *order(void *arg) {
    for (int i = 0; i < 100; i++) ValkeyModule_EventLoopAddOneShot(ordered, arg);
    return NULL;
}

static int thread(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    pthread_t id;
    if (pthread_create(&id, NULL, order, &one))
        return ValkeyModule_ReplyWithError(ctx, "ERR no thread");
    pthread_join(id, NULL);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int replySeen(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithCString(ctx, seen);
    return ValkeyModule_ReplyWithLongLong(ctx, calls);
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"timers.create", create}, {"timers.stop", stop},      {"timers.info", info},
                {"timers.many", many},     {"timers.pipe", writePipe}, {"timers.thread", thread},
                {"timers.seen", replySeen}};

static int refuses(int fd, int mask, ValkeyModuleEventLoopFunc func, int expected) {
    errno = 0;
    return ValkeyModule_EventLoopAdd(fd, mask, func, NULL) == VALKEYMODULE_ERR && errno == expected;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "timers", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    if (!refuses(-1, VALKEYMODULE_EVENTLOOP_READABLE, readable, ERANGE) ||
        !refuses(0, 4, readable, EINVAL) ||
        !refuses(99999999, VALKEYMODULE_EVENTLOOP_READABLE, readable, ERANGE) ||
        !refuses(9999, VALKEYMODULE_EVENTLOOP_READABLE, readable, EBADF) ||
        ValkeyModule_EventLoopDel(99999999, VALKEYMODULE_EVENTLOOP_READABLE) != VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (pipe(ends)) return VALKEYMODULE_ERR;
    return ValkeyModule_EventLoopAdd(ends[0], VALKEYMODULE_EVENTLOOP_READABLE, readable, seen);
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    ValkeyModule_EventLoopAddOneShot(ordered, &one);
    if (ValkeyModule_EventLoopAdd(ends[0], VALKEYMODULE_EVENTLOOP_READABLE, readable, seen))
        return VALKEYMODULE_ERR;
    return write(ends[1], "x", 1) == 1 ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words of DEBUG that end the process, so that its reports and those who watch it can be tested.
 * Main thread only. */
#include <sys/mman.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

/* DEBUG SEGFAULT: writes where only reading is allowed. No null pointer, for compilers know those. */
void debugSegfault(ctx *c) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        replyError(c, SLICE("ERR no memory to write to"));
        return;
    }
    *(volatile char *)page = 1;
    replyOk(c); /* nobody comes here */
}

void debugPanic(ctx *c) {
    (void)c; /* there is nobody left to reply to */
    panic("DEBUG PANIC called at Unix time %lld", (long long)(clockWallMs() / 1000));
}

void debugAssert(ctx *c) {
    (void)c; /* the same */
    volatile int one = 1;
    check(one == 2);
}

/* DEBUG OOM: asks for more than any machine has. */
void debugOom(ctx *c) {
    volatile size_t size = (size_t)INT64_MAX;
    memFree(memAlloc(size));
    replyOk(c); /* nobody comes here */
}

/* DEBUG LEAK string: memory that is never freed, for those who test leak checkers. */
void debugLeak(ctx *c) {
    (void)memDup(c->argv[2].ptr, c->argv[2].len); /* that is the point */
    replyOk(c);
}

static void restart(ctx *c, bool graceful) {
    int64_t delay_ms = 0;
    if (c->argc > 2 && !ctxArgInt(c, 2, &delay_ms)) return;
    if (delay_ms < 0) delay_ms = 0;
    reason why = {""};
    /* It only returns when it was refused. */
    if (engineRestartAsk(graceful, delay_ms, &why) == OK) return;
    logWarning("%s", why.text);
    replyError(c, SLICE("ERR failed to restart the server. Check server logs."));
}

/* DEBUG RESTART [milliseconds]: in order. */
void debugRestart(ctx *c) { restart(c, true); }

/* DEBUG CRASH-AND-RECOVER [milliseconds]: without a word to anybody. */
void debugCrashAndRecover(ctx *c) { restart(c, false); }

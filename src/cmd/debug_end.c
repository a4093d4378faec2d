/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG subcommands that end the process, to test crash reports and supervision. Main thread
 * only. */
#include <sys/mman.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

/* DEBUG SEGFAULT: writes to a read-only page. Compilers could optimise a write through a null
 * pointer. */
void debugSegfault(ctx *c) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        replyError(c, SLICE("ERR no memory to write to"));
        return;
    }
    *(volatile char *)page = 1;
    replyOk(c); /* not reached */
}

void debugPanic(ctx *c) {
    (void)c; /* no reply, the process ends */
    panic("DEBUG PANIC called at Unix time %lld", (long long)(clockWallMs() / 1000));
}

void debugAssert(ctx *c) {
    (void)c; /* no reply, the process ends */
    volatile int one = 1;
    check(one == 2);
}

/* DEBUG OOM: allocates more than any machine has. */
void debugOom(ctx *c) {
    volatile size_t size = (size_t)INT64_MAX;
    memFree(memAlloc(size));
    replyOk(c); /* not reached */
}

/* DEBUG LEAK string: memory that is never freed, to test leak checkers. */
void debugLeak(ctx *c) {
    hotCheck(c->argc > 2);
    (void)memDup(c->argv[2].ptr, c->argv[2].len); /* leaked on purpose */
    replyOk(c);
}

static void restart(ctx *c, bool graceful) {
    int64_t delay_ms = 0;
    if (c->argc > 2 && !ctxArgInt(c, 2, &delay_ms)) return;
    if (delay_ms < 0) delay_ms = 0;
    reason why = {""};
    /* Returns only if the restart was refused. */
    if (engineRestart(graceful, delay_ms, &why) == OK) return;
    logWarning("%s", why.text);
    replyError(c, SLICE("ERR failed to restart the server. Check server logs."));
}

/* DEBUG RESTART [milliseconds]: after an orderly shutdown. */
void debugRestart(ctx *c) { restart(c, true); }

/* DEBUG CRASH-AND-RECOVER [milliseconds]: without a shutdown. */
void debugCrashAndRecover(ctx *c) { restart(c, false); }

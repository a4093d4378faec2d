/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses of listening sockets (accept_pause.h). Invariant: a listener in the list is not watched by
 * the loop; it is watched again when it leaves the list. */
#include "net/accept_pause.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

enum { PAUSED_MAX = 128, LOG_MS = 10 * 1000 };

typedef struct pausedListener {
    netAccepter from;
    uint64_t timer;
} pausedListener;

static pausedListener paused[PAUSED_MAX];
static int paused_count;

static void watchAgain(int i) {
    hotCheck(i < paused_count);
    netAccepter from = paused[i].from;
    paused[i] = paused[--paused_count];
    if (loopWatch(from.loop, from.fd, LOOP_READ, from.proc, from.arg) != OK) {
        netAcceptPause(&from, ACCEPT_RETRY_MS); /* there is no memory; later there may be */
        return;
    }
    if (from.has_priority) loopSetPriority(from.loop, from.fd, true);
}

static int64_t resume(loop *l, uint64_t id, void *arg) {
    (void)l, (void)arg;
    hotCheck(paused_count > 0);
    for (int i = 0; i < paused_count; i++) {
        if (paused[i].timer != id) continue;
        watchAgain(i);
        break;
    }
    return LOOP_TIMER_END;
}

void netAcceptPause(const netAccepter *from, int64_t ms) {
    hotCheck(threadIsMain());
    check(ms > 0);
    if (paused_count == PAUSED_MAX) return; /* more than can be configured */
    loopUnwatch(from->loop, from->fd, LOOP_READ);
    paused[paused_count++] = (pausedListener){*from, loopAddTimer(from->loop, ms, resume, NULL)};
}

void netAcceptFailed(const netAccepter *from) {
    static int64_t told_ms;
    int error = errno;
    if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return;
    if (logIsDue(&told_ms, clockMonoMs(), LOG_MS))
        logWarning("Accepting client connection: %s. No connections are accepted for %d ms.",
                   strerror(error), ACCEPT_RETRY_MS);
    netAcceptPause(from, ACCEPT_RETRY_MS);
}

void netAcceptForget(int fd) {
    hotCheck(threadIsMain());
    for (int i = 0; i < paused_count; i++) {
        if (paused[i].from.fd != fd) continue;
        loopRemoveTimer(paused[i].from.loop, paused[i].timer);
        paused[i] = paused[--paused_count];
        return;
    }
}

/* ------------------------------------------------------------------ rates */

enum { UNIT = 1000 };

static int64_t mostCredit(int64_t per_second) {
    int64_t tenth = per_second * (UNIT / 10);
    return tenth > UNIT ? tenth : UNIT;
}

int acceptRateAllows(acceptRate *r, int64_t per_second, int most, int64_t now_ms) {
    hotCheck(most > 0);
    if (likely(per_second <= 0)) return most;
    int64_t passed_ms = now_ms - r->at_ms, full = mostCredit(per_second);
    /* Not more than a second counts, so that nothing overflows. */
    if (passed_ms > 1000 || passed_ms < 0) passed_ms = 1000;
    r->credit += passed_ms * per_second;
    if (r->credit > full) r->credit = full;
    r->at_ms = now_ms;
    hotCheck(r->credit >= 0);
    int64_t allowed = r->credit / UNIT;
    hotCheck(allowed >= 0);
    return allowed < most ? (int)allowed : most;
}

void acceptRateTake(acceptRate *r, int64_t per_second) {
    if (likely(per_second <= 0)) return;
    hotCheck(r->credit >= UNIT);
    r->credit -= UNIT;
}

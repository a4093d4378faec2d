/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A limited rate: batches are due at constant intervals. Clients that are free wait in a list, in
 * the order in which they will send; the kernel's timer wakes the loop when the next batch is due,
 * and the first client sends it by the function that paceInit() was given.
 *
 * Open loop: a batch that is due while no client is free is sent by the next one that is, with the
 * time at which it was due, so nothing is omitted. Otherwise (--rps) what could not be sent in time
 * is not made up for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "tools/benchmark/run_priv.h"

enum { NS_PER_S = 1000000000, BEHIND_NS_MAX = 100000000 };

static void arm(const worker *w) {
    struct itimerspec at = {
        .it_value = {.tv_sec = w->pace.next_ns / NS_PER_S, .tv_nsec = w->pace.next_ns % NS_PER_S}};
    timerfd_settime(w->pace.timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* The time at which the batch sent now was due; the next one is due an interval later. */
static int64_t take(worker *w, int64_t now_ns) {
    pace *p = &w->pace;
    bool open = w->run->options->open_loop;
    if (!open && now_ns - p->next_ns > BEHIND_NS_MAX) p->next_ns = now_ns;
    int64_t due = p->next_ns;
    p->next_ns += p->interval_ns;
    return open ? due : now_ns;
}

static void timerExpired(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)mask;
    worker *w = arg;
    pace *p = &w->pace;
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN) return;
    while (p->idle) {
        int64_t now = clockMonoNs();
        if (p->next_ns > now) {
            arm(w);
            return;
        }
        client *c = paceRelease(w);
        p->send(c, take(w, now));
    }
}

bool paceInit(worker *w, double rate, paceSend *send) {
    pace *p = &w->pace;
    p->send = send;
    p->timer_fd = -1;
    p->idle_tail = &p->idle;
    if (rate <= 0) return true;
    const run *r = w->run;
    double batches = rate / r->batch / r->worker_count;
    p->interval_ns = (int64_t)(NS_PER_S / batches);
    if (p->interval_ns < 1) p->interval_ns = 1;
    /* Workers take turns. */
    p->next_ns = r->start_ns + p->interval_ns * w->index / r->worker_count;
    p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return p->timer_fd >= 0 && loopWatch(w->loop, p->timer_fd, LOOP_READ, timerExpired, w) == OK;
}

void paceClear(worker *w) {
    if (w->pace.timer_fd < 0) return;
    loopUnwatch(w->loop, w->pace.timer_fd, LOOP_READ);
    close(w->pace.timer_fd);
}

bool paceTake(client *c, int64_t now_ns, int64_t *start_ns) {
    worker *w = c->owner;
    pace *p = &w->pace;
    if (p->interval_ns == 0) {
        *start_ns = now_ns;
        return true;
    }
    if (!p->idle && p->next_ns <= now_ns) {
        *start_ns = take(w, now_ns);
        return true;
    }
    bool first = !p->idle;
    c->next_idle = NULL;
    *p->idle_tail = c;
    p->idle_tail = &c->next_idle;
    if (first) arm(w);
    return false;
}

client *paceRelease(worker *w) {
    pace *p = &w->pace;
    client *c = p->idle;
    if (!c) return NULL;
    check(c->owner == w);
    p->idle = c->next_idle;
    if (!p->idle) p->idle_tail = &p->idle;
    return c;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Worker threads. Invariant: external signals are blocked in every worker from its start, so only
 * the main thread handles them. ANY_THREAD; each `thread` is used by one thread at a time. */
#define _GNU_SOURCE
#include "io/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"

#define NAME_MAX_BYTES 16 /* limit of the kernel, including the NUL */

typedef struct threadStartArgs {
    char name[NAME_MAX_BYTES];
    char *cpus;
    void *(*proc)(void *);
    void *arg;
} threadStartArgs;

static void *trampoline(void *arg) {
    threadStartArgs *start = arg;
    threadSetWorker();
    threadSetName(start->name);
    if (!threadSetCpus(start->cpus))
        logWarning("Can't bind thread %s to the processors '%s'", start->name, start->cpus);
    void *(*proc)(void *) = start->proc;
    void *proc_arg = start->arg;
    memFree(start->cpus);
    memFree(start);
    return proc(proc_arg);
}

status threadStart(thread *t, const char *name, const char *cpus, void *(*proc)(void *), void *arg,
                   reason *why) {
    threadStartArgs *start = memNew(threadStartArgs);
    size_t len = sizeMin(strlen(name), sizeof(start->name) - 1);
    memcpy(start->name, name, len);
    start->cpus = memDup(cpus ? cpus : "", cpus ? strlen(cpus) : 0);
    start->proc = proc;
    start->arg = arg;
    /* Signals caused by the thread itself must reach the crash handler; SIGUSR2 requests a stack
     * trace. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGUSR2};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < COUNT_OF(own); i++) sigdelset(&all, own[i]);
    int failed = pthread_sigmask(SIG_SETMASK, &all, &before);
    check(failed == 0);
    failed = pthread_create(&t->id, NULL, trampoline, start);
    int restored = pthread_sigmask(SIG_SETMASK, &before, NULL);
    check(restored == 0);
    t->running = failed == 0;
    if (t->running) return OK;
    memFree(start->cpus);
    memFree(start);
    errno = failed;
    return reasonSetErrno(why, "can't start thread %s", name);
}

void threadJoin(thread *t) {
    if (!t->running) return;
    int failed = pthread_join(t->id, NULL);
    check(failed == 0);
    t->running = false;
}

void threadSetName(const char *name) {
    char cut[NAME_MAX_BYTES] = {0};
    memcpy(cut, name, sizeMin(strlen(name), sizeof(cut) - 1));
    /* The name is informational only, so failures are ignored. */
#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), cut);
#elif defined(__APPLE__)
    (void)pthread_setname_np(cut);
#endif
}

#ifdef __linux__
/* Parses digits; false if there are none or the number is not a valid CPU. */
static bool parseCpu(const char **text, int *out) {
    const char *p = *text;
    int value = 0;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value >= CPU_SETSIZE) return false;
    }
    *text = p;
    *out = value;
    return true;
}

/* Parses "first", "first-last" or "first-last:step" into `set`. */
static bool parseCpuRange(const char **text, cpu_set_t *set) {
    int first, last, step = 1;
    if (!parseCpu(text, &first)) return false;
    last = first;
    if (**text == '-') {
        (*text)++;
        if (!parseCpu(text, &last)) return false;
        if (**text == ':') {
            (*text)++;
            if (!parseCpu(text, &step)) return false;
        }
    }
    if (last < first || step == 0) return false;
    for (int cpu = first; cpu <= last; cpu += step) CPU_SET(cpu, set);
    return true;
}

bool threadSetCpus(const char *cpus) {
    if (!cpus || !*cpus) return true;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (;;) {
        if (!parseCpuRange(&cpus, &set)) return false;
        if (!*cpus) break;
        if (*cpus++ != ',') return false;
    }
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* The priority of a process is that of each single thread in Linux: sched(7), setpriority(2). */
void threadGiveWay(void) {
    enum { NICE = 10 };
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* it only matters where processors are scarce */
}
#else
void threadGiveWay(void) {}
bool threadSetCpus(const char *cpus) { return !cpus || !*cpus; }
#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stack traces of all threads. A thread that receives SIGUSR2 writes its frames to a shared slot,
 * which the reporting thread then prints. Threads are processed one after the other, so the slot
 * needs no lock.
 *
 * Invariant: `slot.tid` is the thread that may write to the slot, 0 if none. Called from signal
 * handlers: allocates nothing, except in opendir(). */
#include "server/trace.h"

#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "server/symbols.h"

enum { FRAMES_MAX = 100, TRACE_WAIT_US = 100 * 1000, LINE_BYTES = 1024 };

static struct {
    int tid; /* the thread being traced */
    int count;
    bool done, freeze;
    void *frames[FRAMES_MAX];
} slot;

int traceOwnTid(void) { return (int)syscall(SYS_gettid); }

/* `is_return`: a return address, which may be in the next function if the call never returns. */
static void printFrame(void *address, bool is_return) {
    char line[LINE_BYTES];
    symbol found;
    bool known = symbolFind((char *)address - is_return, &found);
    if (known && found.name) {
        snprintf(line, sizeof(line), "%s(%s+0x%zx) [%p]\n", found.object, found.name,
                 (size_t)((const char *)address - (const char *)found.start), address);
    } else if (known) {
        snprintf(line, sizeof(line), "%s(+0x%zx) [%p]\n", found.object,
                 (size_t)((const char *)address - (const char *)found.base), address);
    } else {
        snprintf(line, sizeof(line), "[%p]\n", address);
    }
    logRaw(line);
}

void tracePrint(const void *context) {
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX), first = 1;
    void *pc = context ? tracePc(context) : NULL;
    /* Frames above the interrupted instruction belong to our handler. */
    for (int i = 0; pc && i < count; i++) {
        if (frames[i] == pc) first = i;
    }
    if (pc && frames[first] != pc)
        printFrame(pc, false); /* a jump to an invalid address, unknown to the unwinder */
    for (int i = first; i < count; i++) printFrame(frames[i], frames[i] != pc);
}

/* ------------------------------------------------------------------ other threads */

static void onTraceRequest(int signal_number) {
    (void)signal_number; /* there is only one reason */
    if (__atomic_load_n(&slot.tid, __ATOMIC_ACQUIRE) != traceOwnTid()) return;
    slot.count = backtrace(slot.frames, FRAMES_MAX);
    bool freeze = slot.freeze;
    __atomic_store_n(&slot.done, true, __ATOMIC_RELEASE);
    if (freeze) traceFreeze();
}

void traceFreeze(void) {
    for (;;) pause();
}

void traceInit(const char *program) {
    void *frame;
    symbolsInit(program);
    (void)backtrace(&frame, 1); /* loads its library */
    struct sigaction action = {.sa_handler = onTraceRequest, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
}

static void printName(int tid) {
    char path[64], line[96];
    char name[32] = "\n";
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
    (void)fileReadText(path, name, sizeof(name)); /* "" if the thread has just ended */
    snprintf(line, sizeof(line), "\n%d %s", tid, name);
    logRaw(line);
}

static void printOther(int tid, bool freeze) {
    slot.done = false;
    slot.freeze = freeze;
    __atomic_store_n(&slot.tid, tid, __ATOMIC_RELEASE);
    printName(tid);
    int64_t end_us = clockMonoUs() + TRACE_WAIT_US;
    bool asked = syscall(SYS_tgkill, getpid(), tid, SIGUSR2) == 0;
    while (asked && !__atomic_load_n(&slot.done, __ATOMIC_ACQUIRE) && clockMonoUs() < end_us) {
        clockSleepUs(100);
    }
    bool done = __atomic_load_n(&slot.done, __ATOMIC_ACQUIRE);
    __atomic_store_n(&slot.tid, 0, __ATOMIC_RELEASE);
    if (!done) logRaw("(no response)\n");
    for (int i = 2; done && i < slot.count; i++) printFrame(slot.frames[i], i > 2);
}

/* An entry of a folder, as the kernel returns it: getdents64(2). */
typedef struct folderEntry {
    uint64_t inode;
    int64_t next;
    uint16_t len;
    uint8_t type;
    char name[];
} folderEntry;

/* Without opendir(), which allocates: the interrupted thread may be inside the allocator. */
void tracePrintOthers(bool freeze) {
    _Alignas(folderEntry) char buffer[4096];
    int fd = fileOpen("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return;
    for (long len; (len = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0;) {
        for (long at = 0; at < len;) {
            const folderEntry *entry = (const folderEntry *)(buffer + at);
            at += entry->len;
            int tid = (int)strtol(entry->name, NULL, 10);
            if (tid > 0 && tid != traceOwnTid()) printOther(tid, freeze);
        }
    }
    close(fd);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The crash report. Parts that depend on little of the process state (signal, trace, registers)
 * come first, those that walk its data structures (INFO, clients) later. A crash inside the report
 * prints a short report and ends the process.
 *
 * Invariants: only one thread reports; other threads that crash meanwhile wait forever. Users'
 * secrets are never printed, other user data only if hide-user-data-from-log is off. The signal
 * handlers call functions that are not async-signal-safe, since the process is going to end anyway.
 * If one waits for a lock that the crashed thread holds (the fault may be inside the allocator), an
 * alarm ends the report within a second; the trace, which needs none, is printed before. */
#define _GNU_SOURCE
#include "base/build_info.h"
#include "server/crash.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "io/file.h"
#include "net/net.h"
#include "server/memcheck.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "server/trace.h"

enum {
    REPORT_MS = 900,               /* limit for the report, which may hang */
    MEMCHECK_US = 5 * 1000 * 1000, /* limit for the memory test */
    ARGUMENTS_SHOWN = 32,
    ARGUMENT_BYTES_SHOWN = 128,
};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* The report runs on a stack of its own, because a stack overflow may be the cause. */
static char handler_stack[256 * 1024];
#endif

static struct {
    int tid;             /* the reporting thread */
    int signal_number;   /* that ends the process if the report hangs */
    bool report_written; /* the report is complete: the next signal only ends the process */
    bool is_nested;      /* crashed inside the report */
    volatile sig_atomic_t tests_memory;
    sigjmp_buf skip_region; /* jump back into the memory test from an inaccessible page */
} crash;

/* ------------------------------------------------------------------ start and end */

static void reportBegin(void) {
    logRaw("\n\n=== VALKEY BUG REPORT START: Cut & paste starting from here ===\n");
}

static void reportEnd(void) {
    logRaw("\n=== VALKEY BUG REPORT END. Make sure to include from START to END. ===\n\n"
           "       Please report the crash, including everything above.\n\n"
           "  Suspect RAM error? Use valkey-server --test-memory to verify it.\n\n"
           "  Some other issues could be detected by valkey-server --check-system\n");
    if (serverConf.daemonize && serverRunNow()->supervisor == SUPERVISED_NO) daemonRemovePidFile();
    crash.report_written = true;
}

/* Ends the process as the signal would have done by default. */
static void __attribute__((noreturn)) endBySignal(int signal_number) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(signal_number);
    _exit(1); /* not reached */
}

/* The report hangs: what is missing needs a lock that will never be free. */
static void onReportTimeout(int signal_number) {
    (void)signal_number;
    logRaw("\n------ THE REPORT HANGS: THE REST IS MISSING ------\n");
    reportEnd();
    endBySignal(crash.signal_number);
}

/* Sets or removes the limit of time of a report that `signal_number` ends. */
static void limitReport(int signal_number, int ms) {
    struct sigaction action = {.sa_handler = onReportTimeout};
    struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}};
    crash.signal_number = signal_number;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL); /* the time is valid */
}

/* ------------------------------------------------------------------ state of the process */

/* Commands whose arguments may contain secrets. */
static bool mayHoldSecrets(slice command_name) {
    static const char *const names[] = {"auth", "hello", "acl", "config", "migrate", "sentinel"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t len = strlen(names[i]);
        if (command_name.len < len || memcmp(command_name.ptr, names[i], len)) continue;
        if (command_name.len == len || command_name.ptr[len] == '|') return true;
    }
    return false;
}

static void appendArguments(const ctx *c, str *out) {
    bool hides = engineHidesUserData() || !c->cmd || mayHoldSecrets(c->cmd->name);
    strAppendFormat(out, "argc: %d\n", c->argc);
    for (int i = 0; i < c->argc && i < ARGUMENTS_SHOWN; i++) {
        if (i && hides) {
            strAppendFormat(out, "argv[%d]: %zu bytes\n", i, c->argv[i].len);
            continue;
        }
        strAppendFormat(out, "argv[%d]: ", i);
        strAppendQuoted(out,
                        sliceMake(c->argv[i].ptr, sizeMin(c->argv[i].len, ARGUMENT_BYTES_SHOWN)));
        strAppendByte(out, '\n');
    }
}

static void printCurrentClient(void) {
    const ctx *c = engineHot.current;
    if (!c) return;
    str out = STR_EMPTY;
    (void)netDescribeForLog(c->who, &out); /* sessions of scripts and loaders have no connection */
    strAppendByte(&out, '\n');
    appendArguments(c, &out);
    logRaw("\n------ CURRENT CLIENT INFO ------\n");
    logRaw(strText(&out));
    strFree(&out);
}

static void printClients(void) {
    str out = STR_EMPTY;
    netDescribeClients(INT_MAX, true, &out);
    logRaw("\n------ CLIENT LIST OUTPUT ------\n");
    logRaw(strText(&out));
    strFree(&out);
}

static void appendSection(const infoSection *section, void *arg) {
    str *out = arg;
    if (!section->when) return; /* printed on request only: it may walk the keyspace */
    if (!strstr(strText(out), section->title)) strAppendFormat(out, "\n%s\r\n", section->title);
    section->print(out);
}

static void printInfo(void) {
    str out = STR_EMPTY;
    hooksEachInfoSection(appendSection, &out);
    logRaw("\n------ INFO OUTPUT ------\n");
    logRaw(strText(&out));
    strFree(&out);
}

/* What they say is the likeliest part to crash, so that it comes late. */
static void printModules(void) {
    str out = STR_EMPTY;
    logRaw("\n------ MODULES INFO OUTPUT ------\n");
    hooksInfoMore(&out, NULL, 0, true, true);
    logRaw(strText(&out));
    strFree(&out);
}

static void printConfiguration(void) {
    str out = STR_EMPTY;
    configReport(&out);
    logRaw("\n------ CONFIG DEBUG OUTPUT ------\n");
    logRaw(strText(&out));
    strFree(&out);
}

/* ------------------------------------------------------------------ memory test */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The shadow memory of a sanitizer is too large to be tested. */
static void testMemory(void) { logRaw("\n------ FAST MEMORY TEST ------\nNot in this build.\n"); }
#else
/* True if the region contains the stack of the test itself. */
static bool containsOwnStack(uintptr_t from, uintptr_t to) {
    const void *const ours[] = {handler_stack, &crash, __builtin_frame_address(0),
                                (const void *)&errno};
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if ((uintptr_t)ours[i] >= from && (uintptr_t)ours[i] < to) return true;
    }
    return false;
}

/* Parses a line of /proc/self/maps; true for anonymous memory. */
static bool isTestable(const char *line, uintptr_t *from, uintptr_t *to) {
    unsigned long begin, end, inode;
    char mode[8];
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &begin, &end, mode, &inode) != 4) return false;
    *from = begin;
    *to = end;
    return !strncmp(mode, "rw-p", 4) && inode == 0 && !strstr(line, "[stack") &&
           !strstr(line, "[v") && !containsOwnStack(begin, end);
}

/* Tests one piece of a mapping. False: it has an inaccessible page. */
static bool testPiece(uintptr_t at, size_t size, size_t *errors) {
    hotCheck(size > 0);
    if (sigsetjmp(crash.skip_region, 1)) {
        crash.tests_memory = 0;
        return false;
    }
    crash.tests_memory = 1;
    *errors += memcheckRange((void *)at, size);
    crash.tests_memory = 0;
    return true;
}

static void testMemory(void) {
    logRaw("\n------ FAST MEMORY TEST ------\n");
    static char maps[64 * 1024]; /* read completely before the test, which may change them */
    if (fileReadText("/proc/self/maps", maps, sizeof(maps)) <= 0) return;
    size_t errors = 0, bytes = 0;
    int64_t end_us = clockMonoUs() + MEMCHECK_US;
    for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
        uintptr_t from, to;
        if (!isTestable(line, &from, &to)) continue;
        for (uintptr_t at = from; at < to && clockMonoUs() < end_us;) {
            size_t size = sizeMin(to - at, 1024 * 1024);
            if (!testPiece(at, size, &errors)) break;
            bytes += size;
            at += size;
        }
    }
    char text[128];
    snprintf(text, sizeof(text), "Tested %zu MB.\n", bytes >> 20);
    logRaw(text);
    logRaw(errors
               ? "!!! MEMORY ERROR DETECTED! Check your memory ASAP !!!\n"
               : "Fast memory test PASSED, however your memory can still be broken. Please run a "
                 "memory test for several hours if possible.\n");
}
#endif

/* ------------------------------------------------------------------ the report */

/* Stack traces and the state of the process. `context` is NULL for a failed check. */
static void printProcess(const void *context) {
    logRaw("\n------ STACK TRACE ------\n");
    tracePrint(context);
    tracePrintOthers(true);
    logRaw("\n------ STACK TRACE DONE ------\n");
    if (context) {
        logRaw("\n------ REGISTERS ------\n");
        tracePrintRegisters(context, !engineHidesUserData());
    }
    printInfo();
    printClients();
    printCurrentClient();
    printModules();
    printConfiguration();
}

static void printSignal(int signal_number, const siginfo_t *info, const void *context) {
    logWarning("valkey %s crashed by signal: %d, si_code: %d", SERVER_VERSION, signal_number,
               info->si_code);
    if (info->si_code > 0 && (signal_number == SIGSEGV || signal_number == SIGBUS))
        logWarning("Accessing address: %p", info->si_addr);
    if (info->si_code <= 0) {
        logWarning("Killed by PID: %ld, UID: %d", (long)info->si_pid, (int)info->si_uid);
    }
    if (tracePc(context)) logWarning("Crashed running the instruction at: %p", tracePc(context));
}

/* A crash inside the report: prints where it happened and ends the process. */
static void __attribute__((noreturn))
crashAgain(int signal_number, const siginfo_t *info, const void *context) {
    if (crash.is_nested) endBySignal(signal_number);
    crash.is_nested = true;
    logFromSignal(
        "Crashed running signal handler. Providing reduced version of recursive crash report.");
    printSignal(signal_number, info, context);
    logRaw("\n------ STACK TRACE ------\n");
    tracePrint(context);
    logRaw("\n------ STACK TRACE DONE ------\n");
    reportEnd();
    endBySignal(signal_number);
}

static void onCrash(int signal_number, siginfo_t *info, void *context) {
    if (crash.report_written) endBySignal(signal_number);
    int no_thread = 0, me = traceOwnTid();
    if (!__atomic_compare_exchange_n(&crash.tid, &no_thread, me, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (no_thread != me) traceFreeze();
        if (crash.tests_memory) {
            crash.tests_memory = 0;
            siglongjmp(crash.skip_region, 1);
        }
        crashAgain(signal_number, info, context);
    }
    limitReport(signal_number, REPORT_MS);
    reportBegin();
    printSignal(signal_number, info, context);
    printProcess(context);
    limitReport(signal_number, 0);
    if (serverConf.crash_memcheck_enabled) testMemory();
    logRaw("\n------ DUMPING CODE AROUND EIP ------\n");
    tracePrintCode(context);
    logRaw("------\n");
    reportEnd();
    endBySignal(signal_number);
}

/* ------------------------------------------------------------------ failed checks, panics, out of
 * memory */

static void onFailure(const char *what, const char *file, int line) {
    (void)what, (void)file, (void)line; /* already logged */
    crash.tid = traceOwnTid();
    if (serverConf.crash_log_enabled) {
        limitReport(SIGABRT, REPORT_MS);
        printProcess(NULL);
        limitReport(SIGABRT, 0);
    }
    reportEnd();
    if (serverConf.use_exit_on_panic) _exit(1);
}

static void onOutOfMemory(size_t size) {
    logWarning("Out Of Memory allocating %zu bytes!", size);
    panic("Valkey aborting for OUT OF MEMORY. Allocating %zu bytes!", size);
}

/* ------------------------------------------------------------------ handlers */

status crashApply(reason *why) {
    (void)why; /* cannot fail */
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_sigaction = onCrash,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    if (!serverConf.crash_log_enabled) action = (struct sigaction){.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < COUNT_OF(signals); i++) sigaction(signals[i], &action, NULL);
    return OK;
}

void crashInit(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* Sanitizers install and free a stack of their own. */
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
    if (sigaltstack(&stack, NULL)) logWarning("No stack for crash reports: %s", strerror(errno));
#endif
    assertSetProcs(reportBegin, onFailure);
    memSetOutOfMemoryProc(onOutOfMemory);
    traceInit(serverRunNow()->program);
    reason why;
    status st = crashApply(&why);
    check(st == OK);
}

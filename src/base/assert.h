/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Assertions on our own code. check() is active in production; hotCheck() is compiled in only in
 * debug, sanitizer, fuzz and hostile builds. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#include <stdbool.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Aborts with a crash report if `cond` is false. One condition per call. */
#define check(cond) (likely(cond) ? (void)0 : assertFailed(#cond, __FILE__, __LINE__))

#ifdef HOT_CHECKS
#define hotCheck(cond) check(cond)
#else
#define hotCheck(cond) ((void)sizeof(cond))
#endif

/* Where code runs: files that say "Main thread only" check it where another thread would do harm.
 * False in threads that have called threadSetWorker(); those of io/thread.h do. ANY_THREAD. */
bool threadIsMain(void);
void threadSetWorker(void);

/* Defined if a leak checker runs when the process exits. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAK_CHECKED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAK_CHECKED
#endif
#endif

/* Aborts with a crash report and a printf-like message. */
#define panic(...) panicAt(__FILE__, __LINE__, __VA_ARGS__)

/* Registers the functions called before the process aborts: `begin` (may be NULL) before the
 * failure is logged, `proc` after it. Called once, at startup. ANY_THREAD. */
typedef void assertProc(const char *what, const char *file, int line);
void assertSetProcs(void (*begin)(void), assertProc *proc);

void assertFailed(const char *cond, const char *file, int line) __attribute__((noreturn, cold));
void panicAt(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, cold, format(printf, 3, 4)));

#endif

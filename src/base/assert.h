/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of our own work. check() stays on in production; hotCheck() costs nothing in release
 * builds and is on in the debug, sanitizer, fuzz and hostile ones. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Stops with a report when `cond` is false. One condition each. */
#define check(cond) (likely(cond) ? (void)0 : assertFailed(#cond, __FILE__, __LINE__))

#ifdef HOT_CHECKS
#define hotCheck(cond) check(cond)
#else
#define hotCheck(cond) ((void)sizeof(cond))
#endif

/* Defined when a leak checker looks at the process's end. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAK_CHECKED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAK_CHECKED
#endif
#endif

/* Stops with a printf-like message. */
#define panic(...) panicAt(__FILE__, __LINE__, __VA_ARGS__)

/* Called on failure before the process aborts: `begin` (may be NULL) before the log is told, `proc` behind that.
 * Set once by the roof (crash report). ANY_THREAD. */
typedef void assertProc(const char *what, const char *file, int line);
void assertSetProcs(void (*begin)(void), assertProc *proc);

void assertFailed(const char *cond, const char *file, int line) __attribute__((noreturn, cold));
void panicAt(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, cold, format(printf, 3, 4)));

#endif

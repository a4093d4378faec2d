/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server's log: four levels, to a file or stdout and to syslog, in three line formats. Each
 * line is one write(2), so lines of several processes do not interleave. ANY_THREAD. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef enum logLevel { LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING, LOG_NOTHING } logLevel;
typedef enum logFormat { LOG_FORMAT_LEGACY, LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON } logFormat;
typedef enum logTime { LOG_TIME_LEGACY, LOG_TIME_ISO8601, LOG_TIME_MILLISECONDS } logTime;

/* Writes one line if `level` is at or above the configured level. */
#define logDebug(...) logAt(LOG_DEBUG, __VA_ARGS__)
#define logVerbose(...) logAt(LOG_VERBOSE, __VA_ARGS__)
#define logNotice(...) logAt(LOG_NOTICE, __VA_ARGS__)
#define logWarning(...) logAt(LOG_WARNING, __VA_ARGS__)

extern int logLevelNow; /* read by logAt() only; set with logSetLevel() */
#define logAt(level, ...) ((level) < logLevelNow ? (void)0 : logWrite((level), __VA_ARGS__))

void logWrite(logLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes `text` unchanged, without a prefix, to the file or stdout but not to syslog: logo, crash
 * report. Async-signal-safe. */
void logRaw(const char *text);

/* One line "pid:signal-handler (seconds) text". Async-signal-safe. */
void logFromSignal(const char *text);

/* For messages that may repeat often: true if `interval_ms` has passed since the last time, which
 * is then now. `last_ms` 0: never. */
static inline bool logIsDue(int64_t *last_ms, int64_t now_ms, int64_t interval_ms) {
    if (*last_ms && now_ms >= *last_ms && now_ms - *last_ms < interval_ms) return false;
    *last_ms = now_ms;
    return true;
}

void logSetLevel(logLevel level);
void logSetFormat(logFormat format);
void logSetTime(logTime time);
/* '' means stdout. The file is opened and appended to for each line, which allows log rotation.
 * Copies `path`. Call before threads start. */
void logSetFile(const char *path);
/* `facility` is N for syslog's localN, or -1 for "user". Call before threads start. */
void logSetSyslog(int enabled, const char *ident, int facility);
/* The role letter of the legacy format: M primary, S replica, C child process, X sentinel. */
void logSetRole(char role);

#endif

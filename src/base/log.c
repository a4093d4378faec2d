/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log. Invariant: a line is built completely on the stack and written with one write(2).
 *
 * Logging takes no lock and allocates nothing, so a child forked while another thread was logging
 * and the crash report can log. The setters are called before threads start, or on the main thread,
 * where a race can at worst affect one line. */
#include <syslog.h>

/* syslog.h defines the names of our levels; its values are kept under other names. */
enum {
    PRIORITY_DEBUG = LOG_DEBUG,
    PRIORITY_VERBOSE = LOG_INFO,
    PRIORITY_NOTICE = LOG_NOTICE,
    PRIORITY_WARNING = LOG_WARNING
};
#undef LOG_DEBUG
#undef LOG_NOTICE
#undef LOG_WARNING

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"

#define MESSAGE_MAX 1024 /* including the NUL; longer messages are truncated, as in Valkey */
#define LINE_MAX_BYTES (MESSAGE_MAX * 6 + 256) /* JSON can expand one byte to six */
#define OFFSET_UNKNOWN INT64_MIN
#define OFFSET_VALID_S 60

int logLevelNow = LOG_NOTICE;

static logFormat format_now = LOG_FORMAT_LEGACY;
static logTime time_now = LOG_TIME_LEGACY;
static char role_now = 'M';
/* Empty: stdout. A path that does not fit is truncated to one that the kernel rejects for its
 * length. */
static char file_path[PATH_MAX + 1];
static bool syslog_enabled;
static char syslog_ident[128];

/* Seconds east of UTC, and when that was determined. */
static int64_t offset_now = OFFSET_UNKNOWN;
static int64_t offset_asked_s;

void logSetLevel(logLevel level) { logLevelNow = (int)level; }

void logSetFormat(logFormat format) { format_now = format; }

void logSetTime(logTime time) { time_now = time; }

void logSetRole(char role) { role_now = role; }

void logSetFile(const char *path) { snprintf(file_path, sizeof(file_path), "%s", path); }

void logSetSyslog(int enabled, const char *ident, int facility) {
    if (syslog_enabled) closelog();
    syslog_enabled = enabled != 0;
    if (!syslog_enabled) return;
    snprintf(syslog_ident, sizeof(syslog_ident), "%s", ident);
    openlog(syslog_ident, LOG_PID | LOG_NDELAY | LOG_NOWAIT,
            facility < 0 ? LOG_USER : LOG_LOCAL0 + (facility << 3));
}

/* A full disk or a missing directory must not stop the server, and there is nowhere to report
 * it. */
static void emit(const char *bytes, size_t len) {
    int fd = STDOUT_FILENO;
    if (file_path[0]) {
        fd = open(file_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) return;
    }
    while (len) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        bytes += written;
        len -= (size_t)written;
    }
    if (fd != STDOUT_FILENO) close(fd);
}

/* Writes the decimal digits of `value` ending before `end`; returns their start. */
static char *putDigits(char *end, uint64_t value) {
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return end;
}

void logFromSignal(const char *text) {
    int saved = errno;
    char line[256], digits[24];
    char *end = digits + sizeof(digits);
    size_t len = 0;
    char *from = putDigits(end, (uint64_t)getpid());
    memcpy(line, from, (size_t)(end - from));
    len += (size_t)(end - from);
    memcpy(line + len, ":signal-handler (", 17);
    len += 17;
    from = putDigits(end, (uint64_t)time(NULL));
    memcpy(line + len, from, (size_t)(end - from));
    len += (size_t)(end - from);
    line[len++] = ')';
    line[len++] = ' ';
    size_t text_len = sizeMin(strlen(text), sizeof(line) - len - 1);
    memcpy(line + len, text, text_len);
    len += text_len;
    line[len++] = '\n';
    emit(line, len);
    errno = saved;
}

void logRaw(const char *text) {
    int saved = errno;
    emit(text, strlen(text));
    errno = saved;
}

/* localtime_r() takes a lock that can be locked forever in a forked child, so children (role C) use
 * the offset inherited from the parent. */
static int64_t zoneOffset(int64_t now_s) {
    int64_t offset = __atomic_load_n(&offset_now, __ATOMIC_RELAXED);
    int64_t asked_s = __atomic_load_n(&offset_asked_s, __ATOMIC_RELAXED);
    bool stale = offset == OFFSET_UNKNOWN || now_s < asked_s || now_s - asked_s >= OFFSET_VALID_S;
    if (!stale) return offset;
    if (role_now == 'C') return offset == OFFSET_UNKNOWN ? 0 : offset;
    time_t seconds = (time_t)now_s;
    struct tm local;
    if (!localtime_r(&seconds, &local)) return 0;
    offset = local.tm_gmtoff;
    __atomic_store_n(&offset_now, offset, __ATOMIC_RELAXED);
    __atomic_store_n(&offset_asked_s, now_s, __ATOMIC_RELAXED);
    return offset;
}

/* Converts days since 1970 to day, month and year. Years begin in March here: the leap day is then
 * the last day of a year, and the first day of a month is a linear function of the month number. */
static void civilDate(int64_t days, int *year, int *month, int *day) {
    days += 719468; /* from 0000-03-01 */
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t in_era = days - era * 146097;
    int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t from_march = (5 * in_year + 2) / 153;
    *day = (int)(in_year - (153 * from_march + 2) / 5 + 1);
    *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2));
    hotCheck(*month >= 1);
    hotCheck(*month <= 12);
    hotCheck(*day >= 1);
    hotCheck(*day <= 31);
}

static void printTime(char *dst, size_t cap) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now_ms = clockWallMs();
    if (time_now == LOG_TIME_MILLISECONDS) {
        snprintf(dst, cap, "%lld", (long long)now_ms);
        return;
    }
    int64_t offset = zoneOffset(now_ms / 1000);
    int64_t local_s = now_ms / 1000 + offset;
    int64_t days = local_s / 86400, second = local_s % 86400;
    int year, month, day;
    civilDate(days, &year, &month, &day);
    int h = (int)(second / 3600), m = (int)(second / 60 % 60), s = (int)(second % 60);
    int ms = (int)(now_ms % 1000);
    if (time_now == LOG_TIME_LEGACY) {
        snprintf(dst, cap, "%02d %.3s %04d %02d:%02d:%02d.%03d", day, months + 3 * (month - 1),
                 year, h, m, s, ms);
    } else {
        int64_t minutes = (offset < 0 ? -offset : offset) / 60;
        snprintf(dst, cap, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%c%02d:%02d", year, month, day, h, m,
                 s, ms, offset < 0 ? '-' : '+', (int)(minutes / 60), (int)(minutes % 60));
    }
}

static const char *roleWord(void) {
    switch (role_now) {
    case 'X': return "sentinel";
    case 'C': return "RDB/AOF";
    case 'S': return "replica";
    default: return "primary";
    }
}

static const char *levelWord(logLevel level) {
    hotCheck(level >= LOG_DEBUG);
    hotCheck(level <= LOG_WARNING);
    static const char *const words[] = {"debug", "verbose", "notice", "warning"};
    return words[level];
}

/* Writes `c` as it appears inside a JSON string; returns the bytes written, at most six. */
static size_t putJsonChar(char *dst, char c) {
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf", hex[] = "0123456789abcdef";
    const char *special = strchr(from, c);
    if (special) {
        dst[0] = '\\';
        dst[1] = to[special - from];
        return 2;
    }
    uint8_t byte = (uint8_t)c;
    if (byte >= 0x20) {
        *dst = c;
        return 1;
    }
    memcpy(dst, "\\u00", 4);
    dst[4] = hex[byte >> 4];
    dst[5] = hex[byte & 15];
    return 6;
}

/* Writes the message, escaped as the line format requires; returns the bytes written. */
static size_t putMessage(char *dst, const char *message) {
    char *p = dst;
    for (; *message; message++) {
        char c = *message;
        if (format_now == LOG_FORMAT_JSON) {
            p += putJsonChar(p, c);
        } else if (format_now == LOG_FORMAT_LOGFMT) {
            *p++ = c == '"' ? '\'' : c == '\n' || c == '\r' ? ' ' : c;
        } else {
            *p++ = c;
        }
    }
    return (size_t)(p - dst);
}

static void writeLine(logLevel level, const char *message) {
    static const char marks[] = ".-*#";
    char line[LINE_MAX_BYTES];
    char when[64];
    printTime(when, sizeof(when));
    int pid = (int)getpid();
    const char *tail = "\n";
    int head = 0;
    switch (format_now) {
    case LOG_FORMAT_LEGACY:
        head = snprintf(line, sizeof(line), "%d:%c %s %c ", pid, role_now, when, marks[level]);
        break;
    case LOG_FORMAT_LOGFMT:
        head = snprintf(line, sizeof(line), "pid=%d role=%s timestamp=\"%s\" level=%s message=\"",
                        pid, roleWord(), when, levelWord(level));
        tail = "\"\n";
        break;
    case LOG_FORMAT_JSON:
        head = snprintf(line, sizeof(line),
                        "{\"pid\":%d,\"role\":\"%s\",\"timestamp\":\"%s\",\"level\":\"%s\","
                        "\"message\":\"",
                        pid, roleWord(), when, levelWord(level));
        tail = "\"}\n";
        break;
    }
    check(head > 0);
    size_t len = (size_t)head;
    len += putMessage(line + len, message);
    size_t tail_len = strlen(tail);
    check(len + tail_len <= sizeof(line));
    memcpy(line + len, tail, tail_len);
    emit(line, len + tail_len);
}

void logWrite(logLevel level, const char *format, ...) {
    static const int priorities[] = {PRIORITY_DEBUG, PRIORITY_VERBOSE, PRIORITY_NOTICE,
                                     PRIORITY_WARNING};
    if (level < LOG_DEBUG || level > LOG_WARNING) return;
    int saved = errno;
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (len >= 0) {
        writeLine(level, message);
        if (syslog_enabled) syslog(priorities[level], "%s", message);
    }
    errno = saved;
}

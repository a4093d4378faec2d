/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: the log, clocks, random bytes. ANY_THREAD. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "module/context.h"
#include "module/generated/api.h"

static logLevel levelOf(const char *name) {
    slice word = sliceOf(name ? name : "");
    if (sliceIs(word, "debug")) return LOG_DEBUG;
    if (sliceIs(word, "notice")) return LOG_NOTICE;
    if (sliceIs(word, "warning")) return LOG_WARNING;
    return LOG_VERBOSE;
}

static void logLine(const module *m, const char *level_name, const char *format, va_list args) {
    logLevel level = levelOf(level_name);
    if ((int)level < logLevelNow) return;
    str text = STR_EMPTY;
    strAppendFormatV(&text, format, args);
    logWrite(level, "<%s> %s", m ? m->name : "module", strText(&text));
    strFree(&text);
}

void apiLog(ValkeyModuleCtx *ctx, const char *level, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    logLine(ctx ? ctx->module : NULL, level, fmt, args);
    va_end(args);
}

void apiAssert(const char *estr, const char *file, int line) { assertFailed(estr, file, line); }

mstime_t apiMilliseconds(void) { return clockWallMs(); }
ustime_t apiMicroseconds(void) { return clockWallUs(); }
uint64_t apiMonotonicMicroseconds(void) { return (uint64_t)clockMonoUs(); }
ustime_t apiCachedMicroseconds(void) { return (ustime_t)engineHot.now_ms * 1000; }

/* Names of events live as long as the server. */
void apiLatencyAddSample(const char *event, mstime_t latency) {
    slice name = sliceOf(event);
    const latencyEvent *known = latencyFind(name);
    latencyNote(known ? known->name : memDup(name.ptr, name.len), latency);
}

void apiGetRandomBytes(unsigned char *dst, size_t len) { randomSecret(dst, len); }
void apiGetRandomHexChars(char *dst, size_t len) { randomHex(dst, len); }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: replies. A context that nobody reads from, such as that of a timer, has no
 * output: its functions succeed and do nothing. */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/reply.h"
#include "engine/stats.h"
#include "module/block_client.h"
#include "module/context.h"
#include "module/generated/api.h"

/* Where the items of a reply go; NULL: nowhere. */
static inline outbuf *outOf(ValkeyModuleCtx *x) { return x->out; }

int apiWrongArity(ValkeyModuleCtx *ctx) {
    if (ctx->run && ctx->run->cmd) replyErrorArity(ctx->run);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ errors */

/* Its first word is counted; one without a blank counts as ERR. The errors of a thread are counted
 * when the client gets them. */
void contextNoteError(ValkeyModuleCtx *x, slice text, bool counted) {
    const char *blank = memchr(text.ptr, ' ', text.len);
    slice code = blank ? sliceMake(text.ptr, (size_t)(blank - text.ptr)) : SLICE("ERR");
    if (x->run && x->run->out == x->out) {
        if (!counted) statsCountError(code);
        x->run->flags |= CTX_FAILED;
    } else if (x->flags & CONTEXT_THREAD) {
        blockClientNoteError(x->blocked, code);
    }
}

/* The text is sent as it is. */
static void replyText(ValkeyModuleCtx *x, slice text) {
    if (!outOf(x)) return;
    contextNoteError(x, text, false);
    respError(x->out, text);
}

int apiReplyWithError(ValkeyModuleCtx *ctx, const char *err) {
    replyText(ctx, sliceOf(err));
    return VALKEYMODULE_OK;
}

int apiReplyWithErrorFormat(ValkeyModuleCtx *ctx, const char *fmt, ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, fmt);
    strAppendFormatV(&text, fmt, args);
    va_end(args);
    replyText(ctx, strSlice(&text));
    strFree(&text);
    return VALKEYMODULE_OK;
}

int apiReplyWithCustomErrorFormat(ValkeyModuleCtx *ctx, int update_error_stats, const char *fmt,
                                  ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, fmt);
    strAppendFormatV(&text, fmt, args);
    va_end(args);
    if (update_error_stats) {
        replyText(ctx, strSlice(&text));
    } else if (outOf(ctx)) {
        respError(outOf(ctx), strSlice(&text));
    }
    strFree(&text);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ single items */

int apiReplyWithSimpleString(ValkeyModuleCtx *ctx, const char *msg) {
    if (outOf(ctx)) respStatus(outOf(ctx), sliceOf(msg));
    return VALKEYMODULE_OK;
}

int apiReplyWithLongLong(ValkeyModuleCtx *ctx, long long ll) {
    if (outOf(ctx)) respInteger(outOf(ctx), ll);
    return VALKEYMODULE_OK;
}

int apiReplyWithStringBuffer(ValkeyModuleCtx *ctx, const char *buf, size_t len) {
    if (outOf(ctx)) respBulk(outOf(ctx), sliceMake(buf, len));
    return VALKEYMODULE_OK;
}

int apiReplyWithCString(ValkeyModuleCtx *ctx, const char *buf) {
    return apiReplyWithStringBuffer(ctx, buf, strlen(buf));
}

int apiReplyWithString(ValkeyModuleCtx *ctx, ValkeyModuleString *str) {
    if (outOf(ctx)) respBulk(outOf(ctx), moduleStringSlice(str));
    return VALKEYMODULE_OK;
}

int apiReplyWithEmptyString(ValkeyModuleCtx *ctx) { return apiReplyWithStringBuffer(ctx, "", 0); }

int apiReplyWithVerbatimStringType(ValkeyModuleCtx *ctx, const char *buf, size_t len,
                                   const char *ext) {
    char format[4] = "txt";
    if (ext) snprintf(format, sizeof(format), "%-3.3s", ext);
    if (outOf(ctx)) respVerbatim(outOf(ctx), ctx->proto, sliceMake(buf, len), format);
    return VALKEYMODULE_OK;
}

int apiReplyWithVerbatimString(ValkeyModuleCtx *ctx, const char *buf, size_t len) {
    return apiReplyWithVerbatimStringType(ctx, buf, len, "txt");
}

int apiReplyWithNull(ValkeyModuleCtx *ctx) {
    if (outOf(ctx)) respNull(outOf(ctx), ctx->proto);
    return VALKEYMODULE_OK;
}

int apiReplyWithBool(ValkeyModuleCtx *ctx, int b) {
    if (outOf(ctx)) respBool(outOf(ctx), ctx->proto, b != 0);
    return VALKEYMODULE_OK;
}

int apiReplyWithDouble(ValkeyModuleCtx *ctx, double d) {
    if (outOf(ctx)) respDouble(outOf(ctx), ctx->proto, d);
    return VALKEYMODULE_OK;
}

int apiReplyWithBigNumber(ValkeyModuleCtx *ctx, const char *bignum, size_t len) {
    if (outOf(ctx)) respBigNumber(outOf(ctx), ctx->proto, sliceMake(bignum, len));
    return VALKEYMODULE_OK;
}

int apiReplyWithLongDouble(ValkeyModuleCtx *ctx, long double d) {
    char text[LONG_DOUBLE_TEXT_MAX];
    size_t len = numberPrintLongDouble(text, d);
    if (outOf(ctx)) respDoubleText(outOf(ctx), ctx->proto, sliceMake(text, len));
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ containers */

/* Begins one whose length is to come. */
static void postpone(ValkeyModuleCtx *x) {
    if (x->postponed_count == x->postponed_max) {
        x->postponed_max = x->postponed_max ? x->postponed_max * 2 : 8;
        x->postponed = memRealloc(x->postponed, (size_t)x->postponed_max * sizeof(*x->postponed));
    }
    hotCheck(x->out);
    if (!x->postponed_count) x->postponed_from = outbufMark(x->out).at;
    x->postponed[x->postponed_count++] = respDeferBegin(x->out);
}

/* Begins a container of `len` items or pairs. */
static int beginContainer(ValkeyModuleCtx *x, char kind, long len) {
    outbuf *out = outOf(x);
    if (!out) return VALKEYMODULE_OK;
    if (len == VALKEYMODULE_POSTPONED_LEN) {
        postpone(x);
    } else if (kind == '*') {
        respArray(out, len);
    } else if (kind == '%') {
        respMap(out, x->proto, len);
    } else if (kind == '~') {
        respSet(out, x->proto, len);
    } else {
        hotCheck(kind == '|');
        respAttribute(out, x->proto, len);
    }
    return VALKEYMODULE_OK;
}

/* Ends the latest one that was begun without a length. */
static void endContainer(ValkeyModuleCtx *x, char kind, long len) {
    hotCheck(strchr("*%~|>", kind));
    if (!outOf(x)) return;
    if (!x->postponed_count) {
        contextMisuse(x, "ValkeyModule_ReplySet*Length() called without previous "
                         "ValkeyModule_ReplyWith*(ctx,VALKEYMODULE_POSTPONED_LEN) call.");
        return;
    }
    respDeferEnd(x->out, x->postponed[--x->postponed_count], kind, x->proto, len);
}

int apiReplyWithArray(ValkeyModuleCtx *ctx, long len) { return beginContainer(ctx, '*', len); }
int apiReplyWithMap(ValkeyModuleCtx *ctx, long len) { return beginContainer(ctx, '%', len); }
int apiReplyWithSet(ValkeyModuleCtx *ctx, long len) { return beginContainer(ctx, '~', len); }

int apiReplyWithAttribute(ValkeyModuleCtx *ctx, long len) {
    if (ctx->proto < 3) return VALKEYMODULE_ERR;
    return beginContainer(ctx, '|', len);
}

int apiReplyWithNullArray(ValkeyModuleCtx *ctx) {
    if (outOf(ctx)) respNullArray(outOf(ctx), ctx->proto);
    return VALKEYMODULE_OK;
}

int apiReplyWithEmptyArray(ValkeyModuleCtx *ctx) { return beginContainer(ctx, '*', 0); }

void apiReplySetArrayLength(ValkeyModuleCtx *ctx, long len) { endContainer(ctx, '*', len); }
void apiReplySetMapLength(ValkeyModuleCtx *ctx, long len) { endContainer(ctx, '%', len); }
void apiReplySetSetLength(ValkeyModuleCtx *ctx, long len) { endContainer(ctx, '~', len); }
void apiReplySetPushLength(ValkeyModuleCtx *ctx, long len) { endContainer(ctx, '>', len); }

void apiReplySetAttributeLength(ValkeyModuleCtx *ctx, long len) {
    if (ctx->proto >= 3) endContainer(ctx, '|', len);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: strings. Strings without a context may be created by any thread. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "module/context.h"
#include "module/generated/api.h"

static ValkeyModuleString *made(ValkeyModuleCtx *x, ValkeyModuleString *s) {
    contextCollect(x, GARBAGE_STRING, s);
    return s;
}

static void freeCollected(ValkeyModuleCtx *x, void *what) {
    (void)x; /* strings know what they belong to */
    moduleStringRelease(what);
}

void moduleStringsStart(void) {
    contextSetFree(GARBAGE_STRING, freeCollected);
    argArraysStart();
}

ValkeyModuleString *apiCreateString(ValkeyModuleCtx *ctx, const char *ptr, size_t len) {
    return made(ctx, moduleStringNew(sliceMake(ptr ? ptr : "", ptr ? len : 0)));
}

ValkeyModuleString *apiCreateStringPrintf(ValkeyModuleCtx *ctx, const char *fmt, ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, fmt);
    strAppendFormatV(&text, fmt, args);
    va_end(args);
    return made(ctx, moduleStringNewTake(&text));
}

ValkeyModuleString *apiCreateStringFromLongLong(ValkeyModuleCtx *ctx, long long ll) {
    char digits[NUMBER_TEXT_MAX];
    return apiCreateString(ctx, digits, numberPrintInt(digits, ll));
}

ValkeyModuleString *apiCreateStringFromULongLong(ValkeyModuleCtx *ctx, unsigned long long ull) {
    char digits[NUMBER_TEXT_MAX];
    return apiCreateString(ctx, digits, numberPrintUint(digits, ull));
}

ValkeyModuleString *apiCreateStringFromDouble(ValkeyModuleCtx *ctx, double d) {
    char digits[NUMBER_TEXT_MAX];
    return apiCreateString(ctx, digits, numberPrintDouble(digits, d));
}

ValkeyModuleString *apiCreateStringFromLongDouble(ValkeyModuleCtx *ctx, long double ld,
                                                  int humanfriendly) {
    char digits[LONG_DOUBLE_TEXT_MAX];
    size_t len = humanfriendly || isinf(ld)
                     ? numberPrintLongDouble(digits, ld)
                     : (size_t)snprintf(digits, sizeof(digits), "%.17Lg", ld);
    return apiCreateString(ctx, digits, len);
}

ValkeyModuleString *apiCreateStringFromString(ValkeyModuleCtx *ctx, const ValkeyModuleString *str) {
    return made(ctx, moduleStringNew(moduleStringSlice(str)));
}

ValkeyModuleString *apiCreateStringFromStreamID(ValkeyModuleCtx *ctx,
                                                const ValkeyModuleStreamID *id) {
    str text = STR_EMPTY;
    strAppendFormat(&text, "%llu-%llu", (unsigned long long)id->ms, (unsigned long long)id->seq);
    return made(ctx, moduleStringNewTake(&text));
}

void apiFreeString(ValkeyModuleCtx *ctx, ValkeyModuleString *str) {
    if (!str) return;
    (void)contextForget(ctx, GARBAGE_STRING, str); /* it need not be there */
    moduleStringRelease(str);
}

void apiRetainString(ValkeyModuleCtx *ctx, ValkeyModuleString *str) {
    if (contextForget(ctx, GARBAGE_STRING, str)) return; /* it has become the module's */
    moduleStringKeep(str);
}

ValkeyModuleString *apiHoldString(ValkeyModuleCtx *ctx, ValkeyModuleString *str) {
    if (str->borrowed || str->array) return made(ctx, moduleStringNew(moduleStringSlice(str)));
    moduleStringKeep(str);
    return made(ctx, str);
}

const char *apiStringPtrLen(const ValkeyModuleString *str, size_t *len) {
    static const char none[] = "(NULL string reply referenced in module)";
    if (!str) {
        if (len) *len = sizeof(none) - 1;
        return none;
    }
    if (len) *len = str->bytes.len;
    return moduleStringText((ValkeyModuleString *)str); /* the bytes stay the same */
}

int apiStringToLongLong(const ValkeyModuleString *str, long long *ll) {
    int64_t value;
    if (!numberParseInt(moduleStringSlice(str), &value)) return VALKEYMODULE_ERR;
    *ll = value;
    return VALKEYMODULE_OK;
}

int apiStringToULongLong(const ValkeyModuleString *str, unsigned long long *ull) {
    uint64_t value;
    if (!numberParseUint(moduleStringSlice(str), &value)) return VALKEYMODULE_ERR;
    *ull = value;
    return VALKEYMODULE_OK;
}

int apiStringToDouble(const ValkeyModuleString *str, double *d) {
    return numberParseDouble(moduleStringSlice(str), d) ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int apiStringToLongDouble(const ValkeyModuleString *str, long double *d) {
    return numberParseLongDouble(moduleStringSlice(str), d) ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

/* `ms-seq`, or `ms` alone. */
static bool parseStreamId(slice text, ValkeyModuleStreamID *id) {
    const char *dash = memchr(text.ptr, '-', text.len);
    size_t at = dash ? (size_t)(dash - text.ptr) : text.len;
    uint64_t ms, seq = 0;
    if (!numberParseUint(sliceMake(text.ptr, at), &ms)) return false;
    if (dash && !numberParseUint(sliceMake(dash + 1, text.len - at - 1), &seq)) return false;
    *id = (ValkeyModuleStreamID){ms, seq};
    return true;
}

int apiStringToStreamID(const ValkeyModuleString *str, ValkeyModuleStreamID *id) {
    slice text = moduleStringSlice(str);
    if (sliceEqual(text, SLICE("-"))) {
        *id = (ValkeyModuleStreamID){0, 0};
    } else if (sliceEqual(text, SLICE("+"))) {
        *id = (ValkeyModuleStreamID){UINT64_MAX, UINT64_MAX};
    } else if (!parseStreamId(text, id)) {
        return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

int apiStringCompare(const ValkeyModuleString *a, const ValkeyModuleString *b) {
    return sliceCompare(moduleStringSlice(a), moduleStringSlice(b));
}

/* Makes room for an append, and for more of them, as in Valkey: TrimStringAllocation() gives it
 * back. */
static void reserveForAppends(str *s, size_t len) {
    enum { DOUBLED_MAX = 1 << 20 };
    if (s->cap - s->len >= len) return;
    size_t needed = s->len + len;
    (void)strReserve(s, len + (needed < DOUBLED_MAX ? needed : DOUBLED_MAX));
}

int apiStringAppendBuffer(ValkeyModuleCtx *ctx, ValkeyModuleString *str, const char *buf,
                          size_t len) {
    (void)ctx; /* the string stays what it belongs to */
    if (str->refs != 1) {
        logWarning("A module appended to a string that has several references");
        return VALKEYMODULE_ERR;
    }
    moduleStringOwn(str);
    reserveForAppends(&str->bytes, len);
    strAppend(&str->bytes, buf, len);
    return VALKEYMODULE_OK;
}

void apiTrimStringAllocation(ValkeyModuleString *str) {
    if (!str || str->borrowed || !str->bytes.ptr) return;
    str->bytes.ptr = memRealloc(str->bytes.ptr, str->bytes.len + 1);
    str->bytes.cap = str->bytes.len;
}

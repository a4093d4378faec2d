/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: adding sections to INFO, and reading INFO.
 *
 * Main thread only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/info.h"
#include "module/thread_lock.h"

/* ------------------------------------------------------------------ sections of modules */

struct ValkeyModuleInfoCtx {
    const module *of;
    str *out;
    const slice *names; /* that were asked for */
    int count;
    bool all;
    bool in_section, in_dict;
};

static bool isAsked(const ValkeyModuleInfoCtx *f, slice section) {
    if (f->all) return true;
    for (int i = 0; i < f->count; i++) {
        if (sliceIs(f->names[i], f->of->name) || sliceEqualFold(f->names[i], section)) return true;
    }
    return false;
}

int apiRegisterInfoFunc(ValkeyModuleCtx *ctx, ValkeyModuleInfoFunc cb) {
    if (!ctx->module) return VALKEYMODULE_ERR;
    ctx->module->info = cb;
    return VALKEYMODULE_OK;
}

int apiInfoEndDictField(ValkeyModuleInfoCtx *ctx) {
    if (!ctx->in_dict) return VALKEYMODULE_ERR;
    hotCheck(ctx->out->len > 0);
    if (ctx->out->ptr[ctx->out->len - 1] == ',') strCut(ctx->out, ctx->out->len - 1);
    strAppendText(ctx->out, "\r\n");
    ctx->in_dict = false;
    return VALKEYMODULE_OK;
}

int apiInfoAddSection(ValkeyModuleInfoCtx *ctx, const char *name) {
    (void)apiInfoEndDictField(ctx); /* one that was left open */
    str section = STR_EMPTY;
    strAppendText(&section, ctx->of->name);
    if (name && *name) strAppendFormat(&section, "_%s", name);
    ctx->in_section = isAsked(ctx, strSlice(&section));
    if (ctx->in_section) {
        if (ctx->out->len) strAppendText(ctx->out, "\r\n");
        strAppendFormat(ctx->out, "# %s\r\n", strText(&section));
    }
    strFree(&section);
    return ctx->in_section ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

/* Bytes that would end a name are replaced. */
static void appendName(str *out, const char *name) {
    for (const char *at = name; *at; at++) strAppendByte(out, strchr("#:\r\n,=", *at) ? '_' : *at);
}

int apiInfoBeginDictField(ValkeyModuleInfoCtx *ctx, const char *name) {
    if (!ctx->in_section || !name) return VALKEYMODULE_ERR;
    (void)apiInfoEndDictField(ctx);
    strAppendFormat(ctx->out, "%s_", ctx->of->name);
    appendName(ctx->out, name);
    strAppendByte(ctx->out, ':');
    ctx->in_dict = true;
    return VALKEYMODULE_OK;
}

static int addField(ValkeyModuleInfoCtx *f, const char *field, slice value) {
    if (!f->in_section || !field) return VALKEYMODULE_ERR;
    hotCheck(f->out);
    if (f->in_dict) {
        appendName(f->out, field);
        strAppendByte(f->out, '=');
        strAppendSlice(f->out, value);
        strAppendByte(f->out, ',');
    } else {
        strAppendFormat(f->out, "%s_%s:", f->of->name, field);
        strAppendSlice(f->out, value);
        strAppendText(f->out, "\r\n");
    }
    return VALKEYMODULE_OK;
}

int apiInfoAddFieldString(ValkeyModuleInfoCtx *ctx, const char *field, ValkeyModuleString *value) {
    return value ? addField(ctx, field, moduleStringSlice(value)) : VALKEYMODULE_ERR;
}

int apiInfoAddFieldCString(ValkeyModuleInfoCtx *ctx, const char *field, const char *value) {
    return value ? addField(ctx, field, sliceOf(value)) : VALKEYMODULE_ERR;
}

int apiInfoAddFieldDouble(ValkeyModuleInfoCtx *ctx, const char *field, double value) {
    char text[64];
    (void)snprintf(text, sizeof(text), "%.17g", value); /* it fits */
    return addField(ctx, field, sliceOf(text));
}

int apiInfoAddFieldLongLong(ValkeyModuleInfoCtx *ctx, const char *field, long long value) {
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", value);
    return addField(ctx, field, sliceOf(text));
}

int apiInfoAddFieldULongLong(ValkeyModuleInfoCtx *ctx, const char *field,
                             unsigned long long value) {
    char text[32];
    (void)snprintf(text, sizeof(text), "%llu", value);
    return addField(ctx, field, sliceOf(text));
}

void infoAppend(str *out, const slice *names, int count, bool all, bool crashed) {
    hotCheck(count >= 0);
    for (module *m = registryFirst(); m; m = registryNext(m)) {
        if (!m->info) continue;
        ValkeyModuleInfoCtx f = {.of = m, .out = out, .names = names, .count = count, .all = all};
        m->info(&f, crashed);
        (void)apiInfoEndDictField(&f); /* one that was left open */
    }
}

/* ------------------------------------------------------------------ reading INFO */

struct ValkeyModuleServerInfoData {
    str text; /* lines, each ended by a NUL */
};

static void freeInfo(ValkeyModuleCtx *ctx, void *what) {
    ValkeyModuleServerInfoData *data = what;
    (void)ctx; /* it was in its list, and is no more */
    strFree(&data->text);
    memFree(data);
}

void infosStart(void) {
    contextSetFree(GARBAGE_INFO, freeInfo);
    hooksSetInfoMore(infoAppend);
}

/* Of a thread whose information the main thread may be waiting for. */
enum { INFO_WAIT_MS = 10 * 1000 };

typedef struct infoRequest {
    const char *section; /* NULL: those of INFO without arguments */
    str *text;
} infoRequest;

static void readInfo(ValkeyModuleCtx *x, void *arg) {
    const infoRequest *q = arg;
    ValkeyModuleCallReply *reply =
        q->section ? apiCall(x, "INFO", "c", q->section) : apiCall(x, "INFO", "");
    size_t len = 0;
    const char *text = reply ? apiCallReplyStringPtr(reply, &len) : NULL;
    if (text) strAppend(q->text, text, len);
    if (reply) apiFreeCallReply(reply);
}

/* Without context, and by threads that have not got the lock: ANY_THREAD. */
ValkeyModuleServerInfoData *apiGetServerInfo(ValkeyModuleCtx *ctx, const char *section) {
    ValkeyModuleServerInfoData *data = memNew(ValkeyModuleServerInfoData);
    infoRequest request = {.section = section, .text = &data->text};
    if (ctx && ctx->run && threadLockIsMine()) {
        readInfo(ctx, &request);
    } else if (threadLockTakeWithin(INFO_WAIT_MS)) {
        contextRun(NULL, 0, readInfo, &request);
        (void)threadLockRelease(); /* it was taken */
    } else {
        logWarning("A module's thread has no information: the server was busy for %d s",
                   INFO_WAIT_MS / 1000);
    }
    for (size_t i = 0; i < data->text.len; i++) {
        if (data->text.ptr[i] == '\r' || data->text.ptr[i] == '\n') data->text.ptr[i] = '\0';
    }
    strAppendByte(&data->text, '\0');
    contextCollect(ctx, GARBAGE_INFO, data);
    return data;
}

void apiFreeServerInfo(ValkeyModuleCtx *ctx, ValkeyModuleServerInfoData *data) {
    if (!data) return;
    (void)contextForget(ctx, GARBAGE_INFO, data); /* it need not be there */
    freeInfo(ctx, data);
}

const char *apiServerInfoGetFieldC(ValkeyModuleServerInfoData *data, const char *field) {
    hotCheck(data->text.len > 0);
    size_t len = strlen(field);
    const char *end = data->text.ptr + data->text.len;
    for (const char *at = data->text.ptr; at < end; at += strlen(at) + 1) {
        if (!strncmp(at, field, len) && at[len] == ':') return at + len + 1;
    }
    return NULL;
}

ValkeyModuleString *apiServerInfoGetField(ValkeyModuleCtx *ctx, ValkeyModuleServerInfoData *data,
                                          const char *field) {
    const char *value = apiServerInfoGetFieldC(data, field);
    return value ? apiCreateString(ctx, value, strlen(value)) : NULL;
}

static void setError(int *out, bool failed) {
    if (out) *out = failed ? VALKEYMODULE_ERR : VALKEYMODULE_OK;
}

long long apiServerInfoGetFieldSigned(ValkeyModuleServerInfoData *data, const char *field,
                                      int *out_err) {
    const char *value = apiServerInfoGetFieldC(data, field);
    char *end = NULL;
    errno = 0;
    long long number = value ? strtoll(value, &end, 10) : 0;
    bool failed = !value || end == value || *end || errno;
    setError(out_err, failed);
    return failed ? 0 : number;
}

unsigned long long apiServerInfoGetFieldUnsigned(ValkeyModuleServerInfoData *data,
                                                 const char *field, int *out_err) {
    const char *value = apiServerInfoGetFieldC(data, field);
    char *end = NULL;
    errno = 0;
    unsigned long long number = value && *value != '-' ? strtoull(value, &end, 10) : 0;
    bool failed = !end || end == value || *end || errno;
    setError(out_err, failed);
    return failed ? 0 : number;
}

double apiServerInfoGetFieldDouble(ValkeyModuleServerInfoData *data, const char *field,
                                   int *out_err) {
    const char *value = apiServerInfoGetFieldC(data, field);
    char *end = NULL;
    double number = value ? strtod(value, &end) : 0;
    bool failed = !value || end == value || *end;
    setError(out_err, failed);
    return failed ? 0 : number;
}

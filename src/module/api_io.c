/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: reading and writing values in RDB files, payloads of DUMP, strings, and as
 * commands. After a failure further reads return nothing. If a module has not set the option that
 * it handles failures, the first one ends the server, because the module would use values that were
 * not read. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/command.h"
#include "format/aof_value.h"
#include "format/rdb_settings.h"
#include "module/call.h"
#include "module/generated/api.h"
#include "module/types.h"

void ioInit(ValkeyModuleIO *io, const ValkeyModuleType *t, const valuePlace *at) {
    hotCheck(t);
    hotCheck(!at || at->db_id >= -1);
    io->reader = NULL;
    io->writer = NULL;
    io->type = t;
    io->key = at ? moduleStringNew(at->key) : NULL;
    io->db_id = at ? at->db_id : -1;
    io->failed = io->has_context = false;
}

void ioClear(ValkeyModuleIO *io) {
    hotCheck(!io->reader || !io->writer);
    if (io->has_context) contextClear(&io->context);
    if (io->key) moduleStringRelease(io->key);
}

/* ------------------------------------------------------------------ values */

status ioRead(const moduleCodec *c, rdbReader *r, int version, const valuePlace *at, void **value) {
    ValkeyModuleIO io;
    ioInit(&io, typeOfCodec(c), at);
    io.reader = r;
    hotCheck(c->type == &io.type->type);
    *value = io.type->methods.rdb_load ? io.type->methods.rdb_load(&io, version) : NULL;
    status st = *value ? OK
                       : rdbReaderFail(r,
                                       "The RDB file contains module data for the module "
                                       "type '%s', that the responsible module is not able "
                                       "to load",
                                       io.type->name);
    ioClear(&io);
    return st;
}

void ioWrite(const moduleCodec *c, rdbWriter *w, const valuePlace *at, const void *value) {
    ValkeyModuleIO io;
    ioInit(&io, typeOfCodec(c), at);
    io.writer = w;
    hotCheck(c->type == &io.type->type);
    if (io.type->methods.rdb_save) io.type->methods.rdb_save(&io, (void *)value);
    ioClear(&io);
}

void ioWriteCommands(const moduleCodec *c, rdbWriter *w, const valuePlace *at, const void *value) {
    ValkeyModuleIO io;
    ioInit(&io, typeOfCodec(c), at);
    io.writer = w;
    hotCheck(io.key);
    io.type->methods.aof_rewrite(&io, io.key, (void *)value);
    ioClear(&io);
}

status ioReadAux(const moduleCodec *c, rdbReader *r, int version, int when) {
    ValkeyModuleIO io;
    ioInit(&io, typeOfCodec(c), NULL);
    io.reader = r;
    hotCheck(io.type->methods.aux_load);
    bool read = io.type->methods.aux_load(&io, version, when) == VALKEYMODULE_OK && !io.failed;
    ioClear(&io);
    return read ? OK : rdbReaderFail(r, "the module type %s cannot load its data", io.type->name);
}

void ioWriteAux(const moduleCodec *c, rdbWriter *w, int when) {
    ValkeyModuleIO io;
    ioInit(&io, typeOfCodec(c), NULL);
    io.writer = w;
    hotCheck(when == RDB_AUX_BEFORE || when == RDB_AUX_AFTER);
    const ValkeyModuleTypeMethods *m = &io.type->methods;
    (m->aux_save2 ? m->aux_save2 : m->aux_save)(&io, when);
    ioClear(&io);
}

ValkeyModuleString *apiSaveDataTypeToString(ValkeyModuleCtx *ctx, void *data,
                                            const ValkeyModuleType *mt) {
    str text = STR_EMPTY;
    rdbStrSink sink;
    rdbStrSinkInit(&sink, &text);
    rdbWriter w;
    rdbWriterInit(&w, &sink.sink, false, rdbCompressionOn());
    ioWrite(&mt->codec, &w, NULL, data);
    bool done = rdbWriterFlush(&w) == OK;
    rdbWriterClear(&w);
    ValkeyModuleString *s = done ? apiCreateString(ctx, text.ptr ? text.ptr : "", text.len) : NULL;
    strFree(&text);
    return s;
}

void *apiLoadDataTypeFromStringEncver(const ValkeyModuleString *str, const ValkeyModuleType *mt,
                                      int encver) {
    rdbSliceSource source;
    rdbSliceSourceInit(&source, moduleStringSlice(str));
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    void *value = NULL;
    bool read = ioRead(&mt->codec, &r, encver, NULL, &value) == OK;
    rdbReaderClear(&r);
    return read ? value : NULL;
}

void *apiLoadDataTypeFromString(const ValkeyModuleString *str, const ValkeyModuleType *mt) {
    return apiLoadDataTypeFromStringEncver(str, mt, 0);
}

/* ------------------------------------------------------------------ items */

/* True if the item was read. */
static bool wasRead(ValkeyModuleIO *io, status st) {
    if (st == OK) return true;
    hotCheck(io->reader);
    io->failed = true;
    if (io->type->owner->options & VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS) return false;
    panic("Error loading data from RDB (short read or EOF). Read performed by module '%s' about "
          "type '%s'.",
          io->type->owner->name, io->type->name);
}

static bool mayRead(const ValkeyModuleIO *io) { return io->reader && !io->failed; }

int apiIsIOError(ValkeyModuleIO *io) {
    return io->failed || (io->writer && rdbWriterStatus(io->writer) != OK);
}

void apiSaveUnsigned(ValkeyModuleIO *io, uint64_t value) {
    if (io->writer) rdbWriteModuleUnsigned(io->writer, value);
}

uint64_t apiLoadUnsigned(ValkeyModuleIO *io) {
    uint64_t v;
    return mayRead(io) && wasRead(io, rdbReadModuleUnsigned(io->reader, &v)) ? v : 0;
}

void apiSaveSigned(ValkeyModuleIO *io, int64_t value) {
    if (io->writer) rdbWriteModuleSigned(io->writer, value);
}

int64_t apiLoadSigned(ValkeyModuleIO *io) {
    int64_t v;
    return mayRead(io) && wasRead(io, rdbReadModuleSigned(io->reader, &v)) ? v : 0;
}

void apiSaveStringBuffer(ValkeyModuleIO *io, const char *str, size_t len) {
    if (io->writer) rdbWriteModuleString(io->writer, sliceMake(str, len));
}

void apiSaveString(ValkeyModuleIO *io, ValkeyModuleString *s) {
    slice text = moduleStringSlice(s);
    apiSaveStringBuffer(io, text.ptr, text.len);
}

static bool readText(ValkeyModuleIO *io, slice *text) {
    return mayRead(io) && wasRead(io, rdbReadModuleString(io->reader, text));
}

ValkeyModuleString *apiLoadString(ValkeyModuleIO *io) {
    slice text;
    return readText(io, &text) ? moduleStringNew(text) : NULL;
}

char *apiLoadStringBuffer(ValkeyModuleIO *io, size_t *lenptr) {
    slice text;
    if (!readText(io, &text)) return NULL;
    if (lenptr) *lenptr = text.len;
    char *copy = memAlloc(text.len ? text.len : 1);
    if (text.len) memcpy(copy, text.ptr, text.len);
    return copy;
}

void apiSaveDouble(ValkeyModuleIO *io, double value) {
    if (io->writer) rdbWriteModuleDouble(io->writer, value);
}

double apiLoadDouble(ValkeyModuleIO *io) {
    double v;
    return mayRead(io) && wasRead(io, rdbReadModuleDouble(io->reader, &v)) ? v : 0;
}

void apiSaveFloat(ValkeyModuleIO *io, float value) {
    if (io->writer) rdbWriteModuleFloat(io->writer, value);
}

float apiLoadFloat(ValkeyModuleIO *io) {
    float v;
    return mayRead(io) && wasRead(io, rdbReadModuleFloat(io->reader, &v)) ? v : 0;
}

void apiSaveLongDouble(ValkeyModuleIO *io, long double value) {
    char text[64];
    int len = snprintf(text, sizeof(text), "%La", value);
    hotCheck(len > 0);
    apiSaveStringBuffer(io, text, (size_t)len);
}

long double apiLoadLongDouble(ValkeyModuleIO *io) {
    slice text;
    char copy[64];
    if (!readText(io, &text) || text.len >= sizeof(copy)) return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return strtold(copy, NULL);
}

/* ------------------------------------------------------------------ others */

void apiEmitAOF(ValkeyModuleIO *io, const char *cmdname, const char *fmt, ...) {
    if (!io->writer || io->failed) return;
    callArgs args;
    va_list values;
    va_start(values, fmt);
    bool valid = callArgsTake(&args, cmdname, fmt, values);
    va_end(values);
    const char *wrong = NULL;
    if (!commandFind(sliceOf(cmdname))) {
        wrong = "tried to emit unknown command";
    } else if (!valid) {
        wrong = "uses a wrong format for the command";
    }
    if (wrong) {
        logWarning("Fatal: AOF method for module data type '%s' %s '%s'", io->type->name, wrong,
                   cmdname);
        rdbWriterFail(io->writer, "a module emits a command that cannot be run");
        io->failed = true;
    } else {
        aofWriteCommand(io->writer, args.argc, args.argv);
    }
    callArgsClear(&args);
}

void apiLogIOError(ValkeyModuleIO *io, const char *levelstr, const char *fmt, ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, fmt);
    strAppendFormatV(&text, fmt, args);
    va_end(args);
    apiLog(apiGetContextFromIO(io), levelstr, "%s", strText(&text));
    strFree(&text);
}

ValkeyModuleCtx *apiGetContextFromIO(ValkeyModuleIO *io) {
    hotCheck(io->type->owner);
    if (!io->has_context) contextInit(&io->context, io->type->owner, NULL);
    io->has_context = true;
    return &io->context;
}

const ValkeyModuleString *apiGetKeyNameFromIO(ValkeyModuleIO *io) { return io->key; }
int apiGetDbIdFromIO(ValkeyModuleIO *io) { return io->db_id; }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of modules (rdb_module.h). */
#include "format/rdb_module.h"

#include <string.h>

#include "base/base.h"
#include "format/rdb_format.h"

/* ------------------------------------------------------------------ skipping */

static status skipItem(rdbReader *r, uint64_t opcode) {
    uint64_t integer;
    char real[sizeof(double)];
    slice text;
    switch (opcode) {
    case RDB_MODULE_SIGNED:
    case RDB_MODULE_UNSIGNED: return rdbReadLength(r, &integer);
    case RDB_MODULE_FLOAT: return rdbReadBytes(r, real, sizeof(float));
    case RDB_MODULE_DOUBLE: return rdbReadBytes(r, real, sizeof(double));
    case RDB_MODULE_STRING: return rdbReadString(r, &text);
    default:
        return rdbReaderFail(r, "Invalid opcode %llu in module data", (unsigned long long)opcode);
    }
}

status rdbSkipModuleData(rdbReader *r) {
    for (;;) {
        uint64_t opcode;
        status st = rdbReadLength(r, &opcode);
        if (st != OK || opcode == RDB_MODULE_EOF) return st;
        st = skipItem(r, opcode);
        if (st != OK) return st;
    }
}

status rdbSkipModuleValue(rdbReader *r) {
    uint64_t id;
    status st = rdbReadLength(r, &id);
    return st == OK ? rdbSkipModuleData(r) : st;
}

/* ------------------------------------------------------------------ types */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum {
    VERSION_BITS = 10,
    CHARACTER_BITS = 6,
    NAME_LEN = RDB_MODULE_NAME_SIZE - 1,
    METADATA_NAME_LEN = RDB_METADATA_NAME_SIZE - 1,
    METADATA_VERSION_AND_FLAGS_BITS = 8,
};

static moduleCodec *registered;

/* Prints the lowest bits of `packed` as `len` characters and a NUL. */
static void unpackName(uint64_t packed, char *name, int len) {
    for (int i = len - 1; i >= 0; i--, packed >>= CHARACTER_BITS) name[i] = alphabet[packed & 63];
    name[len] = 0;
}

void rdbModuleName(uint64_t id, char name[RDB_MODULE_NAME_SIZE]) {
    unpackName(id >> VERSION_BITS, name, NAME_LEN);
}

void rdbMetadataName(uint32_t class, char name[RDB_METADATA_NAME_SIZE]) {
    unpackName(class >> METADATA_VERSION_AND_FLAGS_BITS, name, METADATA_NAME_LEN);
}

uint64_t rdbModuleId(slice name, int version) {
    if (name.len != NAME_LEN || version < 0 || version > RDB_MODULE_VERSION_MAX) return 0;
    uint64_t id = 0;
    for (size_t i = 0; i < name.len; i++) {
        const char *at = name.ptr[i] ? strchr(alphabet, name.ptr[i]) : NULL;
        if (!at) return 0;
        id = id << CHARACTER_BITS | (uint64_t)(at - alphabet);
    }
    return id << VERSION_BITS | (uint64_t)version;
}

static int versionOf(uint64_t id) { return (int)(id & RDB_MODULE_VERSION_MAX); }

/* The type that an id names, whichever version has written it. */
static const moduleCodec *findCodec(uint64_t id) {
    const moduleCodec *c = registered;
    while (c && c->id >> VERSION_BITS != id >> VERSION_BITS) c = c->next;
    return c;
}

bool rdbModuleIsLoaded(uint64_t id) { return findCodec(id) != NULL; }

status moduleCodecRegister(moduleCodec *c) {
    check(c->id != 0);
    check(c->read != NULL);
    check(c->write != NULL);
    if (findCodec(c->id)) return ERR_EXISTS;
    status st = moduleTypeRegister(c->type);
    if (st != OK) return st;
    c->type->codec = c;
    c->next = registered;
    registered = c;
    return OK;
}

status moduleCodecUnregister(moduleCodec *c) {
    status st = moduleTypeUnregister(c->type);
    if (st != OK) return st;
    moduleCodec **link = &registered;
    while (*link && *link != c) link = &(*link)->next;
    check(*link == c);
    *link = c->next;
    c->type->codec = NULL;
    return OK;
}

/* ------------------------------------------------------------------ items */

void rdbWriteModuleSigned(rdbWriter *w, int64_t v) { rdbWriteModuleUnsigned(w, (uint64_t)v); }

void rdbWriteModuleUnsigned(rdbWriter *w, uint64_t v) {
    rdbWriteLength(w, RDB_MODULE_UNSIGNED);
    rdbWriteLength(w, v);
}

void rdbWriteModuleFloat(rdbWriter *w, float v) {
    rdbWriteLength(w, RDB_MODULE_FLOAT);
    rdbWriteBytes(w, &v, sizeof(v));
}

void rdbWriteModuleDouble(rdbWriter *w, double v) {
    rdbWriteLength(w, RDB_MODULE_DOUBLE);
    rdbWriteDouble(w, v);
}

void rdbWriteModuleString(rdbWriter *w, slice text) {
    rdbWriteLength(w, RDB_MODULE_STRING);
    rdbWriteString(w, text);
}

/* Reads the opcode of an item. */
static status expectItem(rdbReader *r, uint64_t opcode) {
    uint64_t found;
    status st = rdbReadLength(r, &found);
    if (st != OK || found == opcode) return st;
    return rdbReaderFail(r, "Module data has an item of type %llu instead of %llu",
                         (unsigned long long)found, (unsigned long long)opcode);
}

status rdbReadModuleSigned(rdbReader *r, int64_t *out) {
    uint64_t bits;
    status st = rdbReadModuleUnsigned(r, &bits);
    if (st == OK) *out = (int64_t)bits;
    return st;
}

status rdbReadModuleUnsigned(rdbReader *r, uint64_t *out) {
    status st = expectItem(r, RDB_MODULE_UNSIGNED);
    return st == OK ? rdbReadLength(r, out) : st;
}

status rdbReadModuleFloat(rdbReader *r, float *out) {
    status st = expectItem(r, RDB_MODULE_FLOAT);
    return st == OK ? rdbReadBytes(r, out, sizeof(*out)) : st;
}

status rdbReadModuleDouble(rdbReader *r, double *out) {
    status st = expectItem(r, RDB_MODULE_DOUBLE);
    return st == OK ? rdbReadDouble(r, out) : st;
}

status rdbReadModuleString(rdbReader *r, slice *out) {
    status st = expectItem(r, RDB_MODULE_STRING);
    return st == OK ? rdbReadString(r, out) : st;
}

/* Reads the end mark; `what` is "module data" or "module AUX data". */
static status expectEnd(rdbReader *r, const char *what, const char *name) {
    uint64_t opcode;
    status st = rdbReadLength(r, &opcode);
    if (st != OK || opcode == RDB_MODULE_EOF) return st;
    return rdbReaderFail(r,
                         "The RDB file contains %s for the module '%s' that is not terminated by "
                         "the proper module value EOF marker",
                         what, name);
}

/* ------------------------------------------------------------------ values */

void rdbWriteModuleValue(rdbWriter *w, const robj *o) {
    const moduleValue *v = moduleValueOf(o);
    const moduleCodec *c = v->type->codec;
    valuePlace at = {w->db_id, objectKey(o)};
    if (!c) { /* a placeholder */
        rdbWriterFail(w, "the value of this key was skipped");
        return;
    }
    rdbWriteLength(w, c->id);
    c->write(c, w, &at, v->content);
    rdbWriteLength(w, RDB_MODULE_EOF);
}

status rdbReadModuleValue(rdbReader *r, uint64_t id, slice key, robj **out) {
    char name[RDB_MODULE_NAME_SIZE];
    void *content = NULL;
    *out = NULL;
    const moduleCodec *c = findCodec(id);
    rdbModuleName(id, name);
    if (!c) {
        (void)rdbReaderFail(
            r, "The RDB file contains module data I can't load: no matching module type '%s'",
            name);
        return ERR_NOT_FOUND;
    }
    valuePlace at = {r->db_id, key};
    status st = c->read(c, r, versionOf(id), &at, &content);
    if (st != OK) return st;
    *out = moduleObjectNew(key, c->type, content);
    return expectEnd(r, "module data", name);
}

/* ------------------------------------------------------------------ data outside of keys */

static void writeAuxHead(rdbWriter *w, const moduleCodec *c, int when) {
    rdbWriteByte(w, RDB_OP_MODULE_AUX);
    rdbWriteLength(w, c->id);
    rdbWriteModuleUnsigned(w, (uint64_t)when);
}

/* Writes the aux data of a type, if there are any. They are collected first, because a type may
 * write nothing. */
static void writeAuxIfAny(rdbWriter *w, const moduleCodec *c, int when) {
    str items = STR_EMPTY;
    rdbStrSink sink;
    rdbWriter own;
    rdbStrSinkInit(&sink, &items);
    rdbWriterInit(&own, &sink.sink, false, w->compress);
    c->write_aux(c, &own, when);
    status st = rdbWriterFlush(&own);
    check(st == OK); /* into memory */
    rdbWriterClear(&own);
    if (items.len) {
        writeAuxHead(w, c, when);
        rdbWriteBytes(w, items.ptr, items.len);
        rdbWriteLength(w, RDB_MODULE_EOF);
    }
    strFree(&items);
}

void rdbWriteModuleAux(rdbWriter *w, int when) {
    for (const moduleCodec *c = registered; c; c = c->next) {
        if (!(c->aux_when & (unsigned)when)) continue;
        if (c->aux_if_any) {
            writeAuxIfAny(w, c, when);
            continue;
        }
        writeAuxHead(w, c, when);
        c->write_aux(c, w, when);
        rdbWriteLength(w, RDB_MODULE_EOF);
    }
}

status rdbReadModuleAux(rdbReader *r, bool skips, char name[RDB_MODULE_NAME_SIZE], bool *skipped) {
    uint64_t id, opcode, when;
    status st = rdbReadLength(r, &id);
    if (st != OK) return st;
    rdbModuleName(id, name);
    const moduleCodec *c = findCodec(id);
    *skipped = skips || (!c && r->redis);
    if (!*skipped && !c) {
        return rdbReaderFail(
            r, "The RDB file contains AUX module data I can't load: no matching module '%s'", name);
    }
    st = rdbReadLength(r, &opcode);
    if (st == OK) st = rdbReadLength(r, &when);
    if (st != OK) return st;
    if (*skipped) return rdbSkipModuleData(r);
    if (opcode != RDB_MODULE_UNSIGNED) return rdbReaderFail(r, "bad when_opcode");
    if (!c->read_aux) {
        return rdbReaderFail(
            r,
            "The RDB file contains module AUX data, but the module '%s' doesn't seem to support "
            "that",
            name);
    }
    st = c->read_aux(c, r, versionOf(id), (int)when);
    return st == OK ? expectEnd(r, "module AUX data", name) : st;
}

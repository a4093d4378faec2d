/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: types of values, keys with such a value, and functions for the callbacks of
 * types. Of callbacks that exist in several forms the operations of `store` call the latest form
 * that the module has set. */
#include "module/types.h"

#include "base/base.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/placeholder.h"

static ValkeyModuleType *types; /* all of them */

static void placeBegin(ValkeyModuleKeyOptCtx *k, const valuePlace *from, const valuePlace *to) {
    *k = (ValkeyModuleKeyOptCtx){.from_db = -1, .to_db = -1};
    if (from) k->from = moduleStringNew(from->key);
    if (from) k->from_db = from->db_id;
    if (to) k->to = moduleStringNew(to->key);
    if (to) k->to_db = to->db_id;
}

static void placeEnd(ValkeyModuleKeyOptCtx *k) {
    hotCheck(k->from_db >= -1);
    hotCheck(k->to_db >= -1);
    if (k->from) moduleStringRelease(k->from);
    if (k->to) moduleStringRelease(k->to);
}

static const ValkeyModuleTypeMethods *methodsOf(const moduleType *t) {
    hotCheck(t->owner);
    return &((const ValkeyModuleType *)t->owner)->methods;
}

/* ------------------------------------------------------------------ operations */

static void freeValue(const moduleType *t, void *value) {
    if (methodsOf(t)->free) methodsOf(t)->free(value);
}

static void *copyValue(const moduleType *t, const valuePlace *from, const valuePlace *to,
                       void *value) {
    const ValkeyModuleTypeMethods *m = methodsOf(t);
    ValkeyModuleKeyOptCtx k;
    placeBegin(&k, from, to);
    hotCheck(m->copy || m->copy2);
    void *made = m->copy2 ? m->copy2(&k, value) : m->copy(k.from, k.to, value);
    placeEnd(&k);
    return made;
}

static size_t valueMemory(const moduleType *t, const valuePlace *at, const void *value,
                          size_t samples) {
    const ValkeyModuleTypeMethods *m = methodsOf(t);
    hotCheck(m->mem_usage || m->mem_usage2);
    if (!m->mem_usage2) return m->mem_usage(value);
    ValkeyModuleKeyOptCtx k;
    placeBegin(&k, at, NULL);
    size_t bytes = m->mem_usage2(&k, value, samples);
    placeEnd(&k);
    return bytes;
}

static size_t freeEffort(const moduleType *t, const valuePlace *at, const void *value) {
    const ValkeyModuleTypeMethods *m = methodsOf(t);
    ValkeyModuleKeyOptCtx k;
    placeBegin(&k, at, NULL);
    hotCheck(m->free_effort || m->free_effort2);
    size_t effort = m->free_effort2 ? m->free_effort2(&k, value) : m->free_effort(k.from, value);
    placeEnd(&k);
    return effort;
}

static void unlinkValue(const moduleType *t, const valuePlace *at, const void *value) {
    const ValkeyModuleTypeMethods *m = methodsOf(t);
    ValkeyModuleKeyOptCtx k;
    placeBegin(&k, at, NULL);
    hotCheck(m->unlink || m->unlink2);
    if (m->unlink2) {
        m->unlink2(&k, value);
    } else {
        m->unlink(k.from, value);
    }
    placeEnd(&k);
}

/* ------------------------------------------------------------------ registering */

/* The fields that a version of the methods has. */
static size_t methodsSize(uint64_t version) {
    static const size_t sizes[] = {
        0,
        offsetof(ValkeyModuleTypeMethods, aux_load),
        offsetof(ValkeyModuleTypeMethods, free_effort),
        offsetof(ValkeyModuleTypeMethods, mem_usage2),
        offsetof(ValkeyModuleTypeMethods, aux_save2),
        sizeof(ValkeyModuleTypeMethods),
    };
    return sizes[version < COUNT_OF(sizes) ? version : COUNT_OF(sizes) - 1];
}

static void setOperations(ValkeyModuleType *t) {
    const ValkeyModuleTypeMethods *m = &t->methods;
    hotCheck(m->version > 0);
    t->ops.free_value = freeValue;
    if (m->copy || m->copy2) t->ops.copy = copyValue;
    if (m->mem_usage || m->mem_usage2) t->ops.memory = valueMemory;
    if (m->free_effort || m->free_effort2) t->ops.free_effort = freeEffort;
    if (m->unlink || m->unlink2) t->ops.unlink = unlinkValue;
    if (m->defrag) t->ops.compact = defragValue;
    if (m->digest) t->ops.digest = digestOfModule;
    t->codec.read = ioRead;
    t->codec.write = ioWrite;
    if (m->aof_rewrite) t->codec.write_commands = ioWriteCommands;
    if (m->aux_load && (m->aux_save || m->aux_save2)) {
        t->codec.aux_when = (unsigned)m->aux_save_triggers;
        t->codec.aux_if_any = m->aux_save2 != NULL;
        t->codec.read_aux = ioReadAux;
        t->codec.write_aux = ioWriteAux;
    }
}

ValkeyModuleType *apiCreateDataType(ValkeyModuleCtx *ctx, const char *name, int encver,
                                    ValkeyModuleTypeMethods *typemethods) {
    uint64_t id = name ? rdbModuleId(sliceOf(name), encver) : 0;
    if (!ctx->module || !ctx->module->loading || !id || !typemethods || !typemethods->version)
        return NULL;
    ValkeyModuleType *t = memCalloc(1, sizeof(*t));
    hotCheck(strlen(name) == TYPE_NAME_LEN);
    memcpy(&t->methods, typemethods, methodsSize(typemethods->version));
    memcpy(t->name, name, TYPE_NAME_LEN);
    t->owner = ctx->module;
    t->type = (moduleType){.name = t->name, .ops = &t->ops, .owner = t};
    t->codec.id = id;
    t->codec.type = &t->type;
    setOperations(t);
    if (moduleCodecRegister(&t->codec) != OK) {
        memFree(t);
        return NULL;
    }
    t->next = types;
    types = t;
    return t;
}

bool typesExist(const module *m) {
    const ValkeyModuleType *t = types;
    while (t && t->owner != m) t = t->next;
    return t != NULL;
}

void typesRemove(module *m) {
    ValkeyModuleType **at = &types;
    while (*at) {
        ValkeyModuleType *t = *at;
        hotCheck(t->type.owner == t);
        if (t->owner != m || moduleCodecUnregister(&t->codec) != OK) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        memFree(t);
    }
}

int apiGetTypeMethodVersion(void) { return VALKEYMODULE_TYPE_METHOD_VERSION; }

/* ------------------------------------------------------------------ keys with such a value */

static moduleValue *valueOf(ValkeyModuleKey *k) {
    const robj *o = k ? keyObject(k) : NULL;
    bool is_module = o && objectType(o) == TYPE_MODULE && !objectIsPlaceholder(o);
    return is_module ? moduleValueOf(o) : NULL;
}

int apiModuleTypeSetValue(ValkeyModuleKey *key, ValkeyModuleType *mt, void *value) {
    if (!keyIsWritable(key) || key->iterator || !mt || !key->owner->run) return VALKEYMODULE_ERR;
    keyDelete(key, false);
    const robj *left = keyFind(key);
    check(!left);
    keyPlace(key, moduleObjectNew(keyName(key), &mt->type, value));
    return VALKEYMODULE_OK;
}

int apiModuleTypeReplaceValue(ValkeyModuleKey *key, ValkeyModuleType *mt, void *new_value,
                              void **old_value) {
    if (!keyIsWritable(key) || key->iterator || !mt) return VALKEYMODULE_ERR;
    robj *o = keyFind(key);
    if (!o || objectType(o) != TYPE_MODULE || moduleValueOf(o)->type != &mt->type)
        return VALKEYMODULE_ERR;
    if (old_value) *old_value = moduleValueOf(o)->content;
    moduleValueOf(o)->content = new_value;
    key->changed = true;
    return VALKEYMODULE_OK;
}

ValkeyModuleType *apiModuleTypeGetType(ValkeyModuleKey *key) {
    const moduleValue *v = valueOf(key);
    hotCheck(!v || v->type->owner);
    return v ? v->type->owner : NULL;
}

void *apiModuleTypeGetValue(ValkeyModuleKey *key) {
    const moduleValue *v = valueOf(key);
    return v ? v->content : NULL;
}

/* ------------------------------------------------------------------ what callbacks ask */

const ValkeyModuleString *apiGetKeyNameFromOptCtx(ValkeyModuleKeyOptCtx *ctx) { return ctx->from; }
const ValkeyModuleString *apiGetToKeyNameFromOptCtx(ValkeyModuleKeyOptCtx *ctx) { return ctx->to; }
int apiGetDbIdFromOptCtx(ValkeyModuleKeyOptCtx *ctx) { return ctx->from_db; }
int apiGetToDbIdFromOptCtx(ValkeyModuleKeyOptCtx *ctx) { return ctx->to_db; }

struct ValkeyModuleDigest {
    digest sequence, value;
    ValkeyModuleString *key;
    int db_id;
};

void digestOfModule(const moduleType *t, const valuePlace *at, const void *value, digest *to) {
    ValkeyModuleDigest d = {.db_id = at ? at->db_id : -1};
    if (at) d.key = moduleStringNew(at->key);
    hotCheck(methodsOf(t)->digest);
    methodsOf(t)->digest(&d, (void *)value);
    digestAddDigest(to, &d.value);
    if (d.key) moduleStringRelease(d.key);
}

void apiDigestAddStringBuffer(ValkeyModuleDigest *md, const char *ele, size_t len) {
    digestMix(&md->sequence, sliceMake(ele, len));
}

void apiDigestAddLongLong(ValkeyModuleDigest *md, long long ele) {
    char digits[NUMBER_TEXT_MAX];
    digestMix(&md->sequence, sliceMake(digits, numberPrintInt(digits, ele)));
}

void apiDigestEndSequence(ValkeyModuleDigest *md) {
    digestAddDigest(&md->value, &md->sequence);
    md->sequence = (digest){{0}};
}

const ValkeyModuleString *apiGetKeyNameFromDigest(ValkeyModuleDigest *dig) { return dig->key; }
int apiGetDbIdFromDigest(ValkeyModuleDigest *dig) { return dig->db_id; }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of value types. */
#include "store/type.h"
#include "store/placeholder.h"

#include "base/base.h"
#include "base/number.h"
#include "store/compressed.h"
#include "store/type_module.h"

static const typeOps *const types[TYPE_COUNT] = {
    [TYPE_STRING] = &stringOps, [TYPE_LIST] = &listOps,        [TYPE_SET] = &setOps,
    [TYPE_HASH] = &hashOps,     [TYPE_ZSET] = &zsetOps,        [TYPE_STREAM] = &streamOps,
    [TYPE_MODULE] = &moduleOps, [TYPE_PATHHASH] = &pathHashOps};
_Static_assert(TYPE_COUNT <= 8, "three bits in the header of an object");

const typeOps *typeOf(const robj *o) {
    const typeOps *ops = types[objectType(o)];
    check(ops != NULL);
    return ops;
}

size_t objectLength(const robj *o) {
    bool expands = unlikely(objectIsCompressed(o)) && objectType(o) != TYPE_STRING;
    return expands ? compressedLength(o) : typeOf(o)->length(o);
}

const char *objectEncoding(const robj *o) {
    bool is_string = objectType(o) == TYPE_STRING;
    if (likely(!objectIsCompressed(o)) || is_string) return typeOf(o)->encoding(o);
    return objectType(o) == TYPE_SET && compressedRead(o).raw ? "intset" : "listpack";
}

void objectDigestAt(const robj *o, int db_id, storeLook look, digest *out) {
    /* The numbers that all servers of this family use for types. */
    static const uint8_t numbers[] = {
        [TYPE_STRING] = 0, [TYPE_LIST] = 1,   [TYPE_SET] = 2,    [TYPE_ZSET] = 3,
        [TYPE_HASH] = 4,   [TYPE_STREAM] = 6, [TYPE_MODULE] = 5, [TYPE_PATHHASH] = 7};
    digestMixNumber(out, numbers[objectType(o)]);
    /* In memory of its own: the digest of a dataset visits all values in one command. */
    robj *plain = objectIsCompressed(o) ? compressedOpen(o) : NULL;
    typeOf(o)->digest(plain ? plain : o, db_id, look, out);
    if (plain) compressedClose(plain);
    if (objectHasExpire(o)) digestAdd(out, SLICE("!!expire!!"));
}

/* NULL: each value has a name of its own. */
static const char *const names[TYPE_COUNT] = {
    [TYPE_STRING] = "string",     [TYPE_LIST] = "list", [TYPE_SET] = "set",
    [TYPE_ZSET] = "zset",         [TYPE_HASH] = "hash", [TYPE_STREAM] = "stream",
    [TYPE_PATHHASH] = "pathhash",
};

const char *objectTypeName(const robj *o) {
    if (objectType(o) == TYPE_MODULE) return moduleValueOf(o)->type->name;
    return names[objectType(o)];
}

bool typeFind(slice name, typeFilter *out) {
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!names[i] || !sliceIs(name, names[i])) continue;
        *out = (typeFilter){.type = (valueType)i};
        return true;
    }
    *out = (typeFilter){.type = TYPE_MODULE, .module = moduleTypeFind(name)};
    if (!out->module) out->module = placeholderTypeFind(name);
    return out->module != NULL;
}

bool typeMatches(const typeFilter *f, const robj *o) {
    return objectType(o) == f->type && (!f->module || moduleValueOf(o)->type == f->module);
}

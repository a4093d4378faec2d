/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of value types. */
#include "store/type.h"

#include "base/base.h"
#include "base/number.h"

static const typeOps *const types[TYPE_COUNT] = {
    [TYPE_STRING] = &stringOps, [TYPE_LIST] = &listOps, [TYPE_SET] = &setOps,
    [TYPE_HASH] = &hashOps,     [TYPE_ZSET] = &zsetOps, [TYPE_STREAM] = &streamOps};

const typeOps *typeOf(const robj *o) {
    const typeOps *ops = types[objectType(o)];
    check(ops != NULL);
    return ops;
}

void objectDigest(const robj *o, storeLook look, digest *out) {
    /* The numbers that all servers of this family use for types. */
    static const uint8_t numbers[] = {[TYPE_STRING] = 0, [TYPE_LIST] = 1, [TYPE_SET] = 2,
                                      [TYPE_ZSET] = 3,   [TYPE_HASH] = 4, [TYPE_STREAM] = 6};
    digestMixNumber(out, numbers[objectType(o)]);
    typeOf(o)->digest(o, look, out);
    if (objectHasExpire(o)) digestAdd(out, SLICE("!!expire!!"));
}

static const char *const names[] = {
    [TYPE_STRING] = "string", [TYPE_LIST] = "list", [TYPE_SET] = "set",
    [TYPE_ZSET] = "zset",     [TYPE_HASH] = "hash", [TYPE_STREAM] = "stream",
};

const char *typeName(valueType type) {
    check(type < COUNT_OF(names));
    return names[type];
}

bool typeFind(slice name, valueType *out) {
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!sliceIs(name, names[i])) continue;
        *out = (valueType)i;
        return true;
    }
    return false;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keys with a hash. Fields and values are passed as variable arguments that
 * end with NULL. */
#include <errno.h>
#include <stdarg.h>

#include "base/base.h"
#include "engine/ctx.h"
#include "format/rdb_settings.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/type_hash.h"

/* The next field; false: there is none. */
static bool nextField(va_list args, bool is_text, slice *field) {
    void *arg = va_arg(args, void *);
    if (!arg) return false;
    *field = is_text ? sliceOf(arg) : moduleStringSlice(arg);
    return true;
}

static storeLook lookOf(const ValkeyModuleKey *k) { return k->owner->run->look; }

/* Sets or deletes one field; true if it counts. */
static bool setField(ValkeyModuleKey *k, int flags, slice field, ValkeyModuleString *value) {
    robj *o = keyFind(k);
    hotCheck(value);
    hotCheck(!o || objectType(o) == TYPE_HASH);
    size_t old_len;
    bool found = o && hashValueLength(o, field, lookOf(k), &old_len);
    if (found ? flags & VALKEYMODULE_HASH_NX : flags & VALKEYMODULE_HASH_XX) return false;
    if (value == VALKEYMODULE_HASH_DELETE) {
        if (!found) return false;
        bool deleted = hashDelete(&o, field, lookOf(k));
        hotCheck(deleted);
        keyPlace(k, o);
        if (!hashLength(o)) keyDelete(k, false);
        return true;
    }
    const packLimits *limits = &rdbLimitsNow()->hash;
    slice words[2] = {field, moduleStringSlice(value)};
    hashSetCounts counts; /* what was there is known */
    keyPlace(k, hashSetPairs(o, keyName(k), words, 2, lookAtAll(), limits, &counts));
    return found || flags & VALKEYMODULE_HASH_COUNT_ALL;
}

int apiHashSet(ValkeyModuleKey *key, int flags, ...) {
    int known = VALKEYMODULE_HASH_NX | VALKEYMODULE_HASH_XX | VALKEYMODULE_HASH_CFIELDS |
                VALKEYMODULE_HASH_COUNT_ALL;
    bool both = flags & VALKEYMODULE_HASH_NX && flags & VALKEYMODULE_HASH_XX;
    const robj *o = key ? keyValue(key) : NULL;
    int error = 0;
    if (!key || flags & ~known || both) {
        error = EINVAL;
    } else if (o && objectType(o) != TYPE_HASH) {
        error = ENOTSUP;
    } else if (!keyIsWritable(key) || !key->owner->run) {
        error = EBADF;
    }
    if (error) {
        errno = error;
        return 0;
    }
    int count = 0;
    va_list args;
    va_start(args, flags);
    slice field;
    while (nextField(args, flags & VALKEYMODULE_HASH_CFIELDS, &field)) {
        ValkeyModuleString *value = va_arg(args, ValkeyModuleString *);
        if (!value) break;
        count += setField(key, flags, field, value);
    }
    va_end(args);
    if (!count) errno = ENOENT;
    return count;
}

int apiHashSetStringRef(ValkeyModuleKey *key, ValkeyModuleString *field, const char *buf,
                        size_t len) {
    enum { NO_FIELD = -1 };
    if (!keyIsWritable(key) || !field || !buf || !key->owner->run) return VALKEYMODULE_ERR;
    robj *o = keyFind(key);
    if (!o || objectType(o) != TYPE_HASH) return VALKEYMODULE_ERR;
    if (!hashRefer(&o, moduleStringSlice(field), sliceMake(buf, len), lookOf(key))) return NO_FIELD;
    keyPlace(key, o);
    return VALKEYMODULE_OK;
}

/* The interface has the same number for yes and for an error. */
int apiHashHasStringRef(ValkeyModuleKey *key, ValkeyModuleString *field) {
    const robj *o = key ? keyValue(key) : NULL;
    if (!field || !o || objectType(o) != TYPE_HASH) return VALKEYMODULE_ERR;
    return hashRefers(o, moduleStringSlice(field), lookOf(key));
}

int apiHashGet(ValkeyModuleKey *key, int flags, ...) {
    const robj *o = key ? keyValue(key) : NULL;
    if (o && objectType(o) != TYPE_HASH) return VALKEYMODULE_ERR;
    va_list args;
    va_start(args, flags);
    slice field;
    while (nextField(args, flags & VALKEYMODULE_HASH_CFIELDS, &field)) {
        if (flags & VALKEYMODULE_HASH_EXISTS) {
            int *exists = va_arg(args, int *);
            size_t len;
            if (!exists) break;
            *exists = o && hashValueLength(o, field, lookOf(key), &len);
        } else {
            ValkeyModuleString **out = va_arg(args, ValkeyModuleString **);
            char digits[NUMBER_TEXT_MAX];
            slice value;
            if (!out) break;
            bool found = o && hashGet(o, field, lookOf(key), digits, &value);
            *out = found ? apiCreateString(key->owner, value.ptr, value.len) : NULL;
        }
    }
    va_end(args);
    return VALKEYMODULE_OK;
}

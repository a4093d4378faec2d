/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keys with a string. Text that is embedded in the object is read in place;
 * for writing it becomes raw text. */
#include "base/base.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/store.h"
#include "store/type_string.h"

enum { STRING_MAX = 512 << 20 };

int apiStringSet(ValkeyModuleKey *key, ValkeyModuleString *str) {
    if (!keyIsWritable(key) || key->iterator || !str) return VALKEYMODULE_ERR;
    robj *old = keyFind(key);
    if (!key->owner->run) return VALKEYMODULE_ERR;
    dbSetString(key->db, keyName(key), &key->at, old, moduleStringSlice(str), NULL,
                OBJECT_NO_EXPIRE);
    key->changed = true;
    keysMayHaveChanged();
    return VALKEYMODULE_OK;
}

/* The bytes of an existing string, which may be written. */
static char *writable(ValkeyModuleKey *k, size_t *len) {
    robj *o = keyFind(k);
    hotCheck(o);
    hotCheck(objectType(o) == TYPE_STRING);
    char *bytes;
    *len = stringLen(o);
    status st = stringStretch(&o, *len, &bytes);
    if (st != OK) return NULL;
    keyPlace(k, o);
    hotCheck(stringLen(keyObject(k)) == *len);
    return bytes;
}

char *apiStringDMA(ValkeyModuleKey *key, size_t *len, int mode) {
    static const char none[1] = "";
    *len = 0;
    if (!key) return NULL;
    const robj *o = keyObject(key);
    if (!o) return (char *)none;
    if (objectType(o) != TYPE_STRING) return NULL;
    if (mode & VALKEYMODULE_WRITE && keyIsWritable(key)) return writable(key, len);
    if (unlikely(objectIsCompressed(o))) o = keyPlain(key);
    slice text = objectText(o, key->digits);
    *len = text.len;
    return (char *)text.ptr;
}

/* Creates the key with zeros. */
static status create(ValkeyModuleKey *k, size_t len) {
    hotCheck(len > 0);
    robj *o;
    char *bytes;
    status st = stringNewRaw(keyName(k), len, &o, &bytes);
    if (st == OK) keyPlace(k, o);
    return st;
}

static status resize(ValkeyModuleKey *k, robj *o, size_t len) {
    hotCheck(objectType(o) == TYPE_STRING);
    char *bytes;
    size_t before = stringLen(o);
    status st = stringStretch(&o, before > len ? before : len, &bytes);
    if (st != OK) return st;
    if (len < before) stringCut(&o, len);
    hotCheck(stringLen(o) == len);
    keyPlace(k, o);
    return OK;
}

int apiStringTruncate(ValkeyModuleKey *key, size_t newlen) {
    if (!keyIsWritable(key) || newlen > STRING_MAX) return VALKEYMODULE_ERR;
    robj *o = keyFind(key);
    if (!key->owner->run || (o && objectType(o) != TYPE_STRING)) return VALKEYMODULE_ERR;
    if (!o && !newlen) return VALKEYMODULE_OK;
    status st = o ? resize(key, o, newlen) : create(key, newlen);
    return st == OK ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

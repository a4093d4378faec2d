/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keys with a list. Elements are addressed by their index. A function that
 * fails sets errno. */
#include <errno.h>

#include "base/base.h"
#include "format/rdb_settings.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "store/type_list.h"

static int failWith(int error) {
    hotCheck(error);
    errno = error;
    return VALKEYMODULE_ERR;
}

/* Returns the value of errno for a handle that cannot be used, else 0. *o: the list, or NULL if
 * there is no key. */
static int listOf(ValkeyModuleKey *k, int mode, robj **o) {
    if (!k) return EINVAL;
    *o = mode & VALKEYMODULE_WRITE && keyIsWritable(k) ? keyFind(k) : keyValue(k);
    if (*o && objectType(*o) != TYPE_LIST) return ENOTSUP;
    if (!(k->mode & mode) || !k->owner->run) return EBADF;
    return 0;
}

/* Like listOf(), but the list must exist and have an element with this index. *at: its position
 * from the beginning. */
static int elementOf(ValkeyModuleKey *k, int mode, long index, robj **o, size_t *at) {
    *o = NULL;
    int error = listOf(k, mode, o);
    if (error == 0 && !*o) error = ENOTSUP;
    if (error) return error;
    long length = (long)listLength(*o);
    if (index >= length || index < -length) return EDOM;
    *at = (size_t)(index < 0 ? index + length : index);
    hotCheck(*at < (size_t)length);
    return 0;
}

static ValkeyModuleString *elementAt(ValkeyModuleKey *k, const robj *o, size_t at) {
    listCursor cursor;
    listCursorInit(&cursor, o, at, false);
    listpackItem item;
    bool found = listNextItem(&cursor, &item);
    hotCheck(found);
    ValkeyModuleString *s = found ? keyTextOf(k, &item) : NULL;
    listCursorClear(&cursor);
    return s;
}

static void push(ValkeyModuleKey *k, robj *o, bool front, ValkeyModuleString *element) {
    slice text = moduleStringSlice(element);
    hotCheck(keyIsWritable(k));
    if (!o) o = listNew(keyName(k));
    o = listPrepare(o, &text, 1, &rdbLimitsNow()->list);
    keyPlace(k, listPush(o, &text, 1, front));
}

static void removeAt(ValkeyModuleKey *k, robj *o, size_t at) {
    hotCheck(at < listLength(o));
    if (listLength(o) == 1) {
        keyDelete(k, false);
        return;
    }
    keyPlace(k, listTryPack(listDelete(o, at, 1), &rdbLimitsNow()->list));
}

int apiListPush(ValkeyModuleKey *kp, int where, ValkeyModuleString *ele) {
    robj *o = NULL;
    int error = ele ? listOf(kp, VALKEYMODULE_WRITE, &o) : EINVAL;
    if (error) return failWith(error);
    push(kp, o, where == VALKEYMODULE_LIST_HEAD, ele);
    return VALKEYMODULE_OK;
}

ValkeyModuleString *apiListPop(ValkeyModuleKey *key, int where) {
    robj *o = NULL;
    int error = listOf(key, VALKEYMODULE_WRITE, &o);
    if (error || !o) {
        errno = error ? error : ENOTSUP;
        return NULL;
    }
    size_t at = where == VALKEYMODULE_LIST_HEAD ? 0 : listLength(o) - 1;
    ValkeyModuleString *s = elementAt(key, o, at);
    removeAt(key, o, at);
    return s;
}

ValkeyModuleString *apiListGet(ValkeyModuleKey *key, long index) {
    robj *o;
    size_t at;
    int error = elementOf(key, VALKEYMODULE_READ, index, &o, &at);
    if (!error) return elementAt(key, o, at);
    errno = error;
    return NULL;
}

int apiListSet(ValkeyModuleKey *key, long index, ValkeyModuleString *value) {
    robj *o;
    size_t at;
    int error = value ? elementOf(key, VALKEYMODULE_WRITE, index, &o, &at) : EINVAL;
    if (error) return failWith(error);
    slice text = moduleStringSlice(value);
    o = listPrepare(o, &text, 1, &rdbLimitsNow()->list);
    keyPlace(key, listSet(o, at, text));
    return VALKEYMODULE_OK;
}

int apiListInsert(ValkeyModuleKey *key, long index, ValkeyModuleString *value) {
    robj *o = NULL;
    int error = value ? listOf(key, VALKEYMODULE_WRITE, &o) : EINVAL;
    if (!error && !o && index != 0 && index != -1) error = EDOM;
    if (error) return failWith(error);
    long length = o ? (long)listLength(o) : 0;
    if (index > length || index < -length - 1) return failWith(EDOM);
    if (index == 0 || index == -length - 1 || index == -1 || index == length) {
        push(key, o, index == 0 || index == -length - 1, value);
        return VALKEYMODULE_OK;
    }
    /* A negative index is the one that the new element gets, counted from the end. So the new
     * element is inserted after the one that has this index now. */
    size_t at = (size_t)(index < 0 ? index + length : index);
    slice text = moduleStringSlice(value);
    o = listPrepare(o, &text, 1, &rdbLimitsNow()->list);
    keyPlace(key, listInsert(o, at, text, index < 0));
    return VALKEYMODULE_OK;
}

int apiListDelete(ValkeyModuleKey *key, long index) {
    robj *o;
    size_t at;
    int error = elementOf(key, VALKEYMODULE_WRITE, index, &o, &at);
    if (error) return failWith(error);
    removeAt(key, o, at);
    return VALKEYMODULE_OK;
}

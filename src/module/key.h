/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open keys: a database, a name and a mode. The object of the key is remembered only until the
 * keyspace may have changed, and is looked up again when it is used after that; a change always
 * looks up the place for it. Main thread, or one that has locked the server. */
#ifndef MODULE_KEY_H
#define MODULE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"
#include "module/context.h"
#include "store/look.h"

/* Defined in ds/listpack.h, store/object.h, store/store.h. */
typedef struct listpackItem listpackItem;
typedef struct robj robj;
typedef struct db db;

struct ValkeyModuleKey {
    ValkeyModuleCtx *owner;
    ValkeyModuleString *name; /* with a reference */
    db *db;
    uint64_t hash;
    int mode;     /* VALKEYMODULE_READ and so on */
    bool changed; /* through this handle */
    robj *object; /* as of `seen`; NULL: there is none */
    uint64_t seen;
    dbPosition at;                /* of keyFind() */
    char digits[NUMBER_TEXT_MAX]; /* the text of an integer */
    void *iterator;               /* of a sorted set or a stream; NULL: none */
    void (*iterator_free)(void *iterator);
};

/* Before the first one is opened. */
void keysStart(void);
/* Number of times at which objects of keys may have become invalid. */
extern uint64_t keysChanges;
/* To be called after whatever may have changed the keyspace while keys of modules are open. */
static inline void keysMayHaveChanged(void) { keysChanges++; }

/* Opens a key of this database whether or not it exists. */
ValkeyModuleKey *keyOpen(ValkeyModuleCtx *x, db *d, ValkeyModuleString *name, int mode);
/* The object of the key, or NULL; it may be compressed. Valid until the keyspace changes; not to be
 * changed. */
robj *keyObject(ValkeyModuleKey *k);
/* The same for its elements: a collection is not compressed. */
robj *keyValue(ValkeyModuleKey *k);
/* The same for a change: k->at is the place for dbPlace(). */
robj *keyFind(ValkeyModuleKey *k);
/* Stores the compressed value of the key plain; returns its object. */
robj *keyPlain(ValkeyModuleKey *k);
/* Stores the result of a change of what keyFind() has returned. */
void keyPlace(ValkeyModuleKey *k, robj *o);
/* Deletes the key, if it exists. */
void keyDelete(ValkeyModuleKey *k, bool later);
/* A string with the text of an item of its value. */
ValkeyModuleString *keyTextOf(ValkeyModuleKey *k, const listpackItem *item);
/* Ends the iteration, if there is one. */
void keyStopIterator(ValkeyModuleKey *k);
static inline bool keyIsWritable(const ValkeyModuleKey *k) {
    return k && k->mode & VALKEYMODULE_WRITE;
}
static inline slice keyName(const ValkeyModuleKey *k) { return moduleStringSlice(k->name); }

#endif

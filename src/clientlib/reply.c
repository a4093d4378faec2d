/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees of replies. A reply is one block: the struct, followed by its string, or by the pointers of
 * an aggregate of up to EMBEDDED_MAX items. A larger aggregate has a vector that grows with the
 * items received, so an announced count alone never determines an allocation.
 *
 * Invariant: while an aggregate is being built, `elements` is the number of items that it has. */
#include "clientlib/client_priv.h"

enum { EMBEDDED_MAX = 64, VECTOR_FIRST = 1024 };

static valkeyReply **embedded(valkeyReply *r) { return (valkeyReply **)(r + 1); }

void freeReplyObject(void *reply) {
    valkeyReply *r = reply;
    if (!r) return;
    if (r->element) {
        for (size_t i = 0; i < r->elements; i++) freeReplyObject(r->element[i]);
        if (r->element != embedded(r)) vk_free(r->element);
    }
    vk_free(r);
}

/* Adds an item to an aggregate. A vector is full if the count is VECTOR_FIRST or a larger power of
 * two. */
static bool appendElement(const valkeyReadTask *parent, valkeyReply *item) {
    valkeyReply *r = parent->obj;
    size_t count = r->elements, total = (size_t)parent->elements;
    if (r->element != embedded(r) && count >= VECTOR_FIRST && (count & (count - 1)) == 0) {
        size_t capacity = count > total / 2 ? total : count * 2;
        if (capacity > SIZE_MAX / sizeof(*r->element)) return false;
        valkeyReply **vector = vk_realloc(r->element, capacity * sizeof(*vector));
        if (!vector) return false;
        r->element = vector;
    }
    r->element[r->elements++] = item;
    return true;
}

static void *attach(const valkeyReadTask *task, valkeyReply *r) {
    if (!task->parent || appendElement(task->parent, r)) return r;
    freeReplyObject(r);
    return NULL;
}

/* A reply with space for `extra` bytes after it. */
static valkeyReply *replyNew(int type, size_t extra) {
    valkeyReply *r = vk_malloc(sizeof(*r) + extra);
    if (!r) return NULL;
    *r = (valkeyReply){.type = type};
    return r;
}

static void setString(valkeyReply *r, const char *str, size_t len) {
    r->str = (char *)(r + 1);
    r->len = len;
    memcpy(r->str, str, len);
    r->str[len] = '\0';
}

static void *createString(const valkeyReadTask *task, char *str, size_t len) {
    valkeyReply *r = replyNew(task->type, len + 1);
    if (!r) return NULL;
    if (task->type == VALKEY_REPLY_VERB) {
        memcpy(r->vtype, str, 3);
        setString(r, str + 4, len - 4);
    } else {
        setString(r, str, len);
    }
    return attach(task, r);
}

static void *createArray(const valkeyReadTask *task, size_t elements) {
    bool inside = elements <= EMBEDDED_MAX;
    valkeyReply *r = replyNew(task->type, inside ? elements * sizeof(*r->element) : 0);
    if (!r) return NULL;
    if (inside) {
        r->element = elements > 0 ? embedded(r) : NULL;
    } else {
        size_t first = elements < VECTOR_FIRST ? elements : VECTOR_FIRST;
        r->element = vk_malloc(first * sizeof(*r->element));
        if (!r->element) {
            vk_free(r);
            return NULL;
        }
    }
    return attach(task, r);
}

static void *createInteger(const valkeyReadTask *task, long long value) {
    valkeyReply *r = replyNew(VALKEY_REPLY_INTEGER, 0);
    if (!r) return NULL;
    r->integer = value;
    return attach(task, r);
}

static void *createDouble(const valkeyReadTask *task, double value, char *str, size_t len) {
    valkeyReply *r = replyNew(VALKEY_REPLY_DOUBLE, len + 1);
    if (!r) return NULL;
    r->dval = value;
    setString(r, str, len);
    return attach(task, r);
}

static void *createNil(const valkeyReadTask *task) {
    valkeyReply *r = replyNew(VALKEY_REPLY_NIL, 0);
    return r ? attach(task, r) : NULL;
}

static void *createBool(const valkeyReadTask *task, int value) {
    valkeyReply *r = replyNew(VALKEY_REPLY_BOOL, 0);
    if (!r) return NULL;
    r->integer = value != 0;
    return attach(task, r);
}

valkeyReplyObjectFunctions vkReplyFunctions = {
    createString, createArray, createInteger, createDouble, createNil, createBool, freeReplyObject};

valkeyReader *valkeyReaderCreate(void) {
    return valkeyReaderCreateWithFunctions(&vkReplyFunctions);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subscriptions of an asynchronous context: a hash table per kind, from names to callbacks.
 *
 * A subscription exists from sending SUBSCRIBE until the confirmation of UNSUBSCRIBE, unless
 * another SUBSCRIBE was sent after that. */
#include <strings.h>

#include "clientlib/async_priv.h"

enum { BUCKETS_FIRST = 8 };

struct dict {
    subscription **buckets;
    size_t size; /* of buckets: a power of two */
    size_t count;
};

static size_t hashOf(const char *name, size_t len) {
    uint64_t h = 14695981039346656037ULL; /* FNV-1a: the names are chosen by the program itself */
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)name[i]) * 1099511628211ULL;
    return (size_t)(h ^ h >> 32);
}

struct dict *vkDictNew(void) {
    return vk_calloc(1, sizeof(struct dict));
}

void vkDictFree(struct dict *d) {
    if (!d) return;
    for (size_t i = 0; i < d->size; i++) {
        for (subscription *s = d->buckets[i], *next; s; s = next) {
            next = s->next;
            vk_free(s);
        }
    }
    vk_free(d->buckets);
    vk_free(d);
}

size_t vkDictCount(const struct dict *d) { return d->count; }

subscription *vkDictFind(const struct dict *d, const char *name, size_t len) {
    if (d->size == 0) return NULL;
    subscription *s = d->buckets[hashOf(name, len) & (d->size - 1)];
    while (s && (s->len != len || memcmp(s->name, name, len) != 0)) s = s->next;
    return s;
}

static bool grow(struct dict *d) {
    size_t size = d->size ? d->size * 2 : BUCKETS_FIRST;
    subscription **buckets = vk_calloc(size, sizeof(*buckets));
    if (!buckets) return false;
    for (size_t i = 0; i < d->size; i++) {
        for (subscription *s = d->buckets[i], *next; s; s = next) {
            size_t to = hashOf(s->name, s->len) & (size - 1);
            next = s->next;
            s->next = buckets[to];
            buckets[to] = s;
        }
    }
    vk_free(d->buckets);
    d->buckets = buckets;
    d->size = size;
    return true;
}

subscription *vkDictAdd(struct dict *d, const char *name, size_t len) {
    subscription *s = vkDictFind(d, name, len);
    if (s) return s;
    if (d->count >= d->size && !grow(d)) return NULL;
    s = vk_malloc(sizeof(*s) + len);
    if (!s) return NULL;
    size_t to = hashOf(name, len) & (d->size - 1);
    *s = (subscription){.next = d->buckets[to], .len = len};
    memcpy(s->name, name, len);
    d->buckets[to] = s;
    d->count++;
    return s;
}

void vkDictRemove(struct dict *d, subscription *s) {
    subscription **at = &d->buckets[hashOf(s->name, s->len) & (d->size - 1)];
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    d->count--;
    vk_free(s);
}

void vkDictVisit(const struct dict *d, void (*visit)(void *arg, subscription *s), void *arg) {
    for (size_t i = 0; i < d->size; i++) {
        for (subscription *s = d->buckets[i]; s; s = s->next) visit(arg, s);
    }
}

size_t vkSubsCount(const valkeyAsyncContext *ac) {
    size_t count = 0;
    for (int kind = 0; kind < SUB_KINDS; kind++) count += vkDictCount(vkSubs(ac, (subKind)kind));
    return count;
}

/* ------------------------------------------------------------------ messages */

bool vkSubsRecognise(const valkeyReply *r, subKind *kind, const char **word) {
    if ((r->type != VALKEY_REPLY_ARRAY && r->type != VALKEY_REPLY_PUSH) || r->elements < 3)
        return false;
    const char *name = r->element[0]->str;
    if (!name) return false;
    static const char *const words[] = {"subscribe", "unsubscribe", "message"};
    *kind = *name == 'p' ? SUB_PATTERN : SUB_CHANNEL;
    /* "subscribe" itself begins with an s. */
    if (*name == 's' && strcmp(name, "subscribe") != 0) *kind = SUB_SHARD;
    if (*kind != SUB_CHANNEL) name++;
    for (int i = 0; i < 3; i++) {
        *word = words[i];
        if (!strcmp(name, words[i])) return true;
    }
    return false;
}

/* ------------------------------------------------------------------ sent commands */

/* Takes back the first `count` subscriptions of a SUBSCRIBE. */
static void undo(struct dict *d, vkCommandCursor cursor, int count) {
    vkArg name;
    while (count-- > 0 && vkCommandNext(&cursor, &name)) {
        subscription *s = vkDictFind(d, name.ptr, name.len);
        if (s && --s->callback.pending_subs == 0 && !s->callback.subscribed) vkDictRemove(d, s);
    }
}

static bool subscribeSent(struct dict *d, vkCommandCursor cursor, valkeyCallbackFn *fn,
                          void *privdata, int *confirmations) {
    vkCommandCursor first = cursor;
    vkArg name;
    int count = 0;
    while (vkCommandNext(&cursor, &name)) {
        subscription *s = vkDictAdd(d, name.ptr, name.len);
        if (!s) {
            undo(d, first, count);
            return false;
        }
        s->callback.pending_subs++;
        count++;
    }
    while (vkCommandNext(&first, &name)) {
        subscription *s = vkDictFind(d, name.ptr, name.len);
        s->callback.fn = fn;
        s->callback.privdata = privdata;
        s->callback.unsubscribe_sent = 0;
    }
    *confirmations = count;
    return true;
}

static void noteUnsubscribe(void *arg, subscription *s) {
    int *count = arg;
    if (s->callback.unsubscribe_sent) return;
    s->callback.unsubscribe_sent = 1;
    ++*count;
}

bool vkSubsSent(valkeyAsyncContext *ac, subKind kind, bool subscribe, vkCommandCursor cursor,
                valkeyCallbackFn *fn, void *privdata, int *confirmations) {
    struct dict *d = vkSubs(ac, kind);
    vkArg name;
    int count = 0;
    if (subscribe) return subscribeSent(d, cursor, fn, privdata, confirmations);
    if (cursor.left == 0) {
        /* All of them; without any there is one confirmation. */
        vkDictVisit(d, noteUnsubscribe, &count);
        *confirmations = count > 0 ? count : 1;
        return true;
    }
    while (vkCommandNext(&cursor, &name)) {
        subscription *s = vkDictFind(d, name.ptr, name.len);
        if (s) s->callback.unsubscribe_sent = 1;
        count++;
    }
    *confirmations = count;
    return true;
}

bool vkSubsReceived(valkeyAsyncContext *ac, subKind kind, const char *word, const valkeyReply *r,
                    valkeyCallback *callback, bool *spontaneous) {
    struct dict *d = vkSubs(ac, kind);
    const valkeyReply *name = r->element[1];
    *spontaneous = false;
    subscription *s = name->str ? vkDictFind(d, name->str, name->len) : NULL;
    if (!s) return false;
    *callback = s->callback;
    asyncState *state = (asyncState *)ac;
    if (!strcmp(word, "subscribe")) {
        if (s->callback.pending_subs > 0) s->callback.pending_subs--;
        state->active += !s->callback.subscribed;
        s->callback.subscribed = 1;
    } else if (!strcmp(word, "unsubscribe")) {
        *spontaneous = !s->callback.unsubscribe_sent && s->callback.pending_subs == 0;
        state->active -= s->callback.subscribed != 0;
        s->callback.subscribed = 0;
        if (s->callback.pending_subs == 0) vkDictRemove(d, s);
    }
    return true;
}

void vkSubsRefused(valkeyAsyncContext *ac, subKind kind, vkCommandCursor cursor,
                   void (*refuse)(valkeyAsyncContext *ac, const valkeyCallback *callback,
                                  void *arg),
                   void *arg) {
    struct dict *d = vkSubs(ac, kind);
    vkArg name;
    while (vkCommandNext(&cursor, &name)) {
        subscription *s = vkDictFind(d, name.ptr, name.len);
        if (!s) continue;
        valkeyCallback callback = s->callback;
        if (s->callback.pending_subs > 0) s->callback.pending_subs--;
        if (s->callback.pending_subs == 0 && !s->callback.subscribed) vkDictRemove(d, s);
        refuse(ac, &callback, arg);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the asynchronous client share. */
#ifndef CLIENTLIB_ASYNC_PRIV_H
#define CLIENTLIB_ASYNC_PRIV_H

#include <valkey/async.h>

#include "clientlib/client_priv.h"

/* Kinds of subscriptions: channels, patterns, sharded channels. */
typedef enum subKind { SUB_CHANNEL, SUB_PATTERN, SUB_SHARD, SUB_KINDS } subKind;

/* A subscription. `callback.pending_subs` counts confirmations of SUBSCRIBE that are expected. */
typedef struct subscription {
    struct subscription *next; /* of the same bucket */
    valkeyCallback callback;
    size_t len;
    char name[];
} subscription;

typedef enum pendingKind {
    PENDING_REPLY,     /* one reply */
    PENDING_MONITOR,   /* one reply, after which lines follow */
    PENDING_SUBSCRIBE, /* `callback.pending_subs` confirmations, or an error */
    PENDING_UNSUBSCRIBE,
} pendingKind;

/* A command whose reply is expected: an element of ac->replies. */
typedef struct pendingCommand {
    valkeyCallback callback;
    pendingKind kind;
    subKind sub;
    uint64_t end; /* bytes queued on the connection up to its end */
    /* Of SUBSCRIBE: its bytes, for an error to be given to its subscriptions. */
    size_t len;
    char command[];
} pendingCommand;

/* The public part is first. */
typedef struct asyncState {
    valkeyAsyncContext pub;
    valkeyCallback monitor; /* while VALKEY_MONITORING is set */
    size_t active;          /* confirmed subscriptions */
    uint64_t queued, sent;  /* bytes of commands, of all */
    uint64_t received;      /* replies, messages included */
    /* See async.c, "time limits": the last sign of life, and when the timer expires. */
    long long waiting_since_us, timer_due_us;
} asyncState;

/* ------------------------------------------------------------------ async.c */

/* Copies the error of the synchronous part. */
void vkAsyncCopyError(valkeyAsyncContext *ac);

/* ------------------------------------------------------------------ subscriptions.c */

/* An empty set, or NULL. */
struct dict *vkDictNew(void);
/* Frees it with all subscriptions. */
void vkDictFree(struct dict *d);
size_t vkDictCount(const struct dict *d);
subscription *vkDictFind(const struct dict *d, const char *name, size_t len);
/* Finds or adds; NULL if memory is exhausted. */
subscription *vkDictAdd(struct dict *d, const char *name, size_t len);
void vkDictRemove(struct dict *d, subscription *s);
/* Calls `visit` for each subscription; it must not change the set. */
void vkDictVisit(const struct dict *d, void (*visit)(void *arg, subscription *s), void *arg);

static inline struct dict *vkSubs(const valkeyAsyncContext *ac, subKind kind) {
    struct dict *all[SUB_KINDS] = {ac->sub.channels, ac->sub.patterns, ac->sub.schannels};
    return all[kind];
}
/* Number of subscriptions of all kinds. */
size_t vkSubsCount(const valkeyAsyncContext *ac);

/* True if `r` is a message or a confirmation of a subscription: its kind and the word without
 * prefix (one of "subscribe", "unsubscribe", "message"). */
bool vkSubsRecognise(const valkeyReply *r, subKind *kind, const char **word);
/* Enters the subscriptions of a SUBSCRIBE, or notes those that an UNSUBSCRIBE ends. `cursor` is
 * after the command's name. False if memory is exhausted; nothing has changed then.
 * `*confirmations` is how many will come. */
bool vkSubsSent(valkeyAsyncContext *ac, subKind kind, bool subscribe, vkCommandCursor cursor,
                valkeyCallbackFn *fn, void *privdata, int *confirmations);
/* The callback for a message or confirmation; a subscription that ends with it is removed. False if
 * there is none. `*spontaneous`: the server has ended it by itself. */
bool vkSubsReceived(valkeyAsyncContext *ac, subKind kind, const char *word, const valkeyReply *r,
                    valkeyCallback *callback, bool *spontaneous);
/* Removes the subscriptions of a SUBSCRIBE that the server refused; calls `refuse` for each
 * before. */
void vkSubsRefused(valkeyAsyncContext *ac, subKind kind, vkCommandCursor cursor,
                   void (*refuse)(valkeyAsyncContext *ac, const valkeyCallback *callback,
                                  void *arg),
                   void *arg);

#endif

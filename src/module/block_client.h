/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocked clients: the handle that a module has from the time it blocks a client until it unblocks
 * it. The wait is one of engine/block.h, whose state is the handle. Main thread, or a thread that
 * has the lock, unless said otherwise. */
#ifndef MODULE_BLOCK_CLIENT_H
#define MODULE_BLOCK_CLIENT_H

#include <stdbool.h>

#include "base/str.h"
#include "engine/block.h"
#include "module/context.h"

typedef struct ValkeyModuleBlockedClient blockedClient;

/* A key that a client waits for. */
typedef struct blockedKey {
    uint64_t hash;
    int type; /* valueType at the last look; -1: missing, or one whose creation is not signalled */
} blockedKey;

struct ValkeyModuleBlockedClient {
    module *module;
    session *who; /* that waits; NULL: it does not any more, or never did */
    uint64_t client_id;
    int db_id;
    uint8_t proto;
    bool on_keys, on_auth;
    bool holds_reply; /* of a command that has run: a callback of a key event blocks the client */
    bool on_deletion; /* also if a key is missing */
    blockedKey *keys;
    int key_count;
    bool replied;    /* the client has got its reply, or its error */
    bool gone;       /* for free_private: there is no client any more */
    bool signalled;  /* SignalKeyAsReady() for one of its keys */
    int64_t late_us; /* monotonic time of the timeout; 0: none */
    bool queued;     /* the module has unblocked it; atomic */
    int refs;        /* one for the module's use, and of contexts of threads; atomic */
    ValkeyModuleCmdFunc reply, timed_out;
    ValkeyModuleAuthCallback auth_reply;
    uint64_t auth_newest, auth_below; /* callbacks that were asked: auth.c */
    ValkeyModuleDisconnectFunc disconnected;
    void (*free_private)(ValkeyModuleCtx *ctx, void *private);
    void *private;
    ValkeyModuleString *ready_key; /* the latest one */
    argArray *args;                /* of the blocked call: they live as long as the handle */
    ValkeyModuleString *login[2];  /* name and password of an authentication, likewise */
    outbuf out;                    /* what threads reply */
    str errors;                    /* codes of errors in it, each followed by a line end */
    uint64_t work;                 /* ticks that count as time of the command; atomic */
    uint64_t work_started;
    uint64_t blocked_at; /* ticks */
};

/* A handle without a wait, with callbacks that are NULL. */
blockedClient *blockClientNew(ValkeyModuleCtx *x);
/* Begins its wait, of the command that runs in `c`. `params` has what the kind of wait needs, and
 * the handle does not know. */
void blockClientWait(blockedClient *b, ctx *c, blockParams params);
/* Ends the wait, or a handle without one, soon, in the order of these calls; without effect if that
 * was ordered before. ANY_THREAD. */
void blockClientFinishSoon(blockedClient *b);
/* One reference less. ANY_THREAD. */
void blockClientRelease(blockedClient *b);
/* Counts an error that a thread has replied. The thread's. */
void blockClientNoteError(blockedClient *b, slice code);

/* Ticks that the module has measured as work for the client. */
uint64_t blockClientWork(const blockedClient *b);
/* In a command that runs again: calls the reply callback. False: it does not wait for keys. */
bool blockClientContinue(ctx *c);
/* The command is about to get the handle `b`: its arguments have bytes of their own from now on, as
 * a thread may read them when those of the request are gone. */
void blockClientOwnArgs(ValkeyModuleCtx *x, blockedClient *b);
/* The command has returned: its arguments stay valid if it has a handle. */
void blockClientKeepArgs(ValkeyModuleCtx *x);

#endif

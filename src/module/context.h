/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts: what each function of a module gets. One is made on the stack of the code that calls
 * the module, and ends with the call; those for threads are in blocks of their own. Main thread
 * only, unless said otherwise. */
#ifndef MODULE_CONTEXT_H
#define MODULE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "module/module_string.h"
#include "module/pool.h"
#include "module/registry.h"

/* Defined in engine/ctx.h, engine/command.h, engine/user.h, resp/resp.h. */
typedef struct ctx ctx;
typedef struct command command;
typedef struct keyPosition keyPosition;
typedef struct user user;
typedef struct outbuf outbuf;
typedef struct respDeferred respDeferred;

enum contextFlag {
    CONTEXT_AUTO_MEMORY = 1u << 0,
    CONTEXT_HAS_CLIENT = 1u << 1, /* replies have a reader */
    CONTEXT_ASKS_KEYS = 1u << 2,  /* the command is to report the positions of its keys */
    CONTEXT_ASKS_CHANNELS = 1u << 3,
    CONTEXT_REPLY = 1u << 4,   /* called back to reply for a blocked client */
    CONTEXT_TIMEOUT = 1u << 5, /* the same because it has timed out */
    CONTEXT_DISCONNECTED = 1u << 6,
    CONTEXT_THREAD = 1u << 7,       /* belongs to a thread, which locks and unlocks the server */
    CONTEXT_AUTH = 1u << 8,         /* called to authenticate the client */
    CONTEXT_AUTH_REPLIED = 1u << 9, /* and has replied why that is impossible */
};

/* Further flags of the same field. CONTEXT_READ_ONLY: keys must not be changed, because one is
 * being removed. */
enum {
    CONTEXT_READ_ONLY = 1u << 16,
    CONTEXT_NOTIFICATION = 1u << 17, /* of a keyspace event, in the middle of a command */
};

/* Kinds of objects that auto memory frees at the end. */
typedef enum garbageKind {
    GARBAGE_STRING,
    GARBAGE_KEY,
    GARBAGE_REPLY,
    GARBAGE_DICT,
    GARBAGE_INFO,
    GARBAGE_KINDS,
} garbageKind;
typedef struct garbage {
    garbageKind kind;
    void *what;
} garbage;

struct ValkeyModuleCtx {
    int (*get_api)(const char *name, void *target); /* the first word: modules read it */
    module *module;                                 /* NULL until it has called Init() */
    ctx *run;    /* what runs it: a command, or a unit without client; NULL: nothing does */
    outbuf *out; /* where replies go; NULL: nowhere */
    uint8_t proto;
    uint32_t flags; /* CONTEXT_ */
    argArray *args;
    const command *cmd; /* the running command, NULL if there is none */
    /* Replies whose length is to come, the latest last. */
    respDeferred *postponed;
    int postponed_count, postponed_max;
    size_t postponed_from; /* outmark of where the first of them begins */
    /* Auto memory. */
    garbage *garbage;
    int garbage_count, garbage_max;
    pool pool; /* of PoolAlloc() */
    /* Positions that a getkeys-api command reports. */
    keyPosition *positions;
    int position_count, position_max;
    const user *as_user;                       /* of SetContextUser(); NULL: none */
    struct ValkeyModuleBlockedClient *blocked; /* in its callbacks, and contexts of its thread */
    ValkeyModuleString *ready_key;
    struct scriptRun *script; /* of a function of a scripting engine; else NULL */
};

/* A context for a call of the module, run by `run`, which may be NULL. */
void contextInit(ValkeyModuleCtx *x, module *m, ctx *run);
/* Ends it: what auto memory and the pool hold is freed, open replies are closed. */
void contextClear(ValkeyModuleCtx *x);

/* Runs `part` with a context that has no client, as a unit of its own, in this database. */
typedef void contextProc(ValkeyModuleCtx *x, void *arg);
void contextRun(module *m, int db_id, contextProc *part, void *arg);

/* Registers something to be freed with the context, if it has auto memory. */
void contextCollect(ValkeyModuleCtx *x, garbageKind kind, void *what);
/* Takes it from there again. False: it was not there. */
bool contextForget(ValkeyModuleCtx *x, garbageKind kind, const void *what);
/* How a kind is freed; registered by the file that makes them. */
void contextSetFree(garbageKind kind, void (*proc)(ValkeyModuleCtx *x, void *what));

/* Counts an error that the context replies, whose text has no line end, unless it is `counted`
 * already. Its `out` is not NULL. */
void contextNoteError(ValkeyModuleCtx *x, slice text, bool counted);

/* Logs that the module has used a function wrongly. */
void contextMisuse(const ValkeyModuleCtx *x, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loaded modules, in the order of their load. The engine of scripts is one of them, `lua`,
 * which belongs to the program. Main thread only. */
#ifndef MODULE_REGISTRY_H
#define MODULE_REGISTRY_H

#include <stdbool.h>

#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"
#include "module/generated/interface.h"

typedef struct ctx ctx; /* defined in engine/ctx.h */
typedef struct moduleCommand moduleCommand;

typedef struct module module;
struct module {
    listNode node;
    char *name;
    int version, api_version;
    char *path;
    str *args; /* of the load; UpdateRuntimeArgs() changes them */
    int arg_count;
    void *library; /* of dlopen(); NULL: a part of the program */
    int options;   /* VALKEYMODULE_OPTIONS_ */
    bool loading;  /* OnLoad has not returned */
    moduleCommand *commands;
    int filters;               /* command filters */
    ValkeyModuleInfoFunc info; /* adds to INFO; NULL: none */
    uint64_t timers;           /* that have not expired */
    int blocked_clients;       /* handles of clients that it has blocked */
    int in_call;               /* depth of commands that it runs with Call() */
};

/* The module with that name, ignoring case, or NULL. */
module *registryFind(slice name);
void registryAdd(module *m);
void registryRemove(module *m);
module *registryFirst(void);
module *registryNext(const module *m);
/* A record with this name and version, not in the list. */
module *moduleNew(const char *name, int version, int api_version);
/* Frees the record; nothing of the module may be registered any more. */
void moduleFree(module *m);
/* True if the address is in the code of the module's library. */
bool moduleHasCode(const module *m, const void *address);
/* False, and logged, unless it consists of letters, digits, `_` and `-`. */
bool resourceNameIsValid(const char *name);
/* Replaces the path and the arguments. */
void moduleSetPath(module *m, const char *path);
void moduleSetArgs(module *m, const slice *args, int count);

/* Replies an array with one map per module: MODULE LIST and HELLO. */
void registryReplyAll(ctx *c);
/* Appends INFO's lines. */
void registryAppendInfo(str *out);

#endif

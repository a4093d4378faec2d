/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading and unloading modules. The shared object gets nothing from the program but the address of
 * apiGet(), the first word of its context; all functions come from there by name.
 * Main thread only. */
#include "module/load.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "acl/private_user.h"
#include "base/base.h"
#include "module/auth.h"
#include "module/cluster_messages.h"
#include "module/commands.h"
#include "module/forks.h"
#include "module/scripting.h"
#include "module/main_queue.h"
#include "module/settings.h"
#include "module/shared_api.h"
#include "module/timers.h"
#include "module/filters.h"
#include "module/thread_lock.h"
#include "module/types.h"
#include "module/key_events.h"
#include "module/promise.h"
#include "module/server_events.h"
#include "net/net.h"
#include "script/engines.h"

typedef int onLoadProc(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);
typedef int onUnloadProc(ValkeyModuleCtx *ctx);

/* Removes what the module has registered. */
static void removeRegistered(module *m) {
    netThreadsPark();
    timersRemove(m);
    settingsRemove(m);
    sharedApiRemove(m);
    scriptingRemove(m);
    filtersRemove(m);
    keyEventsRemove(m);
    serverEventsRemove(m);
    promisesRemove(m);
    authRemove(m);
    defragRemove(m);
    forksRemove(m);
    clusterMessagesRemove(m);
    commandsRemove(m);
    typesRemove(m);
    netThreadsUnpark();
}

typedef struct loadCall {
    onLoadProc *on_load;
    const slice *args;
    int count;
    int result;
    module *made; /* by Init(); NULL: it was not called */
} loadCall;

static void callOnLoad(ValkeyModuleCtx *x, void *arg) {
    loadCall *call = arg;
    argArray *args = argArrayNew(call->args, call->count);
    call->result = call->on_load(x, args->argv, call->count);
    argArrayEnd(args);
    call->made = x->module;
}

/* Not RTLD_DEEPBIND: its malloc() and free() would be those of the C library, but what strdup() and
 * others return there is memory of the allocator that this program is linked with. A module has
 * functions of its own before those of the program with the same names all the same, as the program
 * exports none but exported.list. */
enum { OPEN_FLAGS = RTLD_NOW | RTLD_LOCAL };

static status openLibrary(const char *path, void **library, onLoadProc **on_load, reason *why) {
    struct stat st;
    if (stat(path, &st) == 0 && !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return reasonSet(why, ERR_DENIED,
                         "Module %s failed to load: It does not have execute permissions.", path);
    *library = dlopen(path, OPEN_FLAGS);
    if (!*library) return reasonSet(why, ERR_IO, "Module %s failed to load: %s", path, dlerror());
    *on_load = (onLoadProc *)dlsym(*library, "ValkeyModule_OnLoad");
    if (*on_load) return OK;
    *on_load = (onLoadProc *)dlsym(*library, "RedisModule_OnLoad");
    if (*on_load) {
        logNotice("Legacy Redis Module %s found", path);
        return OK;
    }
    dlclose(*library);
    return reasonSet(why, ERR_SYNTAX,
                     "Module %s does not export ValkeyModule_OnLoad() or RedisModule_OnLoad() "
                     "symbol. Module not loaded.",
                     path);
}

typedef struct unloadCall {
    onUnloadProc *on_unload;
    int result;
} unloadCall;

static void callOnUnload(ValkeyModuleCtx *x, void *arg) {
    unloadCall *call = arg;
    call->result = call->on_unload(x);
}

/* OnUnload is optional; 1 refuses. */
static bool agreesToUnload(module *m) {
    hotCheck(m->library);
    unloadCall call = {(onUnloadProc *)dlsym(m->library, "ValkeyModule_OnUnload"), 0};
    if (!call.on_unload) call.on_unload = (onUnloadProc *)dlsym(m->library, "RedisModule_OnUnload");
    if (!call.on_unload) return true;
    contextRun(m, 0, callOnUnload, &call);
    return call.result != VALKEYMODULE_ERR;
}

/* What OnLoad has made becomes visible. */
static status finishLoad(module *m, reason *why) {
    hotCheck(m->loading);
    if (registryFind(sliceOf(m->name)))
        return reasonSet(why, ERR_EXISTS, "Module %s initialization failed. Module name is busy.",
                         m->path);
    if (settingsAreMissing(m))
        return reasonSet(why, ERR_DENIED,
                         "Module Configurations were not set, likely a missing LoadConfigs call. "
                         "Unloading the module.");
    netThreadsPark();
    status st = commandsInstall(m, why);
    netThreadsUnpark();
    return st;
}

status moduleLoad(const char *path, const moduleLoadArgs *given, reason *why) {
    hotCheck(given->count >= 0);
    hotCheck(given->setting_count >= 0);
    const slice *args = given->args;
    int count = given->count;
    void *library = NULL;
    loadCall call = {.args = args, .count = count};
    status st = openLibrary(path, &library, &call.on_load, why);
    if (st != OK) goto failed;
    int categories = commandCategoryCount();
    mainQueueStart();
    threadLockStart();
    settingsQueue(given->settings, given->setting_count);
    contextRun(NULL, 0, callOnLoad, &call);
    bool all_taken = settingsQueueEnd();
    module *m = call.made;
    if (!m || call.result == VALKEYMODULE_ERR) {
        st = reasonSet(why, ERR_DENIED, "Module %s initialization failed. %s", path,
                       m ? "Module not loaded." : "Module name is busy.");
    } else if (!all_taken) {
        st = reasonSet(why, ERR_DENIED,
                       "Loadex configurations were not applied, likely due to invalid arguments. "
                       "Unloading the module.");
    } else {
        m->library = library;
        moduleSetPath(m, path);
        moduleSetArgs(m, args, count);
        st = finishLoad(m, why);
    }
    if (st != OK) {
        if (m && call.result != VALKEYMODULE_ERR) { /* it has succeeded, so it is told */
            m->library = library;
            (void)agreesToUnload(m); /* it cannot refuse */
        }
        if (m) removeRegistered(m);
        commandCategoriesCut(categories);
        if (m && typesExist(m)) goto failed; /* values remain, and with them the module's code */
        moduleFree(m);
        dlclose(library);
        goto failed;
    }
    m->loading = false;
    registryAdd(m);
    logNotice("Module '%s' loaded from %s", m->name, path);
    serverEventsTellModule(m, true);
    return OK;
failed:
    logWarning("%s", why->text);
    return st;
}

/* ------------------------------------------------------------------ unload */

static bool isCommandOf(const command *cmd, const void *arg) {
    const moduleCommand *found = commandsOf(cmd);
    return found && found->owner == arg;
}

/* Whether a user's rule names a command of the module: without it the rule would be void. */
static bool aclNames(const module *m) {
    hotCheck(m->name);
    slice rule = aclRuleNaming(isCommandOf, m);
    if (!rule.len) return false;
    logWarning("Module %s unload blocked: An ACL user has reference to rule '%.*s'", m->name,
               (int)rule.len, rule.ptr);
    return true;
}

status moduleUnload(slice name, reason *why) {
    module *m = registryFind(name);
    if (!m) return reasonSet(why, ERR_NOT_FOUND, "no such module with that name");
    if (typesExist(m))
        return reasonSet(why, ERR_DENIED,
                         "the module exports one or more module-side data types, can't unload");
    if (sharedApiIsUsed(m))
        return reasonSet(why, ERR_DENIED,
                         "the module exports APIs used by other modules. Please unload them first "
                         "and try again");
    if (m->blocked_clients)
        return reasonSet(why, ERR_AGAIN,
                         "the module has blocked clients. Please wait for them to be unblocked and "
                         "try again");
    if (timersExist(m))
        return reasonSet(why, ERR_AGAIN,
                         "the module holds timer that is not fired. Please stop the timer or wait "
                         "until it fires.");
    if (aclNames(m))
        return reasonSet(why, ERR_DENIED,
                         "one or more ACL users reference commands from this module. Remove those "
                         "ACL rules before unloading");
    if (m->library && !agreesToUnload(m)) {
        logNotice("Module %s OnUnload failed. Unload canceled.", m->name);
        return reasonSet(why, ERR_DENIED, "operation not possible.");
    }
    removeRegistered(m);
    registryRemove(m);
    serverEventsTellModule(m, false);
    if (!m->library) { /* a part of the program: the engine of scripts, until the restart */
        scriptEngineRemove(&luaEngine);
    } else if (dlclose(m->library) != 0) {
        logWarning("Error when trying to close the %s module: %s", m->name, dlerror());
    }
    logNotice("Module %s unloaded", m->name);
    moduleFree(m);
    return OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of loaded modules and their records. A few entries, so it is searched from its start.
 * Main thread only. */
#define _GNU_SOURCE /* for dladdr() */
#include "module/registry.h"

#include <ctype.h>
#include <dlfcn.h>

#include "base/base.h"
#include "engine/reply.h"
#include "module/shared_api.h"

static list modules;

static list *loaded(void) {
    if (!modules.head.next) listInit(&modules);
    return &modules;
}

static module *moduleAt(listNode *n) { return n ? LIST_OWNER(n, module, node) : NULL; }

module *registryFirst(void) { return moduleAt(listFirst(loaded())); }

module *registryNext(const module *m) {
    hotCheck(listHas(&m->node));
    return moduleAt(listNext(loaded(), &m->node));
}

module *registryFind(slice name) {
    for (module *m = registryFirst(); m; m = registryNext(m)) {
        if (sliceIs(name, m->name)) return m;
    }
    return NULL;
}

void registryAdd(module *m) {
    check(!listHas(&m->node));
    check(!registryFind(sliceOf(m->name)));
    listAppend(loaded(), &m->node);
}

void registryRemove(module *m) {
    check(listHas(&m->node));
    listRemove(loaded(), &m->node);
}

module *moduleNew(const char *name, int version, int api_version) {
    module *m = memNew(module);
    m->name = memDup(name, strlen(name));
    m->version = version;
    m->api_version = api_version;
    m->loading = true;
    return m;
}

bool resourceNameIsValid(const char *name) {
    for (const char *c = name; *c; c++) {
        if (isalnum((unsigned char)*c) || *c == '_' || *c == '-') continue;
        logWarning("Invalid character %c in Module resource name %s.", *c, name);
        return false;
    }
    return *name;
}

bool moduleHasCode(const module *m, const void *address) {
    hotCheck(m->path);
    Dl_info code;
    return m->library && dladdr(address, &code) && code.dli_fname &&
           !strcmp(code.dli_fname, m->path);
}

void moduleSetPath(module *m, const char *path) {
    memFree(m->path);
    m->path = memDup(path, strlen(path));
}

void moduleSetArgs(module *m, const slice *args, int count) {
    hotCheck(count >= 0);
    strFreeWords(m->args, m->arg_count);
    m->args = count ? memNewArray(str, (size_t)count) : NULL;
    m->arg_count = count;
    hotCheck(!m->args || count);
    for (int i = 0; i < count; i++) m->args[i] = strNew(args[i]);
}

void moduleFree(module *m) {
    if (!m) return;
    check(!listHas(&m->node));
    check(!m->commands);
    strFreeWords(m->args, m->arg_count);
    memFree(m->path);
    memFree(m->name);
    memFree(m);
}

/* ------------------------------------------------------------------ MODULE LIST, INFO */

void registryReplyAll(ctx *c) {
    replyArray(c, (int64_t)loaded()->count);
    for (module *m = registryFirst(); m; m = registryNext(m)) {
        replyMap(c, 4);
        replyBulkText(c, "name");
        replyBulkText(c, m->name);
        replyIntField(c, "ver", m->version);
        replyBulkText(c, "path");
        replyBulkText(c, m->path);
        replyBulkText(c, "args");
        replyArray(c, m->arg_count);
        for (int i = 0; i < m->arg_count; i++) replyBulk(c, strSlice(&m->args[i]));
    }
}

static const struct {
    int bit;
    const char *name;
} shown_options[] = {
    {VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS, "handle-io-errors"},
    {VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, "handle-repl-async-load"},
    {VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, "no-implicit-signal-modified"},
    {VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION, "handle-atomic-slot-migration"},
    {VALKEYMODULE_OPTIONS_HANDLE_FORKLESS, "handle-forkless"},
};

static void appendOptions(str *out, int options) {
    bool first = true;
    for (size_t i = 0; i < sizeof(shown_options) / sizeof(shown_options[0]); i++) {
        if (!(options & shown_options[i].bit)) continue;
        if (!first) strAppendByte(out, '|');
        strAppendText(out, shown_options[i].name);
        first = false;
    }
}

void registryAppendInfo(str *out) {
    for (module *m = registryFirst(); m; m = registryNext(m)) {
        strAppendFormat(out, "module:name=%s,ver=%d,api=%d,filters=%d,usedby=[", m->name,
                        m->version, m->api_version, m->filters);
        sharedApiAppendUsers(m, out);
        strAppendText(out, "],using=[");
        sharedApiAppendUsed(m, out);
        strAppendText(out, "],options=[");
        appendOptions(out, m->options);
        strAppendText(out, "]\r\n");
    }
}

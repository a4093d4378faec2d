/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registers modules in the server: the directive `loadmodule`, whose modules are loaded at start,
 * and the built-in module `lua`. Main thread only. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/lifecycle.h"
#include "io/file_stream.h"
#include "module/auth.h"
#include "module/call_reply.h"
#include "module/dict.h"
#include "module/forks.h"
#include "module/info.h"
#include "module/key.h"
#include "module/load.h"
#include "module/module.h"
#include "module/registry.h"
#include "module/types.h"

/* ------------------------------------------------------------------ loadmodule */

/* A line of the configuration. */
typedef struct moduleLine {
    str *words; /* the path, then arguments */
    int count;
    struct moduleLine *next;
} moduleLine;

static moduleLine *lines, **last_line = &lines;

static bool isLine(const moduleLine *line, const slice *words, int count) {
    hotCheck(count > 0);
    bool same = line->count == count;
    for (int i = 0; i < count && same; i++) same = sliceEqual(strSlice(&line->words[i]), words[i]);
    return same;
}

/* A repeated line is ignored: a module cannot be loaded twice, and one that was given on the
 * command line is in the file after CONFIG REWRITE. */
static status takeLine(const slice *words, int count, reason *why) {
    hotCheck(count > 0);
    (void)why; /* any path may exist when modules are loaded */
    for (const moduleLine *line = lines; line; line = line->next) {
        if (isLine(line, words, count)) return OK;
    }
    moduleLine *line = memNew(moduleLine);
    line->words = memNewArray(str, (size_t)count);
    line->count = count;
    for (int i = 0; i < count; i++) line->words[i] = strNew(words[i]);
    *last_line = line;
    last_line = &line->next;
    return OK;
}

static void rewriteLines(configLines *out) {
    for (module *m = registryFirst(); m; m = registryNext(m)) {
        if (!m->library) continue;
        str line = STR_EMPTY;
        configAppendWord(&line, sliceOf(m->path));
        for (int i = 0; i < m->arg_count; i++) {
            strAppendByte(&line, ' ');
            configAppendWord(&line, strSlice(&m->args[i]));
        }
        configLinesAdd(out, strSlice(&line));
        strFree(&line);
    }
}

static const configFileOnly loadmodule = {.words_min = 1,
                                          .words_max = INT32_MAX,
                                          .take = takeLine,
                                          .rewrite = rewriteLines,
                                          .key_words = configKeyIsWord,
                                          .once_per_key = true};

static const configOption options[] = {
    CONFIG_FILE_ONLY("loadmodule", &loadmodule),
    CONFIG_END,
};

bool modulesAreStarting(void) { return lines != NULL; }

bool modulesCheckSettings(str *report) {
    if (lines || !configFirstKept()) return true;
    configReportKept("Module Configuration detected without loadmodule directive", report);
    return false;
}

/* The reason why a file cannot be loaded, as far as its first bytes show; NULL if it can. */
static const char *fileFault(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return strerror(errno);
    if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return "It does not have execute permissions.";
    fileReader file;
    reason why;
    if (fileReaderOpen(&file, path, &why) != OK) return "it cannot be read";
    Elf64_Ehdr header = {.e_type = ET_NONE};
    size_t len = 0;
    bool is_library = fileReaderRead(&file, &header, sizeof(header), &len, &why) == OK &&
                      len == sizeof(header) && header.e_type == ET_DYN &&
                      memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    fileReaderClose(&file);
    return is_library ? NULL : "it is no shared object";
}

bool modulesCheckFiles(str *report) {
    size_t before = report->len;
    for (const moduleLine *line = lines; line; line = line->next) {
        const char *path = strText(&line->words[0]), *fault = fileFault(path);
        if (fault) strAppendFormat(report, "Can't load module from %s: %s\n", path, fault);
    }
    return report->len == before;
}

status modulesLoadConfigured(reason *why) {
    while (lines) { /* the line is removed when its module is loaded */
        moduleLine *line = lines;
        int count = line->count - 1;
        slice *args = memNewArray(slice, (size_t)count + 1);
        for (int i = 0; i < count; i++) args[i] = strSlice(&line->words[i + 1]);
        reason failed;
        moduleLoadArgs given = {.args = args, .count = count};
        status st = moduleLoad(strText(&line->words[0]), &given, &failed);
        memFree(args);
        if (st != OK)
            return reasonSet(why, st, "Can't load module from %s: server aborting",
                             strText(&line->words[0]));
        lines = line->next;
        strFreeWords(line->words, line->count);
        memFree(line);
    }
    last_line = &lines;
    const char *unused = configFirstKept();
    if (!unused) return OK;
    logWarning("Unused Module Configuration: %s", unused);
    str report = STR_EMPTY;
    configReportKept("No module has registered this setting", &report);
    logWarning("%s", strText(&report));
    strFree(&report);
    return reasonSet(why, ERR_NOT_FOUND,
                     "Module Configuration detected without loadmodule directive or no ApplyConfig "
                     "call: aborting");
}

/* ------------------------------------------------------------------ what modules can do */

static const char *moduleWithout(engineModuleAbility what) {
    static const int options[] = {
        [MODULES_HANDLE_READ_ERRORS] = VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS,
        [MODULES_HANDLE_ASYNC_LOAD] = VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD,
        [MODULES_HANDLE_SLOT_MIGRATION] = VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION,
        [MODULES_HANDLE_FORKLESS] = VALKEYMODULE_OPTIONS_HANDLE_FORKLESS};
    hotCheck((size_t)what < COUNT_OF(options));
    for (const module *m = registryFirst(); m; m = registryNext(m)) {
        if (m->options & options[what]) continue;
        bool of_types = what == MODULES_HANDLE_READ_ERRORS || what == MODULES_HANDLE_FORKLESS;
        if (!of_types || typesExist(m)) return m->name;
    }
    return NULL;
}

/* ------------------------------------------------------------------ the feature */

enum { LUA_VERSION = 1 };

static void addBuiltIn(void) {
    module *lua = moduleNew("lua", LUA_VERSION, VALKEYMODULE_APIVER_1);
    moduleSetPath(lua, "lua");
    lua->options = VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD |
                   VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION;
    lua->loading = false;
    registryAdd(lua);
}

void modulesAppendInfo(str *out) { registryAppendInfo(out); }

static const gate *const gates[] = {&moduleGate, &moduleBusyGate, NULL};

/* The gate is always armed: it selects MODULE only, so other commands are not affected. */
static status init(reason *why) {
    (void)why; /* cannot fail */
    moduleStringsStart();
    callRepliesStart();
    dictsStart();
    infosStart();
    keysStart();
    addBuiltIn();
    engineSetModulesProc(registryReplyAll);
    engineSetModuleWithoutProc(moduleWithout);
    gateArm(&moduleGate, true);
    return OK;
}

const feature moduleFeature = {.name = "module",
                               .options = options,
                               .gates = gates,
                               .on_auth = authAsk,
                               .on_session = authOnSession,
                               .on_child = forksChildEvent,
                               .init = init};
